//! Passes HTTP/2 frames on, a few requests at a time, until a request of a paid tier was admitted: one without a valid key,
//! several with one.
//!
//! The codec allocates for all streams that arrive together, and keeps the memory as long as the connection lives.
//! A few at a time, a request is answered or refused before further ones are read, so such a connection needs
//! little memory however many requests it sends. Numbers are in `client_limits`; which requests are refused is decided
//! in `connection_activity`.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, BytesMut};
use tokio::io::{AsyncRead, ReadBuf};

use super::connection_activity::ConnectionActivity;
use super::filtered_io::{FilteredIo, ReadFilter};

/// Length of a frame header.
const FRAME_HEAD: usize = 9;
/// Types of the frames that begin and reset a request.
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;

/// Maximum number of resets by a client whose requests are paced. The codec counts only streams that were reset before it
/// processed them; here each is processed first.
const MAX_RESETS: usize = 100;

pub(super) struct RequestPacer {
    activity: Arc<ConnectionActivity>,
    frames: FrameSequence,
    /// Bytes read and not yet passed to the codec.
    pending: BytesMut,
    /// The codec poll in which a request was passed on whose response must come first.
    passed_on: Option<usize>,
}

/// The position in the sequence of frames.
struct FrameSequence {
    /// Remaining bytes of the current payload, or of the preface.
    rest: usize,
    head: [u8; FRAME_HEAD],
    /// Bytes of the next frame header that have arrived.
    filled: usize,
    is_headers: bool,
    /// Number of resets.
    resets: usize,
}

impl FrameSequence {
    /// The first frame begins after this many other bytes.
    fn after(preface: usize) -> Self {
        Self { rest: preface, head: [0; FRAME_HEAD], filled: 0, is_headers: false, resets: 0 }
    }

    /// Advances to the end of the first HEADERS frame. Returns the number of bytes, and whether they end there.
    fn advance(&mut self, bytes: &[u8]) -> (usize, bool) {
        let mut unread = bytes;
        while !unread.is_empty() {
            if self.rest == 0 && self.filled < FRAME_HEAD {
                let (first, after) = unread.split_at((FRAME_HEAD - self.filled).min(unread.len()));
                for byte in first {
                    if let Some(slot) = self.head.get_mut(self.filled) {
                        *slot = *byte;
                    }
                    self.filled += 1;
                }
                unread = after;
                if self.filled < FRAME_HEAD {
                    break;
                }
                let [one, two, three, kind, ..] = self.head;
                self.rest = u32::from_be_bytes([0, one, two, three]) as usize;
                self.is_headers = kind == HEADERS;
                self.resets += usize::from(kind == RST_STREAM);
            } else {
                let step = self.rest.min(unread.len());
                unread = unread.get(step..).unwrap_or_default();
                self.rest -= step;
            }
            if self.rest == 0 {
                self.filled = 0;
                if std::mem::take(&mut self.is_headers) {
                    return (bytes.len() - unread.len(), true);
                }
            }
        }
        (bytes.len(), false)
    }
}

impl RequestPacer {
    /// A stream that begins with a preface of this length.
    pub(super) fn stream<S>(
        stream: S,
        preface: usize,
        activity: Arc<ConnectionActivity>,
    ) -> FilteredIo<S, Self> {
        let (frames, pending) = (FrameSequence::after(preface), BytesMut::new());
        FilteredIo::new(stream, Self { activity, frames, pending, passed_on: None })
    }
}

impl ReadFilter for RequestPacer {
    fn poll_read(
        &mut self,
        stream: Pin<&mut impl AsyncRead>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.passed_on == Some(self.activity.polls()) {
            cx.waker().wake_by_ref(); // by its next poll it is known whether that was a request
            return Poll::Pending;
        }
        if self.passed_on.is_some() && !self.activity.reads_freely() && !self.activity.may_read_head() {
            return Poll::Pending; // the response wakes the connection to be sent; so does a higher trust
        }
        if self.frames.resets > MAX_RESETS {
            return Poll::Ready(Err(io::Error::other(
                "a client without an admitted paid request reset too many streams",
            )));
        }
        self.passed_on = None;
        let is_paced = !self.activity.reads_freely();
        if self.pending.is_empty() {
            let begin = buffer.filled().len();
            ready!(stream.poll_read(cx, buffer))?;
            if is_paced {
                let read = buffer.filled().get(begin..).unwrap_or_default();
                let (length, is_request) = self.frames.advance(read);
                self.pending = read.get(length..).unwrap_or_default().into();
                self.passed_on = is_request.then(|| self.activity.polls());
                buffer.set_filled(begin + length);
            }
            return Poll::Ready(Ok(()));
        }
        let next = self.pending.get(..self.pending.len().min(buffer.remaining())).unwrap_or_default();
        let (length, is_request) = if is_paced { self.frames.advance(next) } else { (next.len(), false) };
        buffer.put_slice(next.get(..length).unwrap_or_default());
        self.passed_on = is_request.then(|| self.activity.polls());
        self.pending.advance(length);
        if self.pending.is_empty() {
            self.pending = BytesMut::new();
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use tokio::io::AsyncReadExt as _;

    use super::*;
    use crate::clock::{Clock, Wall};

    fn frame(kind: u8, length: u8) -> Vec<u8> {
        [&[0, 0, length, kind, 0, 0, 0, 0, 1], &vec![b'x'; usize::from(length)][..]].concat()
    }

    /// A preface, and three requests among other frames; the lengths up to the end of each request.
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

    #[test]
    fn the_end_of_each_request_is_found_however_the_bytes_are_cut() {
        let (bytes, ends) = sample();
        for size in 1..bytes.len() {
            let (mut frames, mut at, mut found) = (FrameSequence::after(7), 0, Vec::new());
            for chunk in bytes.chunks(size) {
                let mut rest = chunk;
                while !rest.is_empty() {
                    let (length, is_request) = frames.advance(rest);
                    (at, rest) = (at + length, &rest[length..]);
                    found.extend(is_request.then_some(at));
                }
            }
            assert_eq!(found, ends, "in chunks of {size}");
        }
    }

    #[tokio::test]
    async fn one_request_is_read_at_a_time_until_one_is_admitted() {
        let (bytes, [first, second, _]) = sample();
        let (clock, _hand) = Clock::manual(Wall::from_seconds(0));
        let activity = Arc::new(ConnectionActivity::new(clock, Arc::default(), Arc::default()));
        let mut stream = RequestPacer::stream(&bytes[..], 7, Arc::clone(&activity));
        let mut read = [0; 500];
        assert_eq!(stream.read(&mut read).await.unwrap(), first);
        assert!(futures_util::poll!(pin!(stream.read(&mut read))).is_pending(), "in the same turn");
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
