//! Checks HTTP/1.1 requests for two rules that the codec does not enforce: a line ends with CR and LF, and a target has
//! no fragment. Proxies disagree on both rules, and requests that two hops parse differently can be smuggled. If a head
//! violates a rule, the codec gets a head that ends at the violation with a NUL, which the codec rejects at any
//! position. On HTTP/2 the codec removes fragments itself.
//!
//! The scanner also holds back heads that exceed the limits of the usual codec. A request whose method begins with a P
//! may have a body. The bytes after such a head are held back until the codec continues to read; by then the service
//! has stated the size of the body. Bodies are not checked.

use std::{
    io,
    pin::Pin,
    sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering},
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use memchr::memmem;
use tokio::io::{AsyncRead, AsyncReadExt as _, ReadBuf};

use crate::server::{
    client_limits::LARGE_HEAD,
    stream::{FilteredIo, ReadFilter, pass_on},
};

/// Bytes that the codec rejects at any position in a head.
pub const REFUSED: &[u8] = b"\0\r\n\r\n";

/// A head that reaches one of these limits is larger than the gateway accepts, and is passed to another codec.
pub const MAX_SIZE: usize = LARGE_HEAD;
// With this number the usual codec allocates no memory for the fields of a request.
const MAX_FIELDS: usize = 100;
/// A head with fewer bytes cannot exceed the maximum number of fields.
// A header line has at least four bytes: a name, a colon, CR and LF.
const MIN_SIZE_OF_MANY_FIELDS: usize = 4 * MAX_FIELDS;
/// Number of bytes of a head that are compared in one step.
const BLOCK: usize = 32;
/// Maximum number of bytes of a body that are read in one call. They must not fill the first buffer of the codec,
/// because it would then grow.
const BODY_READ: u64 = 8_191;
/// The end of a head.
pub const END: &[u8] = b"\r\n\r\n";

pub struct HeadScanner<'l> {
    at: ScanState,
    last: u8,
    /// Bytes and complete header lines of the current head.
    size: usize,
    fields: usize,
    /// Bytes that the codec still has to read after an invalid head.
    refused: &'static [u8],
    limit: Option<&'l HeadLimit>,
    /// The fault of the current head.
    stopped_by: Option<HeadFault>,
    /// Received bytes that the codec has not read yet.
    held: Bytes,
    /// Whether the method of the current head begins with a P.
    may_have_body: bool,
}

/// The state that the codec and the scanner of a connection share.
#[derive(Default)]
pub struct HeadLimit {
    /// The reason to stop the codec or to poll it again. Zero for most connections.
    // The codec and the scanner run in one task, so no memory ordering is needed.
    exception: AtomicU8,
    /// Bytes of the body that the codec reads next. [`ENDLESS`] if no request follows the body.
    pub(super) body: AtomicU64,
    /// Whether the bytes that the codec has read end with a head that may have a body.
    ends_with_head: AtomicBool,
}

/// Exception: the codec waits for the rest of a head that is too large for it.
const EXCEEDED: u8 = 1;
/// Exception: the connection is closed after the response.
const LAST: u8 = 2;
/// The size of a body after which the connection is closed.
pub const ENDLESS: u64 = u64::MAX;

/// Position of the next byte in a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScanState {
    /// Before the first byte, where empty lines are allowed.
    Start,
    /// In the method.
    Method,
    /// Between the method and the end of the line.
    Target,
    /// At the beginning of a line, which may be the empty line that ends the head.
    Line,
    /// In a header line.
    Field,
}

/// The reason to stop reading a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadFault {
    Invalid,
    TooLarge,
    /// No fault: the head ends before this byte, and a body may follow.
    Ended,
}

impl HeadLimit {
    pub fn is_exceeded(&self) -> bool {
        self.exception.load(Ordering::Relaxed) & EXCEEDED != 0
    }

    /// Records that the connection is closed after the response.
    pub fn close(&self) {
        self.exception.fetch_or(LAST, Ordering::Relaxed);
    }

    /// Whether there is no exception.
    pub fn is_usual(&self) -> bool {
        self.exception.load(Ordering::Relaxed) == 0
    }

