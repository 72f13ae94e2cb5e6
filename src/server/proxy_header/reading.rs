//! Results of parsing the first bytes of a connection.

use std::net::SocketAddr;

/// Maximum length of a header of either version. A longer header of version 2 is rejected by its length field.
pub(in crate::server) const LONGEST: usize = 536;

/// The result for the bytes so far. Further bytes never change a final one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The beginning of a valid header.
    Incomplete,
    /// A complete header.
    Header {
        /// Its length. The bytes after it are from the client.
        length: usize,
        /// The client, with IPv4 addresses in the IPv4 form. `None` for a health check or an unknown family: then the
        /// address of the socket is used.
        client: Option<SocketAddr>,
    },
    /// Not a header, regardless of what follows.
    Malformed,
}
