//! The pages of accounts.

mod abuse;
pub mod browser;
mod floods;
mod forms;
mod injection;
mod journey;
mod keys;
mod second_quotas;
mod sessions;
mod signing_in;
