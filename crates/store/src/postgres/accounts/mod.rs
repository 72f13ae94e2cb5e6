//! Mail.

pub(super) mod mail_queue;
