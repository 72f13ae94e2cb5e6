//! Reads a header from a stream.

use std::{io, net::SocketAddr};

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::{
    binary,
    reading::{LONGEST, Reading},
    text,
};

/// The reason why no header was read.
#[derive(Debug, thiserror::Error)]
pub enum NoHeader {
    /// The bytes are not a header.
    #[error("the connection does not begin with a PROXY header")]
    Malformed,
    /// The connection was closed before the header was complete.
    #[error("the connection ended before its PROXY header")]
    Ended,
    /// A connection error.
    #[error("the connection failed before its PROXY header")]
    Broken(#[source] io::Error),
}

/// Parses the beginning of a connection. The first byte determines the version.
pub fn read(bytes: &[u8]) -> Reading {
    match bytes.first() {
        None => Reading::Incomplete,
        Some(b'P') => text::read(bytes),
        Some(b'\r') => binary::read(bytes),
        Some(_) => Reading::Malformed,
    }
}

/// Reads a header from a stream. Returns the client's address, if there is one, and the bytes that were read after the
/// header, which precede the rest of the stream.
///
/// The caller must set a timeout. If the future is dropped, bytes are lost and the stream is unusable.
pub async fn take(
    stream: &mut (impl AsyncRead + Unpin),
) -> Result<(Option<SocketAddr>, Bytes), NoHeader> {
    // The buffer never grows, because this many bytes are always enough for a decision.
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
