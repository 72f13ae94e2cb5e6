//! Stage 2: finds the application of the key.
//!
//! Text without the form of a key is refused before any lookup. Does not check what the tier may request; see
//! `resolve`.

use std::sync::Arc;

use crate::accounts::{Account, KeyDirectory, KeyLookup};
use crate::gateway::refusal::{MisplacedKey, Refusal};
use scoregate_base::clock::{Now, Wall};
use scoregate_base::keys::{Digest, KeyForm};
use scoregate_base::limits::Limits;
use scoregate_base::plans::{Rights, TierIndex};
use scoregate_base::routes::query_names;

use super::parse::ParsedRequest;

/// Names of query parameters, in lower case, in which other APIs accept keys.
const KEY_PARAMETERS: [&str; 8] = [
    "api_key",
    "api-key",
    "apikey",
    "x-api-key",
    "key",
    "token",
    "access_token",
    "authorization",
];

/// The application of a request, and its terms at the time of the request. Copied: all applications of a tier share their
/// terms, and threads that count references to them would contend.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) account: Arc<Account>,
    pub(crate) rights: Rights,
    pub(crate) tier: TierIndex,
    pub(crate) limits: Limits,
    /// When the key expires.
    pub(crate) expires_at: Option<Wall>,
    /// A number fixed per key; spreads clients over time.
    pub(crate) spread: u64,
}

pub(crate) fn authenticate(
    request: &ParsedRequest<'_>,
    form: &KeyForm,
    key_directory: &KeyDirectory,
    now: Now,
) -> Result<Caller, Refusal> {
    let key = request
        .credentials
        .key()?
        .ok_or_else(|| Refusal::KeyMissing(misplaced(request)))?;
    if !form.fits(key) {
        return Err(Refusal::KeyInvalid);
    }
    let digest = Digest::of(key);
    let found = find(&digest, key_directory, now)?;
    key_directory.mark_used(&digest, &found, now.wall);
    Ok(Caller::of(found, &digest))
}

/// Finds a key that has not expired. A revoked key has.
pub(crate) fn find(
    digest: &Digest,
    key_directory: &KeyDirectory,
    now: Now,
) -> Result<KeyLookup, Refusal> {
    let found = key_directory.find(digest).filter(|found| {
        found
            .expires_at
            .is_none_or(|expires_at| expires_at > now.wall)
    });
    found.ok_or(Refusal::KeyInvalid)
}

impl Caller {
    pub(crate) fn of(found: KeyLookup, digest: &Digest) -> Self {
        let terms = found.account.terms();
        let rights = terms.rights;
        let tier = terms.tier;
        let limits = terms.limits;
        drop(terms);
        let account = found.account;
        let expires_at = found.expires_at;
        let spread = digest.spread();
        Self {
            account,
            rights,
            tier,
            limits,
            expires_at,
            spread,
        }
    }

    /// The same caller with a copy of the account, on which steps can be tried without an effect.
    pub(crate) fn on_a_copy(&self) -> Self {
        Self {
            account: Arc::new(self.account.copied()),
            ..self.clone()
        }
    }
}

/// Where a request without a key may have put it. Reads only the names of query parameters.
fn misplaced(request: &ParsedRequest<'_>) -> MisplacedKey {
    let names = request.query.into_iter().flat_map(query_names);
    let is_for_keys = |name: &str| {
        KEY_PARAMETERS
            .iter()
            .any(|known| name.eq_ignore_ascii_case(known))
    };
    if names.into_iter().any(|name| is_for_keys(&name)) {
        return MisplacedKey::Query;
    }
    request.credentials.misplaced()
}
