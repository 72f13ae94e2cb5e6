//! The PROXY protocol: the client's address, sent by a TCP proxy before the client's first byte.
//!
//! Pure parsers, `text` for version 1 and `binary` for version 2, and `take`, which reads a header from a stream.
//! Stricter than the specification where it is lenient: what is rejected here is not written by any proxy. Timeouts
//! belong to the connection; headers inside HTTP are in `address::client`.

mod binary;
#[cfg(test)]
mod tests;
mod text;

use std::io;
use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Maximum length of a header of either version; a longer one of version 2 is rejected by its length field.
pub(super) const LONGEST: usize = 536;

/// The result for the bytes so far. Further bytes never change a final one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The beginning of a valid header.
    Incomplete,
    /// A complete header.
    Header {
        /// Its length. What follows is the client's.
        length: usize,
        /// The client, IPv4 in its own form. `None` for a health check or an unknown family: then the socket's
        /// address counts.
        client: Option<SocketAddr>,
    },
    /// Not a header, regardless of what follows.
    Malformed,
}

/// Why no header was read.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoHeader {
    /// Not a header.
    #[error("the connection does not begin with a PROXY header")]
    Malformed,
    /// Closed before the header was complete.
    #[error("the connection ended before its PROXY header")]
    Ended,
    /// A connection error.
    #[error("the connection failed before its PROXY header")]
    Broken(#[source] io::Error),
}

/// Parses the beginning of a connection. The first byte decides about the version.
pub fn read(bytes: &[u8]) -> Reading {
    match bytes.first() {
        None => Reading::Incomplete,
        Some(b'P') => text::read(bytes),
        Some(b'\r') => binary::read(bytes),
        Some(_) => Reading::Malformed,
    }
}

/// Reads a header from a stream: the client's address if there is one, and the bytes read after it, which precede the
/// rest of the stream.
///
/// Sets no timeout: the caller does. If it is cancelled, bytes are lost and the stream is unusable.
pub(super) async fn take(
    stream: &mut (impl AsyncRead + Unpin),
) -> Result<(Option<SocketAddr>, Bytes), NoHeader> {
    // Never grows: this many bytes are always decisive.
    let mut bytes = BytesMut::with_capacity(LONGEST);
    loop {
        let more = stream.read_buf(&mut bytes).await.map_err(NoHeader::Broken)?;
        match read(&bytes) {
            Reading::Header { length, client } => return Ok((client, bytes.split_off(length).freeze())),
            Reading::Malformed => return Err(NoHeader::Malformed),
            Reading::Incomplete if more == 0 => return Err(NoHeader::Ended),
            Reading::Incomplete => {}
        }
    }
}
