//! Why the store cannot be used yet, and the number of connections that it opens.

use crate::{StoreError, postgres::connection::hosts::ConnectionFault};

/// The maximum number of connections per gateway: one each for keys, leases, owners and mail, and notifications; two for shared
/// documents; and one while it reads all keys.
pub const CONNECTIONS_PER_GATEWAY: u32 = 7;

/// The connection limit for a role that this many gateways use. If a gateway vanishes, the server counts its
/// connections until their keepalives fail, so each gateway may be counted twice.
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
