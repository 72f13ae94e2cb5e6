//! Results of parsing the first bytes of a connection.

use std::net::SocketAddr;

/// Maximum length of a header of either version; a longer one of version 2 is rejected by its length field.
pub(in crate::server) const LONGEST: usize = 536;

/// The result for the bytes so far. Further bytes never change a final one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The beginning of a valid header.
    Incomplete,
    /// A complete header.
    Header {
        /// Its length. What follows is the client's.
        length: usize,
        /// The client, IPv4 in its own form. `None` for a health check or an unknown family: then the socket's
        /// address counts.
        client: Option<SocketAddr>,
    },
    /// Not a header, regardless of what follows.
    Malformed,
}
