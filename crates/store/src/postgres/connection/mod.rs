//! The connections to the database: hosts, checks of the server, notifications, and statements on one schema.

pub(super) mod address;
pub(super) mod database_connection;
pub(super) mod hosts;
pub(super) mod link;
pub(super) mod listener;
pub(super) mod open_failure;
pub(super) mod seen_timelines;
pub(super) mod server_check;
pub(super) mod tls;
