//! Stage 2: whose key is it?
//!
//! A key comes in one of two headers, or in both if they agree. What does not have the form of a key is refused before
//! any lookup. Not for: what the key's tier may ask.

use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::clock::{Now, Wall};
use crate::keys::{Digest, KeyForm, Rights, SHOWN_CHARACTERS, TierIndex, shown_prefix};
use crate::routes::query_names;

use super::parse::Ask;
use super::refusal::{Misplaced, Refusal};
use crate::accounts::Account;
use crate::accounts::Roster;

/// The header for keys alone. A name that is looked up as text is taken apart at every look.
const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// Names of query parameters by which keys are sent elsewhere, in any case.
const NAMES_OF_KEYS: [&str; 8] =
    ["api_key", "api-key", "apikey", "x-api-key", "key", "token", "access_token", "authorization"];

/// Who asks, and what they may have: as it was when they asked.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    /// The application.
    pub(super) account: Arc<Account>,
    /// What it may see.
    pub(super) rights: Rights,
    /// Its tier.
    pub(crate) tier: TierIndex,
    /// When the key ends.
    pub(super) ends: Option<Wall>,
    /// A number that is fixed for the key, to spread clients in time.
    pub(super) spread: u64,
}

/// Finds out who asks.
pub(super) fn authenticate(
    ask: &Ask<'_>,
    form: &KeyForm,
    roster: &Roster,
    now: Now,
) -> Result<Caller, Refusal> {
    let key = presented(ask.headers)?.ok_or_else(|| Refusal::KeyMissing(misplaced(ask)))?;
    if !form.fits(key) {
        return Err(Refusal::KeyInvalid);
    }
    let digest = Digest::of(key);
    let found = roster.find(&digest).filter(|found| found.ends.is_none_or(|ends| ends > now.wall));
    let found = found.ok_or(Refusal::KeyInvalid)?;
    roster.mark_used(&digest, &found, now.wall);
    let terms = found.account.terms();
    let (rights, tier) = (terms.rights, terms.tier);
    drop(terms);
    Ok(Caller { account: found.account, rights, tier, ends: found.ends, spread: digest.spread() })
}

/// The beginning of the key that was sent, which may be shown to its owner.
pub(super) fn presented_prefix(headers: &HeaderMap) -> &str {
    presented(headers).ok().flatten().map_or("", shown_prefix)
}

/// Whether a key stands in a text: one of our form, or what was sent where keys belong, be it one or not. What is too short
/// to be a key stands in many texts by chance: that has to be all of it.
pub(super) fn has_a_key(text: &str, headers: &HeaderMap, form: &KeyForm) -> bool {
    let values = headers.get_all(AUTHORIZATION).iter().chain(headers.get_all(X_API_KEY));
    let mut sent = values.filter_map(|value| value.to_str().ok()?.split_ascii_whitespace().last());
    let is_in = |key: &str| key == text || (key.len() > SHOWN_CHARACTERS && text.contains(key));
    form.is_within(text) || sent.any(is_in)
}

/// Where a request without a key may have one. Of the query only the names of its parameters are read.
fn misplaced(ask: &Ask<'_>) -> Misplaced {
    let names = ask.query.into_iter().flat_map(query_names);
    if names.into_iter().any(|name| NAMES_OF_KEYS.iter().any(|known| name.eq_ignore_ascii_case(known))) {
        return Misplaced::Query;
    }
    let credentials = ask.headers.get(AUTHORIZATION).map(HeaderValue::as_bytes).unwrap_or_default();
    let scheme = scheme(credentials);
    if scheme.is_empty() || is_bearer(scheme) { Misplaced::Nowhere } else { Misplaced::Scheme }
}

/// The key that was sent, if one was: in either header, or the same in both.
pub(super) fn presented(headers: &HeaderMap) -> Result<Option<&str>, Refusal> {
    let bearer = sole(headers.get_all(AUTHORIZATION).iter())?.map(bearer_token).transpose()?.flatten();
    let plain = sole(headers.get_all(X_API_KEY).iter())?.map(text).transpose()?.filter(|key| !key.is_empty());
    match (bearer, plain) {
        (None, None) => Ok(None),
        (Some(key), None) | (None, Some(key)) => Ok(Some(key)),
        (Some(one), Some(other)) if one == other => Ok(Some(one)),
        (Some(_), Some(_)) => Err(Refusal::KeyInvalid),
    }
}

