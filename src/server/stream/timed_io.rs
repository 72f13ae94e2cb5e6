//! A socket that records activity: bytes received, bytes sent, and writes that are not accepted. It is directly above
//! the socket and below TLS, where a slow client can be distinguished from a stalled one. `connection_activity` and
//! `deadline_timer` decide when the connection is closed.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, Interest, ReadBuf},
    net::TcpStream,
};

use crate::server::activity::ConnectionActivity;

use super::joined_write;

pub struct TimedIo {
    stream: TcpStream,
    activity: Arc<ConnectionActivity>,
    /// Bytes that the socket accepted and that are not recorded yet. A flush follows, or the connection ends.
    written: usize,
}

impl TimedIo {
    pub fn new(stream: TcpStream, activity: Arc<ConnectionActivity>) -> Self {
        Self {
            stream,
            activity,
            written: 0,
        }
    }

    /// Waits until the client has closed its side or reset the connection. Waits forever if bytes can be read, because
    /// they have to be read first.
    pub async fn closed(&self) {
        if self
            .stream
            .ready(Interest::READABLE)
            .await
            .is_ok_and(|ready| !ready.is_read_closed())
        {
            std::future::pending::<()>().await;
        }
    }

    fn record_write(&mut self, written: &Poll<io::Result<usize>>) {
        match written {
            Poll::Pending => {
                let written = std::mem::take(&mut self.written);
                self.activity.blocked(written);
            }
            Poll::Ready(Ok(bytes)) => self.written += bytes,
            Poll::Ready(Err(_)) => {}
        }
    }
}

impl Drop for TimedIo {
    /// Resets the connection if it was cut. If it were closed normally, the kernel would keep sending bytes that the
    /// client has not read.
    fn drop(&mut self) {
        if self.activity.is_cut() && self.stream.set_zero_linger().is_err() {
            tracing::trace!("connection closed before it could be reset");
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
        let received = buffer.filled().len() - before;
        // This is checked here and not by the timer, because a client that sends without pause would prevent the timer
        // from running.
        if received > 0 && !self.activity.received(received) {
            return Poll::Ready(Err(io::Error::other(
                "too many bytes were received without a request",
            )));
        }
        read
    }
}

impl AsyncWrite for TimedIo {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.record_write(&written);
        written
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = joined_write::poll(Pin::new(&mut self.stream), cx, slices);
        self.record_write(&written);
        written
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// A socket has no buffer. The layers above flush when their buffers are empty, even if they wrote nothing.
    fn poll_flush(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let written = std::mem::take(&mut self.written);
        if written > 0 {
            self.activity.flushed(written);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
