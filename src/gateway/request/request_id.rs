//! The request id, for the response and the logs.
//!
//! The id of a trace is in `telemetry::trace`.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use http::{HeaderName, HeaderValue};

use scoregate_base::clock::Now;
use scoregate_base::keys::KeyForm;

use super::credentials::Credentials;
use super::request_headers::RequestHeaders;

/// The header of the id, in requests and responses.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

#[derive(Clone, Debug)]
pub(crate) enum RequestId {
    /// Sent by the caller.
    Given(HeaderValue),
    /// Generated: hexadecimal digits.
    Fresh([u8; 16]),
}

impl RequestId {
    /// The caller's id if it is well formed and contains no key, else a new id. The id is repeated in logs and error
    /// bodies, where a key must not appear.
    pub(crate) fn new(
        headers: RequestHeaders<'_>,
        credentials: &Credentials<'_>,
        form: &KeyForm,
        now: Now,
    ) -> Self {
        match headers.first_two(&REQUEST_ID) {
            [Some(id), None]
                if is_well_formed(id)
                    && !credentials.appear_in(id.to_str().unwrap_or_default(), form) =>
            {
                Self::Given(id.clone())
            }
            _ => Self::Fresh(hexadecimal(number(now))),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        let text = match self {
            Self::Given(id) => id.as_bytes(),
            Self::Fresh(id) => id,
        };
        std::str::from_utf8(text).expect("generated and accepted ids are visible ASCII")
    }

    pub(crate) fn value(&self) -> HeaderValue {
        match self {
            Self::Given(id) => id.clone(),
            Self::Fresh(id) => HeaderValue::from_bytes(id).expect("hexadecimal digits are visible"),
        }
    }
}

fn is_well_formed(id: &HeaderValue) -> bool {
    let bytes = id.as_bytes();
    (8..=64).contains(&bytes.len())
        && bytes
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(b))
}

/// The count of numbers that a thread takes in one step, so that threads rarely write to the shared counter.
const BLOCK: u64 = 1 << 20;

/// Unique within a process by its counter, and between processes by the start value of the counter.
fn number(now: Now) -> u64 {
    static FIRST: OnceLock<u64> = OnceLock::new();
    static BLOCKS: AtomicU64 = AtomicU64::new(0);
    thread_local! {
        /// The next number of this thread, and the count of its remaining numbers.
        static OWN: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
    }
    let (next, left) = match OWN.get() {
        (_, 0) => {
            let first = *FIRST.get_or_init(|| getrandom::u64().unwrap_or(now.wall.millis()));
            // Relaxed: only the number has to be unique.
            let blocks = BLOCKS.fetch_add(1, Ordering::Relaxed);
            (first.wrapping_add(blocks.wrapping_mul(BLOCK)), BLOCK)
        }
        own => own,
    };
    OWN.set((next.wrapping_add(1), left - 1));
    next
}

/// The hexadecimal digits of a number.
fn hexadecimal(number: u64) -> [u8; 16] {
    let mut digits = [0; 16];
    for (pair, byte) in digits.chunks_exact_mut(2).zip(number.to_be_bytes()) {
        pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 0xf)]);
    }
    digits
}

fn digit(value: u8) -> u8 {
    let digit = b"0123456789abcdef".get(usize::from(value));
    digit.copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_written_in_sixteen_lower_case_digits() {
        for number in [
            0,
            1,
            0x0123_4567_89ab_cdef,
            0xfedc_ba98_7654_3210,
            0x9a09_a90a,
            u64::MAX,
        ] {
            assert_eq!(hexadecimal(number), *format!("{number:016x}").as_bytes());
        }
    }
}