    /// Records that a request with a body of this size was received. Returns whether another request may follow the
    /// body, which is not possible if the size is unknown or the codec has already read part of the body.
    pub fn body_follows(&self, size: Option<u64>) -> bool {
        let size = size.filter(|_| self.ends_with_head.load(Ordering::Relaxed));
        self.body.store(size.unwrap_or(ENDLESS), Ordering::Relaxed);
        size.is_some()
    }
}

impl<'l> HeadScanner<'l> {
    /// A stream that is checked by a scanner. A scanner without a limit passes on heads of any size.
    pub fn stream<S>(stream: S, limit: Option<&'l HeadLimit>) -> FilteredIo<S, Self> {
        FilteredIo::new(stream, Self::new(limit))
    }

    pub(super) fn new(limit: Option<&'l HeadLimit>) -> Self {
        let held = Bytes::new();
        let at = ScanState::Start;
        let refused = REFUSED;
        Self {
            at,
            last: 0,
            size: 0,
            fields: 0,
            refused,
            limit,
            stopped_by: None,
            held,
            may_have_body: false,
        }
    }

    /// The bytes that were held back.
    pub fn into_held(self) -> Bytes {
        self.held
    }

    /// The position of the first fault. Most input is a complete valid head, which is recognized without checking each
    /// byte.
    pub(super) fn fault(&mut self, bytes: &[u8]) -> Option<(usize, HeadFault)> {
        let is_start = self.at == ScanState::Start;
        let may_have_body = is_start && self.limit.is_some() && bytes.starts_with(b"P");
        let head = if may_have_body {
            first_head(bytes)
        } else {
            bytes
        };
        let is_whole = is_start && head.ends_with(END);
        if !is_whole || head.len() > MAX_SIZE || may_be_broken(head) || may_have_many_fields(head) {
            return bytes
                .iter()
                .enumerate()
                .find_map(|(at, byte)| Some((at, self.fault_at(*byte)?)));
        }
        (self.last, self.may_have_body) = (b'\n', may_have_body);
        (head.len() < bytes.len()).then_some((head.len(), HeadFault::Ended))
    }

    /// The fault at the next byte, if any.
    fn fault_at(&mut self, byte: u8) -> Option<HeadFault> {
        if self.ends_with_head() {
            return Some(HeadFault::Ended);
        }
        let is_invalid = match byte {
            b'\n' => self.last != b'\r',
            b'#' => self.at == ScanState::Target,
            _ => false,
        };
        let is_one_field_more =
            self.at == ScanState::Line && self.fields == MAX_FIELDS && !b"\r\n".contains(&byte);
        if is_invalid {
            return Some(HeadFault::Invalid);
        }
        if self.limit.is_some() && (self.size == MAX_SIZE || is_one_field_more) {
            return Some(HeadFault::TooLarge);
        }
        self.advance(byte);
        None
    }

    /// Advances past a byte.
    fn advance(&mut self, byte: u8) {
        self.last = byte;
        self.size += 1;
        self.at = match (self.at, byte) {
            (ScanState::Start | ScanState::Line, b'\n') => {
                (self.size, self.fields) = (0, 0);
                ScanState::Start
            }
            (ScanState::Method | ScanState::Target, b'\n') => ScanState::Line,
            (ScanState::Field, b'\n') => {
                self.fields += 1;
                ScanState::Line
            }
            (ScanState::Start | ScanState::Line, b'\r') => self.at,
            (ScanState::Start, _) => {
                self.may_have_body = self.limit.is_some() && byte == b'P';
                ScanState::Method
            }
            (ScanState::Method, b' ') => ScanState::Target,
            (ScanState::Line, _) => ScanState::Field,
            (ScanState::Method | ScanState::Target | ScanState::Field, _) => self.at,
        };
    }

    /// Whether the last byte ended a head that may have a body.
    fn ends_with_head(&self) -> bool {
        self.may_have_body && self.at == ScanState::Start
    }

    /// Reads bytes that were held back, or from the stream.
    fn receive(
        &mut self,
        stream: Pin<&mut impl AsyncRead>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.held.is_empty() {
            return stream.poll_read(cx, buffer);
        }
        pass_on(&mut self.held, buffer);
        Poll::Ready(Ok(()))
    }

    /// Holds back the bytes of a buffer from position `from` on.
    fn hold(&mut self, buffer: &mut ReadBuf<'_>, from: usize) {
        let rest = buffer.filled().get(from..).unwrap_or_default();
        if !rest.is_empty() {
            self.held = [rest, &self.held].concat().into();
            buffer.set_filled(from);
        }
    }

