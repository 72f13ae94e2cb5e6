//! The PROXY protocol: what a proxy that only passes bytes on says of its client before the client's first byte.
//!
//! A pure reader over bytes, `text` for version 1 and `binary` for version 2, and `take`, which takes a header off a
//! stream. Stricter than the specification where that is lenient: what is refused here was written by no proxy.
//! Not for: who is asked for a header and for how long, which is the connection's; nor for what a proxy says inside
//! HTTP (`address::client`).

mod binary;
#[cfg(test)]
mod tests;
mod text;

use std::io;
use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The longest header of either version: a longer one of version 2 is refused by the length that it states.
pub(super) const LONGEST: usize = 536;

/// What the bytes so far are. Once decided, further bytes change nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// The beginning of a header, so far without a mistake.
    Incomplete,
    /// A whole header.
    Header {
        /// How many bytes it has. What follows is the client's.
        length: usize,
        /// Whom the proxy speaks for, IPv4 in its own form. `None` where it speaks for itself or cannot tell: then the
        /// socket's own address counts.
        client: Option<SocketAddr>,
    },
    /// No header, whatever may follow.
    Malformed,
}

/// Why no header was taken off a stream.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoHeader {
    /// What came is no header.
    #[error("the connection does not begin with a PROXY header")]
    Malformed,
    /// The other side closed before its header was whole.
    #[error("the connection ended before its PROXY header")]
    Ended,
    /// The connection broke.
    #[error("the connection failed before its PROXY header")]
    Broken(#[source] io::Error),
}

/// Reads the beginning of a connection. Which version it is, the first byte says.
pub fn read(bytes: &[u8]) -> Reading {
    match bytes.first() {
        None => Reading::Incomplete,
        Some(b'P') => text::read(bytes),
        Some(b'\r') => binary::read(bytes),
        Some(_) => Reading::Malformed,
    }
}

/// Takes a header off a stream: the client's address if it says one, and what was read behind it, which belongs in
/// front of all that the stream has yet to give.
///
/// Sets no deadline: the caller does. Given up half way it has eaten of the stream, which is then good for nothing.
pub(super) async fn take(
    stream: &mut (impl AsyncRead + Unpin),
) -> Result<(Option<SocketAddr>, Bytes), NoHeader> {
    // Never grows: as many bytes as there is room for are decided.
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
