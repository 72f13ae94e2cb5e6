//! Results of parsing the first bytes of a connection.

use std::net::SocketAddr;

/// Maximum length of a header of either version. A longer header of version 2 is rejected by its length field.
pub const LONGEST: usize = 536;

/// The result for the bytes received so far. Further bytes never change a final result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The beginning of a valid header.
    Incomplete,
    /// A complete header.
    Header {
        /// The length of the header. The bytes after it are from the client.
        length: usize,
        /// The client. IPv4-mapped addresses are converted to IPv4. `None` for a health check or an unknown family; the
        /// address of the socket is used in this case.
        client: Option<SocketAddr>,
    },
    /// Not a header, whatever bytes follow.
    Malformed,
}
