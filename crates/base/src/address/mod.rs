//! The client's address behind proxies. The PROXY protocol is in `server::proxy_header`.

mod client;
mod forwarded;
mod networks;

pub use client::{ClientHeader, Proxies};
pub use networks::{BadNetwork, Network, Networks};
