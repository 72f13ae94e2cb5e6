//! Values that are never printed and are erased from memory when dropped.
//!
//! They are used for keys, tokens and credentials. Digests are meant to be stored and do not need this protection.

mod file;
mod setting;
mod value;

pub use file::{BadSecretFile, open_without_waiting, read_secret_file};
pub use setting::SecretSetting;
pub use value::Secret;
