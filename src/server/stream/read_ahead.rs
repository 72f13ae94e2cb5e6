//! A stream that begins with the bytes that were read to detect its protocol.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncRead, ReadBuf};

use super::filtered_io::{FilteredIo, ReadFilter};

pub struct ReadAhead(Bytes);

impl ReadAhead {
    /// Puts `bytes` back in front of the stream.
    pub fn put_back<S>(bytes: Bytes, stream: S) -> FilteredIo<S, Self> {
        FilteredIo::new(stream, Self(bytes))
    }
}

/// Moves as many bytes into a buffer as it has room for.
#[cold]
pub fn pass_on(bytes: &mut Bytes, buffer: &mut ReadBuf<'_>) {
    let length = bytes.len().min(buffer.remaining());
    buffer.put_slice(bytes.get(..length).unwrap_or_default());
    bytes.advance(length);
    if bytes.is_empty() {
        *bytes = Bytes::new(); // an empty slice would keep the whole buffer in memory
    }
}

impl ReadFilter for ReadAhead {
    #[inline]
    fn poll_read(
        &mut self,
        stream: Pin<&mut impl AsyncRead>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.0.is_empty() {
            return stream.poll_read(cx, buffer);
        }
        pass_on(&mut self.0, buffer);
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt as _;

    #[tokio::test]
    async fn bytes_read_in_advance_come_before_the_stream() {
        let mut stream = ReadAhead::put_back(Bytes::from_static(b"GET"), &b" / HTTP"[..]);
        let mut first = [0; 2];
        stream.read_exact(&mut first).await.unwrap();
        let mut rest = String::new();
        stream.read_to_string(&mut rest).await.unwrap();
        assert_eq!((&first, rest.as_str()), (b"GE", "T / HTTP"));
    }
}
