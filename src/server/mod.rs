//! The public port: accepting connections, speaking HTTP on each, letting them go.
//!
//! Knows sockets and the codec; what a request is answered, the gateway decides. Not for: the side port (`admin`).

mod connection;
mod listener;
#[cfg_attr(not(test), expect(dead_code, reason = "connections do not ask for a PROXY header yet"))]
mod proxy_header;

pub use connection::ConnectionConfig;
pub use listener::{Server, ServerConfig, bind};
