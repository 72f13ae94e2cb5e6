//! The pages of accounts.

mod abuse;
pub mod browser;
mod forms;
mod injection;
mod journey;
mod sessions;
mod signing_in;
