//! `scoregate store`: checks, backs up, exports and replaces the store file.
//!
//! `store::maintenance` does the work.

mod arguments;
mod database;
mod report;
mod run;

pub use arguments::{AFTER_HELP, StoreArgs};
pub use run::run;
