//! Owners, their links and sessions, and mail.

pub(super) mod mail_queue;
pub(super) mod owner_store;
