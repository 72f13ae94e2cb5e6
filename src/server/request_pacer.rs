//! Passes on HTTP/2 frames. Until a request of a paid tier has been admitted, only a few requests are passed on at a
//! time: one without a valid key, several with a key.
//!
//! The codec allocates memory for all streams that arrive together, and keeps the memory for the lifetime of the
//! connection. With pacing, requests are answered or refused before more are read, so such a connection needs little
//! memory however many requests it sends. After too many refusals, further requests are not passed on. Their stream
//! numbers are higher than the last stream of the GOAWAY, so the client may repeat the requests. A head must be
//! complete in time, and a large head needs a permit. The limits are in `client_limits`; `connection_activity` decides
//! which requests are refused.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::{Buf as _, BytesMut};
use tokio::{
    io::{AsyncRead, ReadBuf},
    sync::{OwnedSemaphorePermit, Semaphore},
};

use super::{
    activity::ConnectionActivity,
    client_limits::LARGE_HEAD,
    frame_sequence::FrameSequence,
    stream::{FilteredIo, ReadFilter},
};

/// Maximum number of bytes that are read in one call while requests are paced. Bytes after a head are kept until its
/// response is complete.
const PACED_BYTES: usize = 1_024;
/// Maximum number of resets by a client whose requests are paced. The codec counts only streams that are reset before
/// it has processed them, and a paced request is always processed before its reset.
const MAX_RESETS: usize = 100;

pub struct RequestPacer {
    activity: Arc<ConnectionActivity>,
    large_heads: Arc<Semaphore>,
    /// Held while a large head arrives.
    permit: Option<OwnedSemaphorePermit>,
    frames: FrameSequence,
    is_incomplete: bool,
    /// Bytes that have been read but not yet passed to the codec.
    pending: BytesMut,
    /// The number of the codec poll in which the last request was passed on.
    passed_on: Option<usize>,
    /// The codec gets no requests on streams after this one.
    last_stream: Option<u32>,
}

impl RequestPacer {
    /// Creates a paced stream that begins with a preface of this length.
    pub fn stream<S>(
        stream: S,
        preface: usize,
        activity: Arc<ConnectionActivity>,
        large_heads: Arc<Semaphore>,
    ) -> FilteredIo<S, Self> {
        let pacer = Self {
            activity,
            large_heads,
            permit: None,
            frames: FrameSequence::after(preface),
            is_incomplete: false,
            pending: BytesMut::new(),
            passed_on: None,
            last_stream: None,
        };
        FilteredIo::new(stream, pacer)
    }

    /// Returns how many bytes are passed on: up to the end of the next head.
    fn pass_on(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.activity.reads_freely() {
            self.passed_on = None;
            self.record_head(false, false)?;
            return Ok(bytes.len());
        }
        let (length, is_request) = self.frames.advance(bytes);
        self.passed_on = is_request.then(|| self.activity.polls());
        self.record_head(
            self.frames.is_incomplete(),
            self.frames.head_bytes() > LARGE_HEAD,
        )?;
        Ok(length)
    }

    fn record_head(&mut self, is_incomplete: bool, is_large: bool) -> io::Result<()> {
        if std::mem::replace(&mut self.is_incomplete, is_incomplete) != is_incomplete {
            self.activity.set_incomplete(is_incomplete);
        }
        if !is_large {
            self.permit = None;
        } else if self.permit.is_none() {
            // The permit is not awaited, because waiting heads would use the memory that the permits limit.
            let permit = Arc::clone(&self.large_heads).try_acquire_owned();
            self.permit = Some(
                permit
                    .map_err(|_| io::Error::other("too many large request heads are arriving"))?,
            );
        }
        Ok(())
    }

    /// Passes on bytes that were read before.
    fn pass_pending(&mut self, buffer: &mut ReadBuf<'_>) -> io::Result<()> {
        let mut pending = std::mem::take(&mut self.pending);
        let next = pending
            .get(..pending.len().min(buffer.remaining()))
            .unwrap_or_default();
        let length = self.pass_on(next)?;
        buffer.put_slice(next.get(..length).unwrap_or_default());
        pending.advance(length);
        if !pending.is_empty() {
            self.pending = pending;
        }
        Ok(())
    }

    /// Reads the bytes that have arrived.
    fn poll_next(
        &mut self,
        stream: Pin<&mut impl AsyncRead>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let begin = buffer.filled().len();
        ready!(stream.poll_read(cx, buffer))?;
        let read = buffer.filled().get(begin..).unwrap_or_default();
        let length = self.pass_on(read)?;
        self.pending = read.get(length..).unwrap_or_default().into();
        buffer.set_filled(begin + length);
        Poll::Ready(Ok(()))
    }

