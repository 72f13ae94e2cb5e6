//! The local copy of applications and key digests of a shared store: a file in the data directory from which a gateway
//! starts while the database is unreachable.
//!
//! The file is written as a whole once, then changes are appended. Each line contains its number and a checksum; a line
//! that states up to where the copy is complete ends each write. So a write that a crash interrupted is ignored, and
//! other damage makes the copy unusable. The copy contains neither keys nor quotas.

mod copy;
mod line;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

pub use copy::{CopiedReading, LocalCopy};
pub use reader::{LocalCopyFlaw, VerifiedLocalCopy};
pub use writer::{LocalCopyLog, NewLocalCopy};
