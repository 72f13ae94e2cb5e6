//! The tables.

mod first_steps;
pub(super) mod steps;
pub(super) mod tables;
