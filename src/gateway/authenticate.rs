//! Stage 2: which application does the key belong to?
//!
//! What does not have the form of a key is refused before any lookup. Not for: what the key's tier may ask.

use std::sync::Arc;

use crate::accounts::{Account, KeyDirectory};
use crate::clock::{Now, Wall};
use crate::keys::{Digest, KeyForm, Rights, TierIndex};
use crate::routes::query_names;

use super::parse::ParsedRequest;
use super::refusal::{MisplacedKey, Refusal};

/// Names of query parameters in which other APIs take keys, in any case.
const KEY_PARAMETERS: [&str; 8] =
    ["api_key", "api-key", "apikey", "x-api-key", "key", "token", "access_token", "authorization"];

/// The caller and its rights at the time of the request.
#[derive(Clone, Debug)]
pub(super) struct Caller {
    /// The application.
    pub(super) account: Arc<Account>,
    /// What it may see.
    pub(super) rights: Rights,
    /// Its tier.
    pub(super) tier: TierIndex,
    /// When the key expires.
    pub(super) ends: Option<Wall>,
    /// A number that is fixed for the key, to spread clients in time.
    pub(super) spread: u64,
}

/// Finds the caller.
pub(super) fn authenticate(
    ask: &ParsedRequest<'_>,
    form: &KeyForm,
    roster: &KeyDirectory,
    now: Now,
) -> Result<Caller, Refusal> {
    let key = ask.credentials.key()?.ok_or_else(|| Refusal::KeyMissing(misplaced(ask)))?;
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

/// Where a request without a key may have sent it. Of the query only the names of its parameters are read.
fn misplaced(ask: &ParsedRequest<'_>) -> MisplacedKey {
    let names = ask.query.into_iter().flat_map(query_names);
    let is_for_keys = |name: &str| KEY_PARAMETERS.iter().any(|known| name.eq_ignore_ascii_case(known));
    if names.into_iter().any(|name| is_for_keys(&name)) {
        return MisplacedKey::Query;
    }
    ask.credentials.misplaced()
}
