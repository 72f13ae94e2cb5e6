//! The client of a request.

use std::net::IpAddr;

/// The peer of the connection, or the client behind trusted proxies.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// The address of the client.
    pub address: IpAddr,
    /// Whether the connection is encrypted.
    pub is_encrypted: bool,
    /// Whether the request is a tool call.
    pub is_tool_call: bool,
}
