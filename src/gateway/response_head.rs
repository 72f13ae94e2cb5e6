//! The head of an answer: which fields it has, and what stands in them.
//!
//! The same few sets of fields come again and again. Of each a map of its names is kept, which an answer copies and fills
//! with its values: names are hashed once, and not for every answer. Not for: what is said in which field (`respond`).

use std::cell::RefCell;

use http::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, LAST_MODIFIED, REFERRER_POLICY, RETRY_AFTER, STRICT_TRANSPORT_SECURITY, VARY,
    WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::request_id::REQUEST_ID;

/// A field that answers have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeaderField {
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

/// Their names, in the order of the fields, which is that of sending.
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

/// So many sets of fields are kept by a thread. There are some twenty.
const MOST_KEPT: usize = 64;

thread_local! {
    /// Maps of the sets that came up, with nothing in their fields. Each thread has its own, so none waits for another.
    static KEPT: RefCell<Vec<(HeaderFieldSet, HeaderMap)>> = const { RefCell::new(Vec::new()) };
}

/// Which fields there are: a bit for each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct HeaderFieldSet(u32);

/// The head of an answer in the making.
#[derive(Debug, Default)]
pub(super) struct ResponseHead {
    values: [Option<HeaderValue>; FIELDS],
    /// Those that are there.
    set: HeaderFieldSet,
}

impl ResponseHead {
    /// Says something in a field.
    pub(super) fn put(&mut self, field: HeaderField, value: HeaderValue) {
        if let Some(place) = self.values.get_mut(field as usize) {
            *place = Some(value);
            self.set.0 |= 1 << field as u32;
        }
    }

    /// The fields as they are sent. Nothing is left in this then: it is large, and is not moved around.
    pub(super) fn take_map(&mut self) -> HeaderMap {
        let set = std::mem::take(&mut self.set);
        KEPT.with_borrow_mut(|kept| {
            if let Some((_, names)) = kept.iter().find(|(known, _)| *known == set) {
                return self.filled(names.clone());
            }
            let made = self.made();
            if made.keys().eq(set.names()) && kept.len() < MOST_KEPT {
                let mut names = made.clone();
                names.values_mut().for_each(|value| *value = HeaderValue::from_static(""));
                kept.push((set, names));
            }
            made
        })
    }

    /// Fills a map that has these fields in this order.
    fn filled(&mut self, mut names: HeaderMap) -> HeaderMap {
        for (place, value) in names.values_mut().zip(self.values.iter_mut().filter_map(Option::take)) {
            *place = value;
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

    /// A head with these fields, in each the word and the field's number.
    fn head(fields: &[HeaderField], word: &str) -> HeaderMap {
        let mut head = ResponseHead::default();
        for field in fields {
            head.put(*field, HeaderValue::try_from(format!("{word} {}", *field as usize)).unwrap());
        }
        head.take_map()
    }

    #[test]
    fn every_value_stands_in_its_field_the_first_time_and_when_the_names_are_known() {
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
        let known = KEPT.with_borrow(|kept| kept.iter().filter(|(_, names)| !names.is_empty()).count());
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
