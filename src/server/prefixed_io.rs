//! A stream with bytes in front of it that were read to detect its protocol.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf as _, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

pub(super) struct PrefixedIo<S> {
    read_already: Bytes,
    stream: S,
}

impl<S> PrefixedIo<S> {
    pub(super) fn new(read_already: Bytes, stream: S) -> Self {
        Self { read_already, stream }
    }

    /// Runs once per connection, so it is kept apart from each read.
    #[cold]
    fn give(&mut self, buffer: &mut ReadBuf<'_>) {
        let length = self.read_already.len().min(buffer.remaining());
        buffer.put_slice(self.read_already.get(..length).unwrap_or_default());
        self.read_already.advance(length);
        if self.read_already.is_empty() {
            self.read_already = Bytes::new(); // an empty slice would keep all of it in memory
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PrefixedIo<S> {
    #[inline]
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.read_already.is_empty() {
            return Pin::new(&mut self.stream).poll_read(cx, buffer);
        }
        self.give(buffer);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PrefixedIo<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt as _;

    #[tokio::test]
    async fn bytes_read_in_advance_come_before_the_stream() {
        let mut stream = PrefixedIo::new(Bytes::from_static(b"GET"), &b" / HTTP"[..]);
        let mut first = [0; 2];
        stream.read_exact(&mut first).await.unwrap();
        let mut rest = String::new();
        stream.read_to_string(&mut rest).await.unwrap();
        assert_eq!((&first, rest.as_str()), (b"GE", "T / HTTP"));
    }
}
