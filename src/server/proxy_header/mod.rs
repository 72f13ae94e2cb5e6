//! The PROXY protocol: the client's address, sent by a TCP proxy before the client's first byte.
//!
//! Pure parsers, `text` for version 1 and `binary` for version 2, and `take`, which reads a header from a stream.
//! Stricter than the specification where it is lenient: no proxy writes the headers that are rejected here. Timeouts
//! belong to the connection; headers inside HTTP are in `address::client`.

mod binary;
mod reading;
mod taking;
#[cfg(test)]
mod tests;
mod text;

pub(super) use reading::LONGEST;
pub use reading::Reading;
pub use taking::read;
pub(super) use taking::{NoHeader, take};
