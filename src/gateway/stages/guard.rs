//! Limits refusals, before the response is built. The buckets are in `AddressGuard` and in the account.

use crate::gateway::{AddressGuard, Peer, Refusal};
use scoregate_base::clock::Now;

use super::authenticate::Caller;

/// Replaces a refusal with a 429 if the caller has had too many refusals. Each known application has a separate guard.
pub fn guarded(
    refusal: Refusal,
    guard: &AddressGuard,
    caller: Option<&Caller>,
    peer: Peer,
    now: Now,
) -> Refusal {
    if !refusal.costs_guard_token() {
        return refusal;
    }
    let is_taken = match caller {
        Some(caller) => caller.take_guard_token(now),
        None => guard.take(peer.address, now),
    };
    if is_taken {
        refusal
    } else {
        Refusal::TooManyRefusals
    }
}
