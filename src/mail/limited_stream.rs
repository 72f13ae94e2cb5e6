//! A stream to a mail server that fails once the server has sent too many bytes.

use std::{
    fmt::Debug,
    io,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll, ready},
};

use lettre::transport::smtp::client::AsyncTokioStream;
use memchr::memchr_iter;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Maximum number of bytes from a server on a connection: certificates and the replies to one batch of emails.
const MAX_RECEIVED: usize = 32 << 10;
/// Maximum number of lines, because the library parses a reply again after each of its lines. [`MAX_RECEIVED`] random
/// (encrypted) bytes contain only half as many line feeds.
const MAX_LINES: usize = 256;

#[derive(Debug)]
pub struct LimitedStream<S> {
    stream: S,
    bytes_left: usize,
    lines_left: usize,
}

impl<S> LimitedStream<S> {
    pub fn new(stream: S) -> Self {
        Self {
            stream,
            bytes_left: MAX_RECEIVED,
            lines_left: MAX_LINES,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for LimitedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        let received = buffer.filled().get(before..).unwrap_or_default();
        let lines = memchr_iter(b'\n', received).count();
        let bytes_left = self.bytes_left.checked_sub(received.len());
        let lines_left = self.lines_left.checked_sub(lines);
        let Some((bytes_left, lines_left)) = bytes_left.zip(lines_left) else {
            return Poll::Ready(Err(io::ErrorKind::InvalidData.into()));
        };
        self.bytes_left = bytes_left;
        self.lines_left = lines_left;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for LimitedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl<S> AsyncTokioStream for LimitedStream<S>
where
    S: AsyncRead + AsyncWrite + Debug + Send + Sync + Unpin,
{
    /// This method is never called.
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
