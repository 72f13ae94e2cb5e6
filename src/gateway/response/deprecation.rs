//! Announces the deprecation (RFC 9745) and sunset (RFC 8594) of the API, with a link to details, as prepared header
//! values. The dates have no other effect.

use http::header::{HeaderMap, HeaderValue};

use scoregate_base::clock::Wall;

/// The announcement. Empty by default.
#[derive(Clone, Debug, Default)]
pub struct Deprecation {
    since: Option<HeaderValue>,
    sunset: Option<HeaderValue>,
    link: Option<HeaderValue>,
}

impl Deprecation {
    /// Announces the time of the deprecation, which may be in the past or the future, and the time of the removal.
    pub fn new(deprecated_at: Option<Wall>, sunset_at: Option<Wall>) -> Self {
        let since = deprecated_at.map(|at| format!("@{}", at.seconds()));
        Self {
            since: since.map(date),
            sunset: sunset_at.map(|at| date(at.http_date())),
            link: None,
        }
    }

    /// Adds a link to a description. Returns `None` if the address is not a valid header value.
    pub fn described_at(self, address: &str) -> Option<Self> {
        let mut bytes = address.bytes();
        if bytes.any(|byte| !byte.is_ascii_graphic() || b"<>\"".contains(&byte)) {
            return None;
        }
        let link = HeaderValue::try_from(format!("<{address}>; rel=\"deprecation\"")).ok()?;
        Some(Self {
            link: Some(link),
            ..self
        })
    }

    /// The value of `Link`.
    pub fn link(&self) -> Option<&HeaderValue> {
        self.link.as_ref()
    }

    /// Adds the headers to a response.
    #[inline]
    pub(crate) fn write(&self, headers: &mut HeaderMap) {
        set(headers, "deprecation", self.since.as_ref());
        set(headers, "sunset", self.sunset.as_ref());
        set(headers, "link", self.link.as_ref());
    }
}

#[inline]
fn set(headers: &mut HeaderMap, name: &'static str, value: Option<&HeaderValue>) {
    if let Some(value) = value {
        headers.insert(name, value.clone());
    }
}

fn date(text: String) -> HeaderValue {
    HeaderValue::try_from(text).expect("a date is visible ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deprecation_dates_follow_their_standards() {
        let at = |text| Wall::parse_rfc3339(text);
        let deprecation = Deprecation::new(
            at("2026-11-22T00:00:00.5Z"),
            at("2027-06-30T22:00:00+02:00"),
        );
        let mut headers = HeaderMap::new();
        deprecation
            .described_at("https://example.org/end?of=v1")
            .unwrap()
            .write(&mut headers);
        assert_eq!(headers["deprecation"], "@1795305600");
        assert_eq!(headers["sunset"], "Wed, 30 Jun 2027 20:00:00 GMT");
        assert_eq!(
            headers["link"],
            "<https://example.org/end?of=v1>; rel=\"deprecation\""
        );
    }

    #[test]
    fn without_an_announcement_there_is_no_header() {
        let mut headers = HeaderMap::new();
        Deprecation::default().write(&mut headers);
        assert!(headers.is_empty());
    }

    #[test]
    fn bracketed_addresses_are_parsed_completely() {
        for address in [
            "https://x/>; rel=\"next",
            "https://x/ y",
            "https://x/\r\n",
            "https://x/\u{e9}",
        ] {
            assert!(
                Deprecation::default().described_at(address).is_none(),
                "{address}"
            );
        }
    }
}
