//! Stage 2: finds the application of the key.
//!
//! A string that does not have the format of a key is refused before any lookup. `resolve` checks the rights of the tier.

use std::sync::Arc;

use crate::{
    accounts::{Account, KeyDirectory, KeyFault, KeyLookup},
    documents::FetchPriority,
    gateway::{MisplacedKey, Refusal},
};
use scoregate_base::{
    clock::{Now, Wall},
    keys::{Digest, KeyForm},
    limits::Limits,
    plans::{Rights, TierIndex},
    routes::query_names,
};
use scoregate_observe::{telemetry::trace::TraceContext, traces::RequestSpan};

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

/// The application of a request, and its terms at the time of the request. The terms are copied: all applications of a
/// tier share them, so threads would contend for their reference count.
#[derive(Clone, Debug)]
pub struct Caller {
    pub(crate) account: Arc<Account>,
    pub(crate) rights: Rights,
    pub(crate) tier: TierIndex,
    pub(crate) limits: Limits,
    /// When the key expires.
    pub(crate) expires_at: Option<Wall>,
    /// A fixed number per key, which spreads clients over time.
    pub(crate) spread: u64,
}

pub fn authenticate(
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
        return Err(Refusal::KeyInvalid(KeyFault::Malformed));
    }
    let digest = Digest::of(key);
    let found = key_directory
        .find_valid(&digest, now.wall)
        .map_err(Refusal::KeyInvalid)?;
    key_directory.mark_used(&digest, &found, now.wall);
    Ok(Caller::new(found, &digest))
}

impl Caller {
    pub(crate) fn new(found: KeyLookup, digest: &Digest) -> Self {
        let terms = found.account.terms();
        Self {
            rights: terms.rights,
            tier: terms.tier,
            limits: terms.limits,
            expires_at: found.expires_at,
            spread: digest.spread(),
            account: found.account,
        }
    }

    /// Whether the usage of all calendar limits is known.
    pub(crate) fn knows_windows(&self) -> bool {
        self.limits.calendar.is_empty() || self.account.state().knows_windows()
    }

    /// The priority of the caller's fetches.
    pub(crate) fn fetch_priority<'t>(
        &self,
        trace: Option<&'t TraceContext>,
        span: Option<&'t Arc<RequestSpan>>,
    ) -> FetchPriority<'t> {
        FetchPriority::caller(self.account.id, self.rights.is_paid(), trace, span)
    }

    /// Takes a token from the guard of the application. Returns `false` if there is none.
    pub(crate) fn take_guard_token(&self, now: Now) -> bool {
        self.account.state().take_guard(&self.limits, now)
    }

    /// The same caller with a copy of the account, so that decisions can be tried without side effects.
    pub(crate) fn on_a_copy(&self) -> Self {
        Self {
            account: Arc::new(self.account.copied()),
            ..self.clone()
        }
    }
}

/// The place of a possibly misplaced key in a request without a key. Reads only the names of query parameters.
fn misplaced(request: &ParsedRequest<'_>) -> MisplacedKey {
    let mut names = request.query.into_iter().flat_map(query_names);
    if names.any(|name| is_for_keys(&name)) {
        return MisplacedKey::Query;
    }
    request.credentials.misplaced()
}

fn is_for_keys(name: &str) -> bool {
    KEY_PARAMETERS
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known))
}
