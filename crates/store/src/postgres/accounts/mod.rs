//! Owners, their links and sessions, and mail.

pub(super) mod closed_applications;
pub(super) mod mail_queue;
pub(super) mod owner_store;
pub(super) mod owners;
pub(super) mod sign_in;
