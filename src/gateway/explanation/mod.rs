//! Explains how a request would be answered now. Runs the pure parts of the stages, in the order of `request_path`, on
//! copies of the state.
//!
//! Nothing is taken, fetched, counted or recorded.

mod dry_run;
pub(super) mod explained;
mod facts;
mod outcomes;
mod possible_admission;
