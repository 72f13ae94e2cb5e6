//! The identifier of a request, for its answer, for the log, and for whoever searches for it.
//!
//! Not for: the trace that a request is a part of (`telemetry::trace`).

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use data_encoding::HEXLOWER;
use http::{HeaderName, HeaderValue};

use crate::clock::Now;
use crate::keys::KeyForm;

use super::credentials::Credentials;
use super::header_values::HeaderValueWriter;
use super::request_headers::RequestHeaders;

/// The header that carries it, both ways.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The identifier.
#[derive(Clone, Debug)]
pub(super) enum RequestId {
    /// The caller's own.
    Given(HeaderValue),
    /// One of ours: hexadecimal digits.
    Fresh([u8; 16]),
}

impl RequestId {
    /// The caller's own identifier if it is well formed and has no key in it, else a new one: it is repeated in the log
    /// and in the bodies of errors, where a key has no place.
    pub(super) fn of(
        headers: RequestHeaders<'_>,
        credentials: &Credentials<'_>,
        form: &KeyForm,
        now: Now,
    ) -> Self {
        let holds_one = |id: &HeaderValue| credentials.appear_in(id.to_str().unwrap_or_default(), form);
        match headers.first_two(&REQUEST_ID) {
            [Some(id), None] if is_well_formed(id) && !holds_one(id) => Self::Given(id.clone()),
            _ => Self::Fresh(fresh(now)),
        }
    }

    /// Its characters.
    pub(super) fn as_str(&self) -> &str {
        let text = match self {
            Self::Given(id) => id.as_bytes(),
            Self::Fresh(id) => id,
        };
        std::str::from_utf8(text).expect("identifiers are visible ASCII, ours and those let in")
    }

    /// As a header's value.
    pub(super) fn value(&self, pen: &mut HeaderValueWriter) -> HeaderValue {
        match self {
            Self::Given(id) => id.clone(),
            Self::Fresh(_) => pen.words(self.as_str()).value(),
        }
    }
}

fn is_well_formed(id: &HeaderValue) -> bool {
    let bytes = id.as_bytes();
    (8..=64).contains(&bytes.len()) && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(b))
}

/// So many numbers a thread takes at once, so that threads do not write to one place with every request.
const BLOCK: u64 = 1 << 20;

/// Unique within this life by its count, and between lives by where the count began.
fn number(now: Now) -> u64 {
    static FIRST: OnceLock<u64> = OnceLock::new();
    static BLOCKS: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        /// The next number of this thread, and how many it has left.
        static OWN: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
    }
    let (next, left) = match OWN.get() {
        (_, 0) => {
            let first = *FIRST.get_or_init(|| getrandom::u64().unwrap_or(now.wall.millis()));
            let blocks = BLOCKS.fetch_add(1, Ordering::Relaxed);
            (first.wrapping_add(blocks.wrapping_mul(BLOCK)), BLOCK)
        }
        own => own,
    };
    OWN.set((next.wrapping_add(1), left - 1));
    next
}

fn fresh(now: Now) -> [u8; 16] {
    let mut text = [0u8; 16];
    HEXLOWER.encode_mut(&number(now).to_be_bytes(), &mut text);
    text
}
