//! A value that is never printed and is erased from memory when dropped.
//!
//! For keys, tokens and credentials. Digests are meant to be stored and need no such protection.

mod file;
mod setting;
mod value;

pub use file::{BadSecretFile, open_without_waiting, read_secret_file};
pub use setting::SecretSetting;
pub use value::Secret;
