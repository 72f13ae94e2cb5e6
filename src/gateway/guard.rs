//! Limits refusals per address for clients without a valid key, and bytes of pages per address for all clients.
//!
//! Fixed tables of buckets under a keyed hash: clients cannot grow them and cannot choose whom they share a bucket
//! with. An IPv6 address counts as its /64. Callers with a known key have a guard of their own.

use std::hash::BuildHasher as _;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::Now;
use crate::limits::{LimitRule, LimitStatus, TokenBucket};

const BUCKETS: usize = 65_536;

/// KiB of pages that an address gets a minute for each refusal that the guard allows it. The largest page is delivered at
/// the cost of up to seven hits, so 60 refusals allow pages at the cost of about ten hits a second.
const PAGE_KIB_PER_REFUSAL: u32 = 256;
/// A stricter guard does not reduce the pages: their readers cause no refusals.
const LEAST_REFUSALS: u32 = 60;

/// Token buckets of refusals and of KiB of pages, by address.
pub struct AddressGuard {
    buckets: Box<[AtomicU64]>,
    page_buckets: Box<[AtomicU64]>,
    hash_builder: foldhash::quality::RandomState,
    limit: AtomicU32,
}

impl AddressGuard {
    /// Allows `limit` refusals a minute per address.
    pub fn new(limit: u32) -> Self {
        let buckets = || (0..BUCKETS).map(|_| AtomicU64::new(0)).collect();
        Self {
            buckets: buckets(),
            page_buckets: buckets(),
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
        let Some(bucket) = self.buckets.get(self.index(address)) else { return false };
        let limit = self.limit();
        let taken = bucket.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |nanos| {
            TokenBucket::from_nanos(nanos).take(limit, now.mono).map(TokenBucket::to_nanos)
        });
        taken.is_ok()
    }

    /// Takes the bytes of a page. The error is the time until it can be sent.
    pub fn take_page(&self, address: IpAddr, bytes: usize, now: Now) -> Result<(), Duration> {
        let Some(bucket) = self.page_buckets.get(self.index(address)) else { return Ok(()) };
        let capacity = self.page_kib();
        // A page that is larger than the whole allowance needs all of it.
        let tokens = u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX).min(capacity);
        let mut wait = Duration::ZERO;
        let taken = bucket.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |nanos| {
            let rest = TokenBucket::from_nanos(nanos).take_several(tokens, capacity, now.mono);
            rest.map(TokenBucket::to_nanos).inspect_err(|early| wait = *early).ok()
        });
        taken.map(|_| ()).map_err(|_| wait)
    }

    /// KiB of pages a minute per address.
    fn page_kib(&self) -> u32 {
        self.limit().max(LEAST_REFUSALS).saturating_mul(PAGE_KIB_PER_REFUSAL)
    }

    /// Remaining tokens of an address.
    pub fn limit_status(&self, address: IpAddr, now: Now) -> LimitStatus {
        let bucket = self.buckets.get(self.index(address));
        let nanos = bucket.map_or(0, |bucket| bucket.load(Ordering::Relaxed));
        LimitStatus::of_bucket(LimitRule::Guard, TokenBucket::from_nanos(nanos), self.limit(), now)
    }

    fn index(&self, address: IpAddr) -> usize {
        let hash = self.hash_builder.hash_one(network(address));
        usize::try_from(hash % BUCKETS as u64).unwrap_or_default()
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

    #[test]
    fn an_address_gets_15_mib_of_pages_a_minute_whatever_it_was_refused() {
        let guard = AddressGuard::new(1);
        let now = Now { wall: Wall::from_seconds(100), mono: Mono::from_nanos(1_000_000_000) };
        let [one, other] = ["192.0.2.1", "192.0.2.2"].map(|text| text.parse().unwrap());
        assert!(guard.take(one, now) && !guard.take(one, now));
        for _ in 0..15 {
            guard.take_page(one, 1 << 20, now).unwrap();
        }
        // A KiB is back after 1/256 of a second.
        assert_eq!(
            guard.take_page(one, 1, now),
            Err(Duration::from_nanos(60_000_000_000_u64.div_ceil(15 * 1024)))
        );
        assert_eq!(guard.take_page(one, 0, now), Ok(()), "a 304 has no bytes");
        assert_eq!(guard.take_page(other, usize::MAX, now), Ok(()), "the whole allowance");
    }
}
