//! The headers of a response, set in the order in which they are sent.
//!
//! Responses use few distinct sets of header fields. For each set, a map with the default values of the fields is kept.
//! A response copies the map and replaces the values that differ, so names are not hashed for every response. `respond`
//! chooses the values.

use std::cell::RefCell;

use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{
        ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH,
        CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, LAST_MODIFIED, REFERRER_POLICY, RETRY_AFTER,
        STRICT_TRANSPORT_SECURITY, VARY, ValuesMut, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
    },
};

use crate::gateway::request::request_id::REQUEST_ID;
use scoregate_base::routes::headers::VARY_BY_KEY;

/// A header field of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderField {
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

/// The names and the default values, in the order of the variants. This is the order on the wire.
const FIELDS: [(HeaderName, &str); 23] = [
    (CONTENT_TYPE, "application/json"),
    (CONTENT_LENGTH, ""),
    (CONTENT_ENCODING, ""),
    (ETAG, ""),
    (LAST_MODIFIED, ""),
    (CACHE_CONTROL, ""),
    (HeaderName::from_static("cache-status"), ""),
    (ALLOW, ""),
    (WWW_AUTHENTICATE, ""),
    (RETRY_AFTER, ""),
    (CONNECTION, ""),
    (CONTENT_SECURITY_POLICY, ""),
    (REFERRER_POLICY, ""),
    (HeaderName::from_static("x-ratelimit-limit"), ""),
    (HeaderName::from_static("x-ratelimit-remaining"), ""),
    (HeaderName::from_static("x-ratelimit-reset"), ""),
    (HeaderName::from_static("x-ratelimit-resource"), "day"),
    (HeaderName::from_static("ratelimit"), ""),
    (HeaderName::from_static("ratelimit-policy"), ""),
    (VARY, VARY_BY_KEY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REQUEST_ID, ""),
    (STRICT_TRANSPORT_SECURITY, "max-age=31536000"),
];

/// Maximum number of header field sets kept per thread. In practice, about twenty are used.
// The list is searched linearly, so it has to stay short.
const MAX_TEMPLATES: usize = 64;

thread_local! {
    /// The maps of the sets used so far. One list per thread avoids locks.
    static TEMPLATES: RefCell<Vec<(HeaderFieldSet, HeaderMap)>> = const { RefCell::new(Vec::new()) };
}

/// A set of fields, one bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeaderFieldSet(u32);

impl HeaderFieldSet {
    pub(crate) const fn of(fields: &[HeaderField]) -> Self {
        let mut set = Self(0);
        let mut rest = fields;
        while let [first, others @ ..] = rest {
            set.0 |= first.bit();
            rest = others;
        }
        set
    }

    pub(crate) const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Adds a field if `is_present`.
    pub(crate) const fn and_if(self, is_present: bool, field: HeaderField) -> Self {
        if is_present {
            Self(self.0 | field.bit())
        } else {
            self
        }
    }

    /// A map of these fields with their default values.
    fn template(self) -> HeaderMap {
        TEMPLATES.with_borrow_mut(|kept| {
            if let Some((_, fields)) = kept.iter().find(|(known, _)| *known == self) {
                return fields.clone();
            }
            let present = FIELDS.into_iter().enumerate();
            let present = present.filter(|(at, _)| (self.0 >> at) & 1 == 1);
            let fields: HeaderMap = present
                .map(|(_, (name, value))| (name, HeaderValue::from_static(value)))
                .collect();
            if kept.len() < MAX_TEMPLATES {
                kept.push((self, fields.clone()));
            }
            fields
        })
    }
}

impl HeaderField {
    const fn bit(self) -> u32 {
        1 << self as u32
    }
}

/// The start of a head whose last fields are already chosen.
pub struct HeadStart<'m> {
    map: &'m mut HeaderMap,
    last: HeaderFieldSet,
}

impl<'m> HeadStart<'m> {
    /// Begins a head that is written to `map`.
    pub(crate) fn new(map: &'m mut HeaderMap, last: HeaderFieldSet) -> Self {
        Self { map, last }
    }

