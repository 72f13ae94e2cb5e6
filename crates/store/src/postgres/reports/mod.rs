//! The state of the database.

pub mod inspect;
