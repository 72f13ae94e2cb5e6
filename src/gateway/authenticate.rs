//! Stage 2: whose key is it?
//!
//! A key comes in one of two headers, or in both if they agree. What does not have the form of a key is refused before
//! any lookup. Not for: what the key's tier may ask.

use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};

use crate::clock::{Now, Wall};
use crate::keys::{Digest, KeyForm, Rights, shown_prefix};

use super::account::Account;
use super::refusal::Refusal;
use super::roster::Roster;
use super::terms::TierIndex;

/// Who asks, and what they may have: as it was when they asked.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    /// The application.
    pub(super) account: Arc<Account>,
    /// What it may see.
    pub(super) rights: Rights,
    /// Its tier.
    pub(super) tier: TierIndex,
    /// When the key ends.
    pub(super) ends: Option<Wall>,
    /// A number that is fixed for the key, to spread clients in time.
    pub(super) spread: u64,
}

/// Finds out who asks.
pub(super) fn authenticate(
    headers: &HeaderMap,
    form: &KeyForm,
    roster: &Roster,
    now: Now,
) -> Result<Caller, Refusal> {
    let key = presented(headers)?;
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
    presented(headers).map_or("", shown_prefix)
}

/// Whether a text is a key: of our form, or the one that was sent.
pub(super) fn is_a_key(text: &str, headers: &HeaderMap, form: &KeyForm) -> bool {
    form.is_ours(text) || presented(headers).is_ok_and(|key| key == text)
}

/// The key that was sent: in either header, or the same in both.
pub(super) fn presented(headers: &HeaderMap) -> Result<&str, Refusal> {
    let bearer = sole(headers.get_all(AUTHORIZATION).iter())?.map(bearer_token).transpose()?.flatten();
    let plain =
        sole(headers.get_all("x-api-key").iter())?.map(text).transpose()?.filter(|key| !key.is_empty());
    match (bearer, plain) {
        (None, None) => Err(Refusal::KeyMissing),
        (Some(key), None) | (None, Some(key)) => Ok(key),
        (Some(one), Some(other)) if one == other => Ok(one),
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
    let scheme_end = value.as_bytes().iter().position(|byte| b" \t".contains(byte));
    let scheme = value.as_bytes().get(..scheme_end.unwrap_or(value.len())).unwrap_or_default();
    if !scheme.eq_ignore_ascii_case(b"bearer") {
        return Ok(None);
    }
    let token = text(value)?.get(scheme.len()..).unwrap_or_default().trim();
    Ok((!token.is_empty()).then_some(token))
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
            assert_eq!(presented(&headers(pairs)), Ok("k1"), "{pairs:?}");
        }
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
            assert_eq!(presented(&headers(pairs)), Err(Refusal::KeyMissing), "{pairs:?}");
        }
    }
}