    /// Begins the head with its first fields.
    pub(crate) fn with(self, first: HeaderFieldSet) -> HeadWriter<'m> {
        let fields = first.and(self.last);
        *self.map = fields.template();
        HeadWriter {
            values: self.map.values_mut(),
            unset: fields,
        }
    }
}

/// Sets the values of the fields in a map.
pub struct HeadWriter<'m> {
    values: ValuesMut<'m, HeaderValue>,
    /// Fields without a value.
    unset: HeaderFieldSet,
}

impl HeadWriter<'_> {
    /// Sets the next field. All fields must be set, in the order of [`HeaderField`].
    #[inline]
    pub(crate) fn put(&mut self, field: HeaderField, value: HeaderValue) {
        if let Some(place) = self.next(field) {
            *place = value;
        }
    }

    /// Keeps the default value of the next field.
    #[inline]
    pub(crate) fn keep(&mut self, field: HeaderField) {
        self.next(field);
    }

    #[inline]
    fn next(&mut self, field: HeaderField) -> Option<&mut HeaderValue> {
        debug_assert!(
            self.unset.0.trailing_zeros() == field as u32,
            "{field:?} is not the next field"
        );
        self.unset.0 &= !field.bit();
        self.values.next()
    }

    /// Ends the head.
    pub(crate) fn finish(self) {
        debug_assert!(
            self.unset.0 == 0,
            "fields without a value: {:b}",
            self.unset.0
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a map of these fields. Each value is `word` and the field's number.
    fn head(fields: &[HeaderField], word: &str) -> HeaderMap {
        let mut map = HeaderMap::new();
        let mut head =
            HeadStart::new(&mut map, HeaderFieldSet::default()).with(HeaderFieldSet::of(fields));
        for field in fields {
            head.put(
                *field,
                HeaderValue::try_from(format!("{word} {}", *field as usize)).unwrap(),
            );
        }
        head.finish();
        map
    }

    #[test]
    fn values_have_their_fields_with_new_and_known_name_sets() {
        let sets: [&[HeaderField]; 4] = [
            &[
                HeaderField::ContentType,
                HeaderField::Etag,
                HeaderField::Vary,
            ],
            &[HeaderField::ContentType, HeaderField::Vary],
            &[
                HeaderField::Etag,
                HeaderField::Limit,
                HeaderField::RequestId,
                HeaderField::StrictTransportSecurity,
            ],
            &[],
        ];
        for word in ["first", "second", "third"] {
            for fields in sets {
                let map = head(fields, word);
                assert_eq!(map.len(), fields.len());
                for field in fields {
                    assert_eq!(
                        map[&FIELDS[*field as usize].0],
                        format!("{word} {}", *field as usize)
                    );
                }
            }
        }
        let known = TEMPLATES
            .with_borrow(|kept| kept.iter().filter(|(_, names)| !names.is_empty()).count());
        assert_eq!(known, 3, "copied maps must have been kept");
    }

    #[test]
    fn a_field_that_is_kept_has_its_usual_value() {
        let mut map = HeaderMap::new();
        let fields = HeaderFieldSet::of(&[
            HeaderField::ContentType,
            HeaderField::Resource,
            HeaderField::Vary,
        ]);
        let mut head = HeadStart::new(&mut map, HeaderFieldSet::default()).with(fields);
        head.keep(HeaderField::ContentType);
        head.put(HeaderField::Resource, HeaderValue::from_static("minute"));
        head.keep(HeaderField::Vary);
        head.finish();
        let values: Vec<&str> = map.values().map(|value| value.to_str().unwrap()).collect();
        assert_eq!(
            values,
            [
                "application/json",
                "minute",
                "Accept-Encoding, Authorization, X-API-Key"
            ]
        );
    }

    #[test]
    #[should_panic(expected = "Vary is not the next field")]
    fn a_field_out_of_order_is_a_defect() {
        head(&[HeaderField::Vary, HeaderField::Etag], "x");
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
            (
                HeaderField::StrictTransportSecurity,
                "strict-transport-security",
            ),
        ] {
            assert_eq!(FIELDS[field as usize].0, name);
        }
        assert_eq!(
            HeaderField::StrictTransportSecurity as usize + 1,
            FIELDS.len()
        );
    }
}
