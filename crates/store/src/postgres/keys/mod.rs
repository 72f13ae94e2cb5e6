//! Applications, their keys and the audit trail.

pub(super) mod all_applications;
pub(super) mod records;
mod tables;
