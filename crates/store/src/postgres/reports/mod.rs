//! The state of the database.

pub(crate) mod inspect;
