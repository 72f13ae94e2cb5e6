//! Explains how a request would be answered now. The pure parts of the stages run on copies of the state, in the order
//! of `request_path`.
//!
//! Nothing is spent, fetched, counted or recorded.

mod dry_run;
pub mod explained;
mod facts;
mod outcomes;
mod possible_admission;
