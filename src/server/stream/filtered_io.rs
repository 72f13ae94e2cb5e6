//! A stream whose input passes through a filter. The output is not changed.

use std::{
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The filter of the input.
pub trait ReadFilter {
    /// Reads from `stream` into `buffer`.
    fn poll_read(
        &mut self,
        stream: Pin<&mut impl AsyncRead>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>>;
}

pub struct FilteredIo<S, F> {
    stream: S,
    filter: F,
}

impl<S, F> FilteredIo<S, F> {
    pub fn new(stream: S, filter: F) -> Self {
        Self { stream, filter }
    }

    pub fn stream(&self) -> &S {
        &self.stream
    }

    pub fn into_filter(self) -> F {
        self.filter
    }
}

impl<S: AsyncRead + Unpin, F: ReadFilter + Unpin> AsyncRead for FilteredIo<S, F> {
    #[inline]
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let me = &mut *self;
        me.filter.poll_read(Pin::new(&mut me.stream), cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin, F: Unpin> AsyncWrite for FilteredIo<S, F> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
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
