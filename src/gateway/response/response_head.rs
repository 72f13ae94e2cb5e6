//! The headers of a response.
//!
//! Responses use few distinct sets of header fields. For each set a map of its names is kept, which a response clones
//! and fills with values, so names are not hashed for every response. The values are chosen in `respond`.

use std::cell::RefCell;

use http::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, LAST_MODIFIED, REFERRER_POLICY, RETRY_AFTER, STRICT_TRANSPORT_SECURITY, VARY,
    WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::super::request_id::REQUEST_ID;

/// A header field of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum HeaderField {
    ContentType,
    ContentLength,
    ContentEncoding,
    Etag,
    LastModified,
    CacheControl,
    CacheStatus,
    Allow,
    WwwAuthenticate,
    RetryAfter,
    Connection,
    ContentSecurityPolicy,
    ReferrerPolicy,
    Limit,
    Remaining,
    Reset,
    Resource,
    Standing,
    Policy,
    Vary,
    ContentTypeOptions,
    RequestId,
    StrictTransportSecurity,
}

const FIELDS: usize = 23;

/// The names, in the order of the variants, which is the order on the wire.
const NAMES: [HeaderName; FIELDS] = [
    CONTENT_TYPE,
    CONTENT_LENGTH,
    CONTENT_ENCODING,
    ETAG,
    LAST_MODIFIED,
    CACHE_CONTROL,
    HeaderName::from_static("cache-status"),
    ALLOW,
    WWW_AUTHENTICATE,
    RETRY_AFTER,
    CONNECTION,
    CONTENT_SECURITY_POLICY,
    REFERRER_POLICY,
    HeaderName::from_static("x-ratelimit-limit"),
    HeaderName::from_static("x-ratelimit-remaining"),
    HeaderName::from_static("x-ratelimit-reset"),
    HeaderName::from_static("x-ratelimit-resource"),
    HeaderName::from_static("ratelimit"),
    HeaderName::from_static("ratelimit-policy"),
    VARY,
    X_CONTENT_TYPE_OPTIONS,
    REQUEST_ID,
    STRICT_TRANSPORT_SECURITY,
];

/// Maximum number of sets kept per thread. About twenty occur.
const MAX_TEMPLATES: usize = 64;

thread_local! {
    /// Maps of the sets used so far, with empty values. One list per thread avoids locks.
    static TEMPLATES: RefCell<Vec<(HeaderFieldSet, HeaderMap)>> = const { RefCell::new(Vec::new()) };
}

/// A set of fields, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct HeaderFieldSet(u32);

/// The headers of a response under construction.
#[derive(Debug, Default)]
pub(in super::super) struct ResponseHead {
    values: [Option<HeaderValue>; FIELDS],
    /// Fields that are set.
    set: HeaderFieldSet,
}

impl ResponseHead {
    /// Sets a field.
    pub(in super::super) fn put(&mut self, field: HeaderField, value: HeaderValue) {
        if let Some(index) = self.values.get_mut(field as usize) {
            *index = Some(value);
            self.set.0 |= 1 << field as u32;
        }
    }

    /// Takes the fields as they are sent and leaves this empty: it is large and must not be moved.
    pub(in super::super) fn take_map(&mut self) -> HeaderMap {
        let set = std::mem::take(&mut self.set);
        TEMPLATES.with_borrow_mut(|kept| {
            if let Some((_, names)) = kept.iter().find(|(known, _)| *known == set) {
                return self.filled(names.clone());
            }
            let made = self.made();
            if made.keys().eq(set.names()) && kept.len() < MAX_TEMPLATES {
                let mut names = made.clone();
                names.values_mut().for_each(|value| *value = HeaderValue::from_static(""));
                kept.push((set, names));
            }
            made
        })
    }

    /// Fills a map that has exactly these fields in this order.
    fn filled(&mut self, mut names: HeaderMap) -> HeaderMap {
        for (index, value) in names.values_mut().zip(self.values.iter_mut().filter_map(Option::take)) {
            *index = value;
        }
        names
    }

    fn made(&mut self) -> HeaderMap {
        let values = self.values.iter_mut().map(Option::take);
        NAMES.into_iter().zip(values).filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

impl HeaderFieldSet {
    fn names(self) -> impl Iterator<Item = HeaderName> {
        let is_in = move |at: usize| (self.0 >> at) & 1 == 1;
        NAMES.into_iter().enumerate().filter(move |(at, _)| is_in(*at)).map(|(_, name)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a map of these fields; each value is `word` and the field's number.
    fn head(fields: &[HeaderField], word: &str) -> HeaderMap {
        let mut head = ResponseHead::default();
        for field in fields {
            head.put(*field, HeaderValue::try_from(format!("{word} {}", *field as usize)).unwrap());
        }
        head.take_map()
    }

    #[test]
    fn values_have_their_fields_with_new_and_known_name_sets() {
        let sets: [&[HeaderField]; 4] = [
            &[HeaderField::Etag, HeaderField::Vary, HeaderField::ContentType],
            &[HeaderField::Vary, HeaderField::ContentType],
            &[
                HeaderField::StrictTransportSecurity,
                HeaderField::RequestId,
                HeaderField::Limit,
                HeaderField::Etag,
            ],
            &[],
        ];
        for word in ["first", "second", "third"] {
            for fields in sets {
                let map = head(fields, word);
                assert_eq!(map.len(), fields.len());
                for field in fields {
                    assert_eq!(map[&NAMES[*field as usize]], format!("{word} {}", *field as usize));
                }
            }
        }
        let known = TEMPLATES.with_borrow(|kept| kept.iter().filter(|(_, names)| !names.is_empty()).count());
        assert_eq!(known, 3, "what is copied has to have been kept");
    }

    #[test]
    fn fields_have_their_own_names() {
        for (field, name) in [
            (HeaderField::ContentType, "content-type"),
            (HeaderField::CacheStatus, "cache-status"),
            (HeaderField::Allow, "allow"),
            (HeaderField::Limit, "x-ratelimit-limit"),
            (HeaderField::Standing, "ratelimit"),
            (HeaderField::Policy, "ratelimit-policy"),
            (HeaderField::RequestId, "x-request-id"),
            (HeaderField::StrictTransportSecurity, "strict-transport-security"),
        ] {
            assert_eq!(NAMES[field as usize], name);
        }
        assert_eq!(HeaderField::StrictTransportSecurity as usize + 1, FIELDS);
    }
}
