//! The tables.

pub(super) mod steps;
pub(super) mod tables;
