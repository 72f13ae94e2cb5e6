//! The client's address behind proxies, and whether an address is public. The PROXY protocol is in `server::proxy_header`.

mod client;
mod forwarded;
mod networks;
mod public;

pub use client::{ClientHeader, Proxies};
pub use networks::{BadNetwork, Network, Networks};
pub use public::is_public;
