//! Reads a header from a stream.

use std::io;
use std::net::SocketAddr;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::reading::{LONGEST, Reading};
use super::{binary, text};

/// The reason why no header was read.
#[derive(Debug, thiserror::Error)]
pub(in crate::server) enum NoHeader {
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

/// Parses the beginning of a connection. The first byte decides the version.
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
pub(in crate::server) async fn take(
    stream: &mut (impl AsyncRead + Unpin),
) -> Result<(Option<SocketAddr>, Bytes), NoHeader> {
    // Never grows: this many bytes are always decisive.
    let mut bytes = BytesMut::with_capacity(LONGEST);
    loop {
        let more = stream
            .read_buf(&mut bytes)
            .await
            .map_err(NoHeader::Broken)?;
        match read(&bytes) {
            Reading::Header { length, client } => {
                return Ok((client, bytes.split_off(length).freeze()));
            }
            Reading::Malformed => return Err(NoHeader::Malformed),
            Reading::Incomplete if more == 0 => return Err(NoHeader::Ended),
            Reading::Incomplete => {}
        }
    }
}
