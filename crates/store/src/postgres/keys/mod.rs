//! Applications, their keys, the audit trail and the feed of changes.

pub(super) mod all_applications;
pub(super) mod feed;
pub(super) mod records;
mod tables;
