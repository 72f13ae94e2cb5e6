//! The credentials of a request, which are read from its headers once.
//!
//! A key is sent in one of two headers, or in both with the same value. `authenticate` checks whether the key exists.

use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};

use crate::{
    accounts::KeyFault,
    gateway::{MisplacedKey, Refusal},
};
use scoregate_base::keys::{KeyForm, SHOWN_CHARACTERS, shown_prefix};

use super::request_headers::{FirstTwo, RequestHeaders, X_API_KEY};

/// The credentials in a request's headers.
#[derive(Debug)]
pub struct Credentials<'h> {
    headers: &'h HeaderMap,
    key: Result<Option<&'h str>, Refusal>,
}

impl<'h> Credentials<'h> {
    pub(crate) fn new(headers: RequestHeaders<'h>) -> Self {
        Self {
            headers: headers.map(),
            key: presented(headers),
        }
    }

    /// The key, if it was sent in one header only, or with the same value in both.
    pub(crate) fn key(&self) -> Result<Option<&'h str>, Refusal> {
        self.key.clone()
    }

    /// The first characters of the key, which may be shown to its owner.
    pub(crate) fn prefix(&self) -> &'h str {
        self.key
            .as_ref()
            .ok()
            .copied()
            .flatten()
            .map_or("", shown_prefix)
    }

    /// The place in the headers that may contain a misplaced key.
    pub(crate) fn misplaced(&self) -> MisplacedKey {
        let value = self.headers.get(AUTHORIZATION);
        let scheme = scheme(value.map(HeaderValue::as_bytes).unwrap_or_default());
        if scheme.is_empty() || is_bearer(scheme) {
            MisplacedKey::Nowhere
        } else {
            MisplacedKey::Scheme
        }
    }

    /// Whether a text contains a key in the gateway's format, or the value that was sent as a key, in any format. Short
    /// values occur in many texts by chance, so they must equal the whole text.
    pub(crate) fn appear_in(&self, text: &str, form: &KeyForm) -> bool {
        let values = self
            .headers
            .get_all(AUTHORIZATION)
            .iter()
            .chain(self.headers.get_all(X_API_KEY));
        let mut sent =
            values.filter_map(|value| value.to_str().ok()?.split_ascii_whitespace().last());
        form.is_within(text)
            || sent.any(|key| key == text || (key.len() > SHOWN_CHARACTERS && text.contains(key)))
    }
}

/// The key, if it was sent in one header only, or with the same value in both.
fn presented(headers: RequestHeaders<'_>) -> Result<Option<&str>, Refusal> {
    let bearer = sole(headers.authorization)?
        .map(bearer_token)
        .transpose()?
        .flatten();
    let plain = sole(headers.api_key)?
        .map(text)
        .transpose()?
        .filter(|key| !key.is_empty());
    match (bearer, plain) {
        (None, None) => Ok(None),
        (Some(key), None) | (None, Some(key)) => Ok(Some(key)),
        (Some(one), Some(other)) if one == other => Ok(Some(one)),
        // There are two different keys, and choosing one could charge the wrong application.
        (Some(_), Some(_)) => Err(Refusal::KeyInvalid(KeyFault::Malformed)),
    }
}

fn sole(values: FirstTwo<'_>) -> Result<Option<&HeaderValue>, Refusal> {
    match values {
        [value, None] => Ok(value),
        [_, Some(_)] => Err(Refusal::KeyInvalid(KeyFault::Malformed)),
    }
}

fn text(value: &HeaderValue) -> Result<&str, Refusal> {
    value
        .to_str()
        .map(str::trim_ascii)
        .map_err(|_| Refusal::KeyInvalid(KeyFault::Malformed))
}

/// The token of the Bearer scheme. Another scheme, or an empty token, is not a key.
fn bearer_token(value: &HeaderValue) -> Result<Option<&str>, Refusal> {
    // The scheme is checked first: credentials of other schemes are not read.
    let scheme = scheme(value.as_bytes());
    if !is_bearer(scheme) {
        return Ok(None);
    }
    let token = text(value)?.get(scheme.len()..).unwrap_or_default().trim();
    Ok((!token.is_empty()).then_some(token))
}

/// The scheme: everything before the first space or tab.
fn scheme(credentials: &[u8]) -> &[u8] {
    let end = credentials.iter().position(|byte| b" \t".contains(byte));
    credentials
        .get(..end.unwrap_or(credentials.len()))
        .unwrap_or_default()
}

fn is_bearer(scheme: &[u8]) -> bool {
    scheme.eq_ignore_ascii_case(b"bearer")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn has_a_key(text: &str, headers: &HeaderMap, form: &KeyForm) -> bool {
        Credentials::new(RequestHeaders::new(headers)).appear_in(text, form)
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        map
    }

    #[test]
    fn keys_in_text_are_detected_by_form_or_by_value() {
        let form = KeyForm::new("sg_live", true);
        let ours = form.mint().unwrap();
        let foreign = "tp_1234567890abcdef";
        assert!(has_a_key(
            &format!("x-{}", ours.expose()),
            &headers(&[]),
            &form
        ));
        for sent in [
            &[("authorization", "Bearer tp_1234567890abcdef")][..],
            &[("authorization", "Basic tp_1234567890abcdef")],
            &[
                ("x-api-key", "tp_1234567890abcdef"),
                ("authorization", "Bearer other"),
            ],
            &[("x-api-key", "other"), ("x-api-key", "tp_1234567890abcdef")],
        ] {
            for text in [foreign, "x-tp_1234567890abcdef.1"] {
                assert!(has_a_key(text, &headers(sent), &form), "{text} {sent:?}");
            }
            assert!(!has_a_key("atlas", &headers(sent), &form), "{sent:?}");
        }
        // A value that was not sent as a key is ordinary text. So is a word that merely contains a very short key.
        assert!(!has_a_key(foreign, &headers(&[]), &form));
        assert!(!has_a_key("atlas", &headers(&[("x-api-key", "a")]), &form));
        assert!(has_a_key("a", &headers(&[("x-api-key", "a")]), &form));
    }
}
