//! Commands on applications, keys, accounts and status messages, and the list of gateways, as data: read from a request of
//! the side port, written as one by the command line, and performed in one place. So the same commands work on a running and a stopped server.

mod admin_command;
mod bodies;
mod contact;
mod owners;
mod request;
mod status;

pub use admin_command::{AdminCommand, perform};
pub use bodies::{ExpiryBody, LimitsBody, NewKey, RevokeBody, RotateBody, TierBody};
pub use owners::{NOT_SEARCHABLE, OwnerCommand};
pub use request::MAX_BATCH;
pub(super) use request::max_body_bytes;
pub use status::StatusCommand;
