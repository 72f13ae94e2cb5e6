//! W3C Trace Context: read from `traceparent`, logged, and sent upstream with a new parent id.
//!
//! The header consists of hexadecimal digits of fixed length, so no other text from a client is passed on. `tracestate`
//! is ignored, because it is free text. Spans are recorded in `traces`.

use std::{fmt, num::NonZeroU64};

use http::{HeaderMap, HeaderName, HeaderValue};

/// The name of the header.
pub const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The flags defined by level 2 of the standard: sampled and random trace id. All other flags must be zero when the
/// header is passed on.
const KNOWN_FLAGS: u8 = SAMPLED | RANDOM;
const SAMPLED: u8 = 0b01;
const RANDOM: u8 = 0b10;

/// The id of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanId(NonZeroU64);

/// A trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceContext {
    /// 16 bytes as lower-case hexadecimal digits.
    id: [u8; 32],
    flags: u8,
    /// The recorded parent span of requests to the backend, if any.
    span: Option<SpanId>,
}

impl SpanId {
    /// The id with this number. Zero is invalid, so it is replaced with one.
    pub fn new(number: u64) -> Self {
        Self(NonZeroU64::new(number).unwrap_or(NonZeroU64::MIN))
    }

    /// The id of the caller's span, if a request has exactly one valid header.
    pub fn of_caller(headers: &HeaderMap) -> Option<Self> {
        TraceContext::of(headers)?;
        let parent = headers.get(TRACEPARENT)?.to_str().ok()?.split('-').nth(2)?;
        NonZeroU64::new(u64::from_str_radix(parent, 16).ok()?).map(Self)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl TraceContext {
    /// The trace of a request, if it has exactly one valid header.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let mut given = headers.get_all(TRACEPARENT).iter();
        let one = given.next()?;
        if given.next().is_some() {
            return None;
        }
        let mut parts = one.to_str().ok()?.split('-');
        let version = parts.next()?;
        let trace = parts.next()?;
        let parent = parts.next()?;
        let flags = parts.next()?;
        // Later versions may have more fields. Version 0 has exactly four.
        let is_known =
            is_hex(version, 2) && version != "ff" && (version != "00" || parts.next().is_none());
        let is_good =
            is_hex(trace, 32) && is_nonzero(trace) && is_hex(parent, 16) && is_nonzero(parent);
        if !(is_known && is_good && is_hex(flags, 2)) {
            return None;
        }
        let flags = u8::from_str_radix(flags, 16).ok()? & KNOWN_FLAGS;
        Some(Self {
            id: trace.as_bytes().try_into().ok()?,
            flags,
            span: None,
        })
    }

    /// A new sampled trace with this random id.
    pub fn started(id: u128) -> Self {
        // An all-zero id is invalid.
        let digits = format!("{:032x}", id.max(1));
        let id = digits
            .as_bytes()
            .try_into()
            .expect("a u128 has at most 32 digits");
        Self {
            id,
            flags: SAMPLED | RANDOM,
            span: None,
        }
    }

    /// The trace id.
    pub fn id(&self) -> &str {
        std::str::from_utf8(&self.id).expect("it was read as hexadecimal digits")
    }

    /// The trace flags.
    pub fn flags(&self) -> u8 {
        self.flags
    }

    /// Whether spans of the trace are recorded.
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The same trace, but further spans are not recorded.
    pub fn unsampled(self) -> Self {
        Self {
            flags: self.flags & !SAMPLED,
            ..self
        }
    }

    /// The same trace, with this recorded span as the parent of further spans.
    pub fn within(self, span: SpanId) -> Self {
        Self {
            span: Some(span),
            ..self
        }
    }

    /// The header for an upstream request. The parent id is the id of the recorded span, or a new id if there is none.
    /// `None` if the system's random generator fails. The request is then sent without a trace.
    pub fn child(&self) -> Option<HeaderValue> {
        let parent = match self.span {
            Some(span) => span,
            None => SpanId::new(getrandom::u64().ok()?),
        };
        HeaderValue::try_from(format!("00-{}-{parent}-{:02x}", self.id(), self.flags)).ok()
    }
}

fn is_hex(part: &str, digits: usize) -> bool {
    part.len() == digits
        && part
            .bytes()
            .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

fn is_nonzero(part: &str) -> bool {
    part.bytes().any(|b| b != b'0')
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0af7651916cd43dd8448eb211c80319c";

    fn of(text: &str) -> Option<TraceContext> {
        let field = (TRACEPARENT, text.parse().unwrap());
        TraceContext::of(&[field].into_iter().collect())
    }

    #[test]
    fn only_well_formed_trace_headers_are_accepted() {
        let good = format!("00-{ID}-b7ad6b7169203331-01");
        assert_eq!(of(&good).unwrap().id(), ID);
        assert_eq!(
            of(&format!("cc-{ID}-b7ad6b7169203331-01-later"))
                .unwrap()
                .id(),
            ID
        );
        for bad in [
            String::new(),
            good.to_uppercase(),
            format!("{good}-more"),
            good.replace("0af7", "0ag7"),
            good.replace(ID, &"0".repeat(32)),
            good.replace("b7ad6b7169203331", &"0".repeat(16)),
            good.replacen("00", "ff", 1),
            good.replace("-01", "-1"),
            good.replace("-01", "-+1"),
            ID.to_owned(),
        ] {
            assert_eq!(of(&bad), None, "{bad}");
        }
    }

    #[test]
    fn child_keeps_the_trace_id_and_has_its_own_parent_id() {
        for (version, flags, sent) in [
            ("00", "00", "00"),
            ("00", "01", "01"),
            ("00", "03", "03"),
            ("00", "fe", "02"),
            ("cc", "09", "01"),
        ] {
            let trace = of(&format!("{version}-{ID}-b7ad6b7169203331-{flags}")).unwrap();
            let one = trace.child().unwrap();
            let other = trace.child().unwrap();
            assert_ne!(one, other);
            let headers: HeaderMap = [(TRACEPARENT, one.clone())].into_iter().collect();
            assert_eq!(TraceContext::of(&headers).unwrap().id(), ID);
            let one = one.to_str().unwrap();
            assert!(
                one.starts_with(&format!("00-{ID}-")) && one.ends_with(&format!("-{sent}")),
                "{one}"
            );
            assert!(!one.contains("b7ad6b7169203331"));
        }
    }

    #[test]
    fn a_recorded_span_is_the_parent_of_upstream_requests() {
        let trace = TraceContext::started(0xabc).within(SpanId::new(0x1f));
        let header = format!("00-{}abc-000000000000001f-03", "0".repeat(29));
        assert_eq!(trace.child().unwrap(), header.as_str());
        assert_eq!(of(&header).unwrap().id(), trace.id());
        assert!(trace.is_sampled() && !trace.unsampled().is_sampled());
        let headers: HeaderMap = [(TRACEPARENT, header.parse().unwrap())]
            .into_iter()
            .collect();
        assert_eq!(SpanId::of_caller(&headers), Some(SpanId::new(0x1f)));
        assert_eq!(SpanId::of_caller(&HeaderMap::new()), None);
    }
}
