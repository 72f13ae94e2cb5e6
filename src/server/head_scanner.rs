//! Checks HTTP/1.1 requests for two rules that the codec does not enforce: a line ends with CR and LF,
//! and a target has no fragment.
//!
//! Proxies disagree on both, and requests that two hops parse differently can be smuggled. For a violation the codec
//! gets a head that ends there with a NUL, which it rejects anywhere. Bodies need no check: a request with one is
//! refused and its connection closed. On HTTP/2 the codec removes fragments itself.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

use super::filtered_io::{FilteredIo, ReadFilter};

/// The codec rejects this anywhere in a head.
const REFUSED: &[u8] = b"\0\r\n\r\n";

pub(super) struct HeadScanner {
    at: ScanState,
    last: u8,
    /// Bytes that the codec reads before anything else.
    refused: &'static [u8],
}

/// Position of the next byte in a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScanState {
    /// Before the first byte, where empty lines are allowed.
    Start,
    /// In the method.
    Method,
    /// Between the method and the end of the line.
    Target,
    /// At the beginning of a line, which may be the last one.
    Line,
    /// In a header line.
    Field,
}

impl HeadScanner {
    pub(super) fn stream<S>(stream: S) -> FilteredIo<S, Self> {
        FilteredIo::new(stream, Self::new())
    }

    fn new() -> Self {
        Self { at: ScanState::Start, last: 0, refused: &[] }
    }

    /// The position of the first violation. Most input is a complete valid head, which is recognised at once.
    fn broken(&mut self, bytes: &[u8]) -> Option<usize> {
        let is_whole = self.at == ScanState::Start && bytes.ends_with(b"\r\n\r\n");
        if !is_whole || may_be_broken(bytes) {
            return bytes.iter().position(|byte| self.breaks(*byte));
        }
        self.last = b'\n';
        None
    }

    /// Whether the next byte is a violation.
    fn breaks(&mut self, byte: u8) -> bool {
        let breaks = match byte {
            b'\n' => self.last != b'\r',
            b'#' => self.at == ScanState::Target,
            _ => false,
        };
        self.last = byte;
        self.at = match (self.at, byte) {
            (ScanState::Start | ScanState::Line, b'\n') => ScanState::Start,
            (ScanState::Method | ScanState::Target | ScanState::Field, b'\n') => ScanState::Line,
            (ScanState::Start | ScanState::Line, b'\r') => self.at,
            (ScanState::Start, _) => ScanState::Method,
            (ScanState::Method, b' ') => ScanState::Target,
            (ScanState::Line, _) => ScanState::Field,
            (ScanState::Method | ScanState::Target | ScanState::Field, _) => self.at,
        };
        breaks
    }
}

/// Whether there is a `#`, or an LF without CR. Without branches it compiles to a few instructions per 16 bytes.
fn may_be_broken(bytes: &[u8]) -> bool {
    let pairs = bytes.iter().zip(bytes.get(1..).unwrap_or_default());
    let found = pairs.fold(0, |found, (first, second)| {
        found | (u8::from(*second == b'\n') & u8::from(*first != b'\r')) | u8::from(*second == b'#')
    });
    found != 0 || bytes.first().is_some_and(|first| b"\n#".contains(first))
}

impl ReadFilter for HeadScanner {
    fn poll_read(
        &mut self,
        stream: Pin<&mut impl AsyncRead>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.refused.is_empty() {
            let begin = buffer.filled().len();
            ready!(stream.poll_read(cx, buffer))?;
            let Some(at) = self.broken(buffer.filled().get(begin..).unwrap_or_default()) else {
                return Poll::Ready(Ok(()));
            };
            buffer.set_filled(begin + at);
            self.refused = REFUSED;
        }
        let (now, later) = self.refused.split_at(self.refused.len().min(buffer.remaining()));
        buffer.put_slice(now);
        self.refused = later;
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The position of the first violation in bytes that arrive in parts of this size.
    fn broken(bytes: &[u8], size: usize) -> Option<usize> {
        let mut heads = HeadScanner::new();
        bytes.chunks(size).enumerate().find_map(|(part, bytes)| Some(part * size + heads.broken(bytes)?))
    }

    const GOOD: &[&[u8]] = &[
        b"GET / HTTP/1.1\r\nHost: a\r\nX: #\r\n\r\n",
        b"\r\n\r\nG#T / HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\nGET /a HTTP/1.1\r\nReferer: /#a\r\n\r\n",
    ];

    #[test]
    fn a_bare_line_end_and_a_fragment_are_found_in_every_head_and_nothing_else_is() {
        for first in GOOD {
            for (bad, at) in [
                (&b"\nGET / HTTP/1.1\r\n\r\n"[..], 0),
                (b"GET / HTTP/1.1\nHost: a\r\n\r\n", 14),
                (b"GET / HTTP/1.1\r\nA: b\n\r\n", 20),
                (b"GET / HTTP/1.1\r\nA: b\r\n\n", 22),
                (b"GET /#a HTTP/1.1\r\nA: #\r\n\r\n", 5),
                (b"GET # HTTP/1.1\r\n\r\n", 4),
            ] {
                let bytes = [first, bad].concat();
                for size in 1..=bytes.len() {
                    assert_eq!(
                        broken(&bytes, size),
                        Some(first.len() + at),
                        "{} by {size}",
                        bytes.escape_ascii()
                    );
                }
            }
            assert_eq!(broken(first, first.len()), None);
        }
    }

    #[tokio::test]
    async fn the_codec_gets_a_head_that_ends_at_the_violation_however_little_it_reads() {
        use tokio::io::AsyncReadExt as _;
        for size in 1..9 {
            let (mut heads, mut read) = (HeadScanner::stream(&b"GET /#a\r\n"[..]), Vec::new());
            let mut part = vec![0; size];
            while !read.ends_with(b"\r\n\r\n") {
                let length = heads.read(&mut part).await.unwrap();
                read.extend_from_slice(&part[..length]);
            }
            assert_eq!(read, b"GET /\0\r\n\r\n");
        }
    }

    proptest! {
        #[test]
        fn violations_do_not_depend_on_how_bytes_arrive(bytes in "[GX #\r\n]{0,60}", size in 1_usize..60) {
            prop_assert_eq!(broken(bytes.as_bytes(), size), broken(bytes.as_bytes(), 1));
        }

        #[test]
        fn every_bare_line_end_is_found(bytes in "[GX #\r\n]{0,60}") {
            let at = broken(bytes.as_bytes(), 60).unwrap_or(bytes.len());
            prop_assert!(!bytes.split_at(at).0.replace("\r\n", "").contains('\n'));
        }
    }
}
