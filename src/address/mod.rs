//! The client's address behind proxies.
//!
//! Not for: the PROXY protocol header of a connection (`server::proxy_header`).

mod client;
mod forwarded;
mod networks;

pub use client::{ClientHeader, Proxies};
pub use networks::{BadNetwork, Network, Networks};