    /// Passes on a body that ends after `left` bytes.
    fn read_body(
        &mut self,
        left: u64,
        stream: Pin<&mut impl AsyncRead>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let begin = buffer.filled().len();
        let mut part = stream.take(BODY_READ);
        ready!(self.receive(Pin::new(&mut part), cx, buffer))?;
        if let Some(limit) = self.limit.filter(|_| left < ENDLESS) {
            let received = buffer.filled().len() - begin;
            let passed = received.min(usize::try_from(left).unwrap_or(usize::MAX));
            limit.body.store(left - passed as u64, Ordering::Relaxed);
            self.hold(buffer, begin + passed);
        }
        Poll::Ready(Ok(()))
    }
}

/// The bytes up to the end of the first head, or all bytes if no head ends.
fn first_head(bytes: &[u8]) -> &[u8] {
    let end = memmem::find(bytes, END).map(|at| at + END.len());
    bytes.get(..end.unwrap_or(bytes.len())).unwrap_or(bytes)
}

/// Whether the bytes contain a `#`, or an LF without CR.
pub fn may_be_broken(bytes: &[u8]) -> bool {
    let Some((first, second)) = bytes.split_first() else {
        return false;
    };
    let Some((_, before)) = bytes.split_last() else {
        return false;
    };
    let blocks = second.as_chunks::<BLOCK>().0;
    let blocks_before = before.as_chunks::<BLOCK>().0;
    let found = match (second.last_chunk::<BLOCK>(), before.last_chunk::<BLOCK>()) {
        // The last block overlaps the previous one.
        (Some(last), Some(last_before)) => blocks
            .iter()
            .zip(blocks_before)
            .fold(faults(last, last_before), |found, (block, before)| {
                found | faults(block, before)
            }),
        (None, _) | (_, None) => faults(second, before),
    };
    found != 0 || b"\n#".contains(first)
}

/// The function has no branches, so a block compiles to a few instructions.
#[inline]
fn faults(bytes: &[u8], before: &[u8]) -> u8 {
    bytes.iter().zip(before).fold(0, |found, (byte, before)| {
        found | (u8::from(*byte == b'\n') & u8::from(*before != b'\r')) | u8::from(*byte == b'#')
    })
}

/// Whether there may be more header lines than [`MAX_FIELDS`].
fn may_have_many_fields(bytes: &[u8]) -> bool {
    let lines = || {
        bytes
            .iter()
            .map(|byte| usize::from(*byte == b'\n'))
            .sum::<usize>()
    };
    bytes.len() > MIN_SIZE_OF_MANY_FIELDS && lines() > MAX_FIELDS
}

impl ReadFilter for HeadScanner<'_> {
    fn poll_read(
        &mut self,
        stream: Pin<&mut impl AsyncRead>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let body = self
            .limit
            .map_or(0, |limit| limit.body.load(Ordering::Relaxed));
        if body > 0 {
            return self.read_body(body, stream, cx, buffer);
        }
        // The codec continues to read, so it has processed the head.
        if self.ends_with_head() {
            (self.may_have_body, self.stopped_by) = (false, None);
        }
        if self.stopped_by.is_none() {
            let begin = buffer.filled().len();
            ready!(self.receive(stream, cx, buffer))?;
            let found = self.fault(buffer.filled().get(begin..).unwrap_or_default());
            if let Some(limit) = self.limit {
                limit
                    .ends_with_head
                    .store(self.ends_with_head(), Ordering::Relaxed);
            }
            let Some((at, fault)) = found else {
                return Poll::Ready(Ok(()));
            };
            self.stopped_by = Some(fault);
            self.hold(buffer, begin + at);
            if at > 0 {
                return Poll::Ready(Ok(())); // these bytes may contain a head and its body
            }
        }
        if let Some(limit) = self
            .limit
            .filter(|_| self.stopped_by == Some(HeadFault::TooLarge))
        {
            limit.exception.fetch_or(EXCEEDED, Ordering::Relaxed);
            return Poll::Pending; // the owner of the codec checks the limit next
        }
        let (now, later) = self
            .refused
            .split_at(self.refused.len().min(buffer.remaining()));
        buffer.put_slice(now);
        self.refused = later;
        Poll::Ready(Ok(()))
    }
}
