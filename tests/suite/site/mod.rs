//! The pages of accounts.

mod abuse;
mod attachments;
mod billing;
pub mod browser;
mod floods;
mod forms;
mod injection;
mod journey;
mod keys;
pub mod leaked_keys;
mod notices;
mod owner_windows;
mod second_quotas;
mod sessions;
mod signing_in;
mod usage;
mod webhooks;
