//! The client of a request.

use std::net::IpAddr;

/// The peer of the connection, or the client behind trusted proxies.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// Its address.
    pub address: IpAddr,
    /// Whether its connection is encrypted.
    pub is_encrypted: bool,
    /// Whether the request is a call of a tool.
    pub is_tool_call: bool,
}
