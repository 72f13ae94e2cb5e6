//! The embedded engine: one SQLite file with durable commits.
//!
//! One thread writes and one reads, each with its own connection, so that no runtime worker waits for the disk and no
//! reader waits for a writer. Operators may read the file with `sqlite3` while the server runs, and a second process
//! may write to it. The file must be on a local disk, and only one machine can use it.

mod engine;
mod fault;
pub mod file;
pub mod integrity;
pub mod paths;
mod schema;
pub mod swap;
#[cfg(test)]
mod tests;
mod worker;

pub use engine::FileEngine;
