//! Connections of clients: HTTP/2, TLS, deadlines, slots, overload, hostile clients.

mod client_disconnects;
mod deadlines;
mod file_descriptors;
pub mod http2;
mod overload;
pub mod slow_clients;
mod tls;
mod unfinished_bodies;
