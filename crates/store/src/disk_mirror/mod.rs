//! The disk mirror: the last valid documents on disk, so that a restart during an outage of the backend still serves.
//!
//! A record consists of two files: its content, written only when it changes, and a header, which is cheap to
//! rewrite. The content is written before the header that names it, and the replaced content is removed last: after a
//! crash at any point the old record or the new one is complete. Everything can be fetched again, so damaged records
//! are removed.
//!
//! Data that must not be lost is in the store file, which documents never touch or slow down. One process at a time:
//! the caller has locked the data directory. All calls block on the disk.

mod directory;
mod mirror;
mod names;
mod record;
mod record_header;
mod record_slots;
#[cfg(test)]
mod tests;

pub use mirror::Mirror;
pub use record::{MirrorContents, MirrorError, MirrorRecord, RecordFlaw, RejectedRecord};
