//! `scoregate store`: checks, backs up, exports and replaces the store file.
//!
//! The work is done in `store::maintenance`.

mod arguments;
mod database;
mod report;
mod run;

pub(super) use arguments::{AFTER_HELP, StoreArgs};
pub(super) use run::run;
