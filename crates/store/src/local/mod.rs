//! The files of this machine, which no other gateway uses: data that must not be lost, and documents that can be
//! fetched again.

mod copied_keys;
mod documents;
mod local_file;
mod sqlite_errors;
#[cfg(test)]
mod tests;

pub use copied_keys::CopiedReading;
pub use documents::{FileFlaw, Mirror, MirrorError, MirrorRecord};
pub use local_file::{LocalFile, OwedRecords};
pub use sqlite_errors::{is_damage, is_unusable};
