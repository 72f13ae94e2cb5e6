//! Finds the client's address behind proxies, and checks whether an address is public and whether an origin belongs to this
//! service. The PROXY protocol is in `server::proxy_header`.

mod client;
mod networks;
mod own_origin;
mod public;

pub use client::{ClientHeader, Proxies};
pub use networks::{BadNetwork, Network, Networks};
pub use own_origin::{is_loopback, is_own_host, is_own_origin};
pub use public::is_public;
