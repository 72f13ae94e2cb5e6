//! The embedded engine: one SQLite file with durable commits.
//!
//! One thread writes and one reads, each with its own connection, so that no runtime worker waits for a disk and no
//! reader waits for a writer. Operators may read the file with `sqlite3` while the server runs, and a second process
//! may write to it. One machine only; the file must be on a local disk.

mod engine;
mod fault;
mod file;
mod integrity;
mod ledger;
pub mod maintenance;
mod paths;
mod schema;
mod tables;
#[cfg(test)]
mod tests;
mod worker;

pub use engine::Embedded;
pub(crate) use tables::done;
