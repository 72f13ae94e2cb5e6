//! The connections to the database: hosts, checks of the server, notifications, and statements on one schema.

pub mod address;
pub mod database_connection;
pub mod hosts;
pub mod link;
pub mod listener;
pub mod open_failure;
pub mod seen_timelines;
pub mod server_check;
pub mod tls;
