//! A socket that tells what happens on it: bytes came, bytes went, or nobody takes them.
//!
//! Stands directly on the socket, below TLS, where a slow line and one that stands still can be told apart. Not for:
//! judging any of it (`pulse`).

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::connection_activity::ConnectionActivity;

/// The socket.
pub(super) struct TimedIo {
    stream: TcpStream,
    pulse: Arc<ConnectionActivity>,
}

impl TimedIo {
    pub(super) fn new(stream: TcpStream, pulse: Arc<ConnectionActivity>) -> Self {
        Self { stream, pulse }
    }

    fn wrote(&self, written: &Poll<io::Result<usize>>) {
        match written {
            Poll::Pending => self.pulse.blocked(),
            Poll::Ready(Ok(bytes)) if *bytes > 0 => self.pulse.took(*bytes),
            Poll::Ready(_) => {}
        }
    }
}

impl Drop for TimedIo {
    /// What is cut off may leave nothing behind: without this the kernel would go on offering what nobody takes.
    fn drop(&mut self) {
        if self.pulse.is_cut() && self.stream.set_zero_linger().is_err() {
            tracing::trace!("a connection was gone before it was cut");
        }
    }
}

impl AsyncRead for TimedIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        let heard = buffer.filled().len() - before;
        // Said here, and not by the watch: whoever never pauses would keep that from being asked.
        if heard > 0 && !self.pulse.heard(heard) {
            return Poll::Ready(Err(io::Error::other("so much arrived, and nothing was asked for")));
        }
        read
    }
}

impl AsyncWrite for TimedIo {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.wrote(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.wrote(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // A socket keeps nothing back; whoever stands on it flushes when it has nothing left itself.
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        if matches!(flushed, Poll::Ready(Ok(()))) {
            self.pulse.flushed();
        }
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