    /// Reads only a few bytes at a time, so that few bytes have to be held back.
    fn poll_paced(
        &mut self,
        stream: Pin<&mut impl AsyncRead>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut bytes = [0; PACED_BYTES];
        let most = PACED_BYTES.min(buffer.remaining());
        let mut part = ReadBuf::new(bytes.get_mut(..most).unwrap_or_default());
        ready!(stream.poll_read(cx, &mut part))?;
        let read = part.filled();
        let length = self.pass_on(read)?;
        buffer.put_slice(read.get(..length).unwrap_or_default());
        self.pending = read.get(length..).unwrap_or_default().into();
        Poll::Ready(Ok(()))
    }

    /// Passes on only frames for the connection or for open streams up to `last_stream`.
    fn poll_open_streams(
        &mut self,
        last_stream: u32,
        mut stream: Pin<&mut impl AsyncRead>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.pending.is_empty() {
            let begin = buffer.filled().len();
            ready!(stream.as_mut().poll_read(cx, buffer))?;
            let read = buffer.filled().get(begin..).unwrap_or_default();
            if read.is_empty() {
                return Poll::Ready(Ok(())); // end of the stream
            }
            self.pending = self.frames.without_streams_after(last_stream, read);
            buffer.set_filled(begin);
        }
        let length = self.pending.len().min(buffer.remaining());
        buffer.put_slice(self.pending.get(..length).unwrap_or_default());
        self.pending.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl ReadFilter for RequestPacer {
    fn poll_read(
        &mut self,
        stream: Pin<&mut impl AsyncRead>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(last_stream) = self.last_stream {
            return self.poll_open_streams(last_stream, stream, cx, buffer);
        }
        if self.passed_on == Some(self.activity.polls()) {
            cx.waker().wake_by_ref(); // only the next poll shows whether this was a request
            return Poll::Pending;
        }
        // A head has just ended, so the first byte that is not passed on begins a frame.
        if self.passed_on.is_some() && self.activity.takes_no_more() {
            let last_stream = *self.last_stream.insert(self.frames.last_stream());
            let unread = std::mem::take(&mut self.pending);
            self.pending = self.frames.without_streams_after(last_stream, &unread);
            return self.poll_open_streams(last_stream, stream, cx, buffer);
        }
        if self.passed_on.is_some()
            && !self.activity.reads_freely()
            && !self.activity.may_read_head()
        {
            return Poll::Pending; // the response or a higher trust level wakes the connection
        }
        if self.frames.resets() > MAX_RESETS {
            return Poll::Ready(Err(io::Error::other(
                "a client without an admitted paid request reset too many streams",
            )));
        }
        self.passed_on = None;
        if !self.pending.is_empty() {
            return Poll::Ready(self.pass_pending(buffer));
        }
        if self.activity.reads_freely() || self.activity.awaits_body() {
            return self.poll_next(stream, cx, buffer);
        }
        self.poll_paced(stream, cx, buffer)
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use tokio::io::AsyncReadExt as _;

    use super::*;
    use scoregate_base::clock::{Clock, Wall};

    const HEADERS: u8 = 1;

    /// A frame whose flags end a head.
    fn frame(kind: u8, length: u8) -> Vec<u8> {
        [
            &[0, 0, length, kind, 4, 0, 0, 0, 1],
            &vec![b'x'; usize::from(length)][..],
        ]
        .concat()
    }

    /// A preface, and three requests among other frames, with the position at which each request ends.
    fn sample() -> (Vec<u8>, [usize; 3]) {
        let mut bytes = b"preface".to_vec();
        let mut ends = [0; 3];
        for end in &mut ends {
            bytes.extend([frame(4, 6), frame(HEADERS, 40)].concat());
            *end = bytes.len();
        }
        bytes.extend([frame(8, 4), frame(6, 0)].concat());
        (bytes, ends)
    }

    #[tokio::test]
    async fn one_request_is_read_at_a_time_until_one_is_admitted() {
        let (bytes, [first, second, _]) = sample();
        let (clock, _hand) = Clock::manual(Wall::from_seconds(0));
        let activity = Arc::new(ConnectionActivity::new(
            clock,
            Arc::default(),
            Arc::default(),
        ));
        let mut stream = RequestPacer::stream(
            &bytes[..],
            7,
            Arc::clone(&activity),
            Arc::new(Semaphore::new(1)),
        );
        let mut read = [0; 500];
        assert_eq!(stream.read(&mut read).await.unwrap(), first);
        assert!(
            futures_util::poll!(pin!(stream.read(&mut read))).is_pending(),
            "in the same turn"
        );
        let guard = activity.open_stream().unwrap();
        activity.count_poll();
        assert!(futures_util::poll!(pin!(stream.read(&mut read))).is_pending());
        drop(guard);
        activity.count_poll();
        assert_eq!(stream.read(&mut read).await.unwrap(), second - first);
        let _ticket = activity.open_stream().unwrap();
        activity.trust().record_admission();
        activity.count_poll();
        assert_eq!(stream.read(&mut read).await.unwrap(), bytes.len() - second);
        assert_eq!(stream.read(&mut read).await.unwrap(), 0);
    }
}
