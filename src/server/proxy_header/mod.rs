//! The PROXY protocol, in which a TCP proxy sends the client's address before the client's first byte.
//!
//! `text` and `binary` are pure parsers for versions 1 and 2. `take` reads a header from a stream. The parsers are
//! stricter than the specification where it is lenient, but no known proxy sends the headers that are rejected here.
//! The connection sets the timeouts. `address::client` reads HTTP headers with client addresses.

mod binary;
mod reading;
mod taking;
#[cfg(test)]
mod tests;
mod text;

pub use reading::LONGEST;
pub use reading::Reading;
pub use taking::read;
pub use taking::{NoHeader, take};
