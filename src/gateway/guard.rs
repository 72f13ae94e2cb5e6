//! Limits refusals per address for clients without a valid key.
//!
//! A fixed table of buckets under a keyed hash: clients cannot grow it and cannot choose whom they share a bucket
//! with. An IPv6 address counts as its /64. Callers with a known key have a guard of their own.

use std::hash::BuildHasher as _;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::clock::Now;
use crate::limits::{LimitRule, LimitStatus, TokenBucket};

const BUCKETS: usize = 65_536;

/// Token buckets of refusals, by address.
pub struct AddressGuard {
    buckets: Box<[AtomicU64]>,
    hash_builder: foldhash::quality::RandomState,
    limit: AtomicU32,
}

impl AddressGuard {
    /// Allows `limit` refusals a minute per address.
    pub fn new(limit: u32) -> Self {
        let buckets = (0..BUCKETS).map(|_| AtomicU64::new(0)).collect();
        Self {
            buckets,
            hash_builder: foldhash::quality::RandomState::default(),
            limit: AtomicU32::new(limit),
        }
    }

    /// Refusals a minute per address.
    pub fn limit(&self) -> u32 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Changes the limit. A bucket above it is reduced at its next token.
    pub fn set_limit(&self, limit: u32) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// Takes a token of an address. Returns `false` if there is none.
    pub fn take(&self, address: IpAddr, now: Now) -> bool {
        let Some(bucket) = self.bucket(address) else { return false };
        let limit = self.limit();
        let taken = bucket.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |nanos| {
            TokenBucket::from_nanos(nanos).take(limit, now.mono).map(TokenBucket::to_nanos)
        });
        taken.is_ok()
    }

    /// Remaining tokens of an address.
    pub fn limit_status(&self, address: IpAddr, now: Now) -> LimitStatus {
        let nanos = self.bucket(address).map_or(0, |bucket| bucket.load(Ordering::Relaxed));
        LimitStatus::of_bucket(LimitRule::Guard, TokenBucket::from_nanos(nanos), self.limit(), now)
    }

    fn bucket(&self, address: IpAddr) -> Option<&AtomicU64> {
        let hash = self.hash_builder.hash_one(network(address));
        let index = usize::try_from(hash % BUCKETS as u64).ok()?;
        self.buckets.get(index)
    }
}

/// The network an address counts as: itself, or its /64.
pub fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => match address.to_ipv4_mapped() {
            Some(ipv4) => IpAddr::V4(ipv4),
            None => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Mono, Wall};

    #[test]
    fn addresses_have_separate_tokens_and_an_ipv6_network_shares_one_bucket() {
        let guard = AddressGuard::new(2);
        let now = Now { wall: Wall::from_seconds(100), mono: Mono::from_nanos(1_000_000_000) };
        let [a, b, c] = ["2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"].map(|text| text.parse().unwrap());
        assert!(guard.take(a, now) && guard.take(b, now) && !guard.take(a, now));
        assert!(guard.take(c, now));
        assert_eq!(guard.limit_status(b, now).remaining, 0);
        let (plain, mapped) = ("192.0.2.1".parse().unwrap(), "::ffff:192.0.2.1".parse().unwrap());
        assert!(guard.take(plain, now) && guard.take(mapped, now) && !guard.take(plain, now));
    }
}
