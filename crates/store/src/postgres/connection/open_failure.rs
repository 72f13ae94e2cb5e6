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
pub enum OpenFailure {
    /// No server answered, or none that is writable: all gateways are affected. One may answer later.
    #[error(transparent)]
    Unreachable(StoreError),
    /// A writable server answered that this gateway may not or must not use: no connection is left for its role, the
    /// password is wrong, or it holds another data set. It may accept a connection later.
    #[error(transparent)]
    Refused(StoreError),
    /// A server answered, and this program cannot use its tables.
    #[error(transparent)]
    UnusableTables(StoreError),
}

impl From<OpenFailure> for StoreError {
    fn from(failure: OpenFailure) -> Self {
        match failure {
            OpenFailure::Unreachable(error)
            | OpenFailure::Refused(error)
            | OpenFailure::UnusableTables(error) => error,
        }
    }
}

impl OpenFailure {
    /// The failure of an operation.
    pub(crate) fn new(doing: &'static str, reason: String, kind: ConnectionFault) -> Self {
        let failure = match kind {
            ConnectionFault::Unreachable => Self::Unreachable,
            ConnectionFault::Refused => Self::Refused,
            ConnectionFault::UnusableTables => Self::UnusableTables,
        };
        failure(StoreError::Unavailable { doing, reason })
    }
}
