//! Why the store cannot be used yet, and the connections that it opens.

use crate::StoreError;
use crate::postgres::connection::hosts::ConnectionFault;

/// The most connections that a gateway opens: for keys, for leases, for accounts of people, for notifications, two for
/// shared documents, and one while it reads all keys.
pub const CONNECTIONS_PER_GATEWAY: u32 = 7;

/// The connection limit of the role of this many gateways. The server counts the connections of a gateway that vanished
/// until it misses their keepalives, so each gateway may be there twice.
pub const fn connection_limit(gateways: u32) -> u32 {
    2 * gateways * CONNECTIONS_PER_GATEWAY
}

/// Why the store cannot be used yet.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct OpenFailure {
    /// The kind of failure.
    pub kind: ConnectionFault,
    /// The failure.
    pub error: StoreError,
}

impl From<OpenFailure> for StoreError {
    fn from(failure: OpenFailure) -> Self {
        failure.error
    }
}