fn sole<'h>(mut values: impl Iterator<Item = &'h HeaderValue>) -> Result<Option<&'h HeaderValue>, Refusal> {
    match (values.next(), values.next()) {
        (value, None) => Ok(value),
        (_, Some(_)) => Err(Refusal::KeyInvalid),
    }
}

fn text(value: &HeaderValue) -> Result<&str, Refusal> {
    value.to_str().map(str::trim).map_err(|_| Refusal::KeyInvalid)
}

/// The token of the Bearer scheme. Another scheme, or no token, is no key.
fn bearer_token(value: &HeaderValue) -> Result<Option<&str>, Refusal> {
    // The scheme first: what another one carries is none of our business, whatever its bytes.
    let scheme = scheme(value.as_bytes());
    if !is_bearer(scheme) {
        return Ok(None);
    }
    let token = text(value)?.get(scheme.len()..).unwrap_or_default().trim();
    Ok((!token.is_empty()).then_some(token))
}

/// The scheme of credentials: all before the first blank.
fn scheme(credentials: &[u8]) -> &[u8] {
    let end = credentials.iter().position(|byte| b" \t".contains(byte));
    credentials.get(..end.unwrap_or(credentials.len())).unwrap_or_default()
}

fn is_bearer(scheme: &[u8]) -> bool {
    scheme.eq_ignore_ascii_case(b"bearer")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        map
    }

    #[test]
    fn every_spelling_of_one_key_is_one_key() {
        for pairs in [
            &[("authorization", "Bearer k1")][..],
            &[("authorization", "bearer  k1")],
            &[("authorization", "BEARER\tk1")],
            &[("x-api-key", "k1")],
            &[("authorization", "Bearer k1"), ("x-api-key", "k1")],
            &[("authorization", "Basic dTpw"), ("x-api-key", "k1")],
            &[("authorization", "Bearer"), ("x-api-key", "k1")],
            &[("authorization", "Basic \u{e9}"), ("x-api-key", "k1")],
        ] {
            assert_eq!(presented(&headers(pairs)), Ok(Some("k1")), "{pairs:?}");
        }
    }

    #[test]
    fn a_key_in_a_text_is_noticed_if_it_has_our_form_or_was_sent() {
        let form = KeyForm::new("sg_live", true);
        let (ours, foreign) = (form.mint().unwrap(), "tp_1234567890abcdef");
        assert!(has_a_key(&format!("x-{}", ours.expose()), &headers(&[]), &form));
        for sent in [
            &[("authorization", "Bearer tp_1234567890abcdef")][..],
            &[("authorization", "Basic tp_1234567890abcdef")],
            &[("x-api-key", "tp_1234567890abcdef"), ("authorization", "Bearer other")],
            &[("x-api-key", "other"), ("x-api-key", "tp_1234567890abcdef")],
        ] {
            for text in [foreign, "x-tp_1234567890abcdef.1"] {
                assert!(has_a_key(text, &headers(sent), &form), "{text} {sent:?}");
            }
            assert!(!has_a_key("atlas", &headers(sent), &form), "{sent:?}");
        }
        // Without having been sent as one it is any text, and a text of a few letters is no key.
        assert!(!has_a_key(foreign, &headers(&[]), &form));
        assert!(!has_a_key("atlas", &headers(&[("x-api-key", "a")]), &form));
        assert!(has_a_key("a", &headers(&[("x-api-key", "a")]), &form));
    }

    #[test]
    fn two_keys_or_a_header_twice_is_an_invalid_key_and_another_scheme_is_none() {
        for pairs in [
            &[("authorization", "Bearer k1"), ("x-api-key", "k2")][..],
            &[("authorization", "Bearer k1"), ("authorization", "Bearer k1")],
            &[("x-api-key", "k1"), ("x-api-key", "k1")],
            &[("x-api-key", "k\u{e9}")],
        ] {
            assert_eq!(presented(&headers(pairs)), Err(Refusal::KeyInvalid), "{pairs:?}");
        }
        for pairs in [
            &[][..],
            &[("authorization", "Basic dTpw")],
            &[("authorization", "Bearer ")],
            &[("x-api-key", "")],
        ] {
            assert_eq!(presented(&headers(pairs)), Ok(None), "{pairs:?}");
        }
    }
}
