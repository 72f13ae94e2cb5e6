//! Commands on applications, keys, accounts, gateways and status messages. One enum defines the command-line arguments,
//! the body of a request to the side port, and the command that is performed. So the same commands work on a running
//! and on a stopped server.

mod account_export;
mod accounts;
mod admin_command;
mod attachments;
mod keys;
mod limit_options;
mod limits;
mod live;
mod nodes;
mod query_value;
mod request;
mod status;
mod suspects;
mod usage;

pub use accounts::{AccountsCommand, OwnerLetter};
pub use admin_command::AdminCommand;
pub use keys::{ApplicationUpdate, KeyRotation, KeysCommand, LimitChange, NewKey};
pub use limits::MAX_BATCH;
pub use limits::max_body_bytes;
pub use live::{
    CacheCommand, LiveCommand, LogCommand, PurgeBody, RequestsCommand, SettingsCommand,
    SnapshotCommand, UpstreamCommand, UsageCommand,
};
pub use nodes::NodesCommand;
pub use request::read;
pub use request::to_request;
pub use status::StatusCommand;
pub use suspects::SuspectsCommand;
pub use usage::{UsageExport, UsageExportCommand};
