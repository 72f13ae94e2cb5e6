//! Limits of networks. An address counts in the block that one customer of a provider gets, and in the larger blocks around it:
//! who has a large block may use a few times the limit of a small one, not once for each block in it.
//!
//! A fixed table of buckets under a keyed hash, as in `gateway::AddressGuard`: clients cannot grow it, and cannot choose whom
//! they share a bucket with.

use std::hash::BuildHasher as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::{Mono, Now};
use crate::limits::TokenBucket;

const BUCKETS: usize = 65_536;
/// The blocks around an address, the largest first: the length of their prefix, and how many times the limit they may use.
const IPV4_BLOCKS: [(u32, u32); 2] = [(24, 4), (32, 1)];
const IPV6_BLOCKS: [(u32, u32); 3] = [(48, 4), (56, 2), (64, 1)];
/// A network is modest until it has used this part of its limit.
const MODEST: u32 = 8;
const MINUTE: Duration = Duration::from_mins(1);

/// A limit of all networks.
pub(super) struct NetworkLimit {
    buckets: Box<[AtomicU64]>,
    hash_builder: foldhash::quality::RandomState,
    limit: AtomicU32,
    /// Buckets are filled in a minute. On a clock this much slower, they are filled in the period.
    minutes: u64,
}

/// The bucket of a block.
struct BlockBucket<'b> {
    state: &'b AtomicU64,
    capacity: u32,
}

impl NetworkLimit {
    /// Allows this number in a period.
    pub(super) fn new(limit: u32, period: Duration) -> Self {
        Self {
            buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
            hash_builder: foldhash::quality::RandomState::default(),
            limit: AtomicU32::new(limit),
            minutes: (period.as_secs() / MINUTE.as_secs()).max(1),
        }
    }

    /// Changes the limit.
    pub(super) fn set_limit(&self, limit: u32) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// Takes a token of each block around an address. Without one in each, none is taken. Every `scope` has buckets of its own.
    pub(super) fn take(&self, scope: &str, client: IpAddr, now: Now) -> bool {
        let now = self.slowed(now);
        let refused = self
            .blocks(scope, client)
            .position(|block| !block.update(|bucket| bucket.take(block.capacity, now)));
        let Some(refused) = refused else { return true };
        for block in self.blocks(scope, client).take(refused) {
            block.give_back();
        }
        false
    }

    /// Returns a token that was not used.
    pub(super) fn give_back(&self, scope: &str, client: IpAddr) {
        for block in self.blocks(scope, client) {
            block.give_back();
        }
    }

    /// Whether no block around an address has used more than a small part of its tokens.
    pub(super) fn is_modest(&self, client: IpAddr, now: Now) -> bool {
        let now = self.slowed(now);
        self.blocks("", client).all(|block| {
            let left =
                TokenBucket::from_nanos(block.state.load(Ordering::Relaxed)).level(block.capacity, now);
            block.capacity.saturating_sub(left.tokens) <= block.capacity / MODEST
        })
    }

    const fn slowed(&self, now: Now) -> Mono {
        Mono::from_nanos(now.mono.nanos() / self.minutes)
    }

    /// The buckets of the blocks around an address, the largest first: one that has reached its limit touches no others.
    fn blocks(&self, scope: &str, client: IpAddr) -> impl Iterator<Item = BlockBucket<'_>> {
        let limit = self.limit.load(Ordering::Relaxed);
        let client = client.to_canonical();
        let blocks: &[(u32, u32)] = if client.is_ipv4() { &IPV4_BLOCKS } else { &IPV6_BLOCKS };
        blocks.iter().filter_map(move |&(length, times)| {
            let hash = self.hash_builder.hash_one((scope, length, block(client, length)));
            let state = self.buckets.get(usize::try_from(hash % BUCKETS as u64).ok()?)?;
            Some(BlockBucket { state, capacity: limit.saturating_mul(times) })
        })
    }
}

impl BlockBucket<'_> {
    fn update(&self, change: impl Fn(TokenBucket) -> Option<TokenBucket>) -> bool {
        let changed = |nanos| change(TokenBucket::from_nanos(nanos)).map(TokenBucket::to_nanos);
        self.state.fetch_update(Ordering::Relaxed, Ordering::Relaxed, changed).is_ok()
    }

    fn give_back(&self) {
        self.update(|bucket| Some(bucket.give_back(self.capacity)));
    }
}

/// The block of this prefix length around an address.
fn block(address: IpAddr, length: u32) -> IpAddr {
    match address {
        IpAddr::V4(ipv4) => {
            let mask = u32::MAX.checked_shl(u32::BITS - length).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(ipv4.to_bits() & mask))
        }
        IpAddr::V6(ipv6) => {
            let mask = u128::MAX.checked_shl(u128::BITS - length).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(ipv6.to_bits() & mask))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Wall;

    fn now(seconds: u64) -> Now {
        Now { wall: Wall::from_seconds(seconds), mono: Mono::from_nanos(seconds * 1_000_000_000) }
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// How many of the requests that a block sends, each from another address, are allowed.
    fn allowed(limit: &NetworkLimit, addresses: impl Iterator<Item = IpAddr>) -> usize {
        addresses.filter(|client| limit.take("", *client, now(100_000))).count()
    }

    #[test]
    fn larger_blocks_may_use_a_few_times_the_limit() {
        let limit = NetworkLimit::new(10, MINUTE);
        let ipv6 = |bits: u128| IpAddr::V6(Ipv6Addr::from_bits(0x2001_0db8 << 96 | bits));
        assert_eq!(allowed(&limit, (0..100).map(ipv6)), 10, "a /64");
        assert_eq!(allowed(&limit, (0..100).map(|number| ipv6((number % 256) << 64 | 7))), 10, "its /56");
        assert_eq!(allowed(&limit, (0..100).map(|number| ipv6(number << 72))), 20, "its /48");
        assert_eq!(allowed(&limit, (0..100).map(|number| ipv6(1 << 80 | number << 72))), 40, "another /48");
        let ipv4 = |bits: u32| IpAddr::V4(Ipv4Addr::from_bits(0xc000_0200 + bits));
        assert_eq!(allowed(&limit, (0..100).map(|_| ipv4(1))), 10, "an address");
        assert_eq!(allowed(&limit, (0..256).map(ipv4)), 30, "its /24");
        assert_eq!(allowed(&limit, std::iter::repeat_n(address("::ffff:192.0.3.1"), 100)), 10);
        assert_eq!(allowed(&limit, std::iter::repeat_n(address("192.0.3.1"), 100)), 0);
    }

    #[test]
    fn a_refused_token_is_returned_to_the_other_blocks() {
        let limit = NetworkLimit::new(10, MINUTE);
        let (loud, quiet) = (address("2001:db8::1"), address("2001:db8:0:1::1"));
        assert_eq!(allowed(&limit, std::iter::repeat_n(loud, 1_000)), 10);
        assert_eq!(allowed(&limit, std::iter::repeat_n(quiet, 1_000)), 10, "the /56 had ten left");
        limit.give_back("", quiet);
        assert_eq!(allowed(&limit, std::iter::repeat_n(quiet, 1_000)), 1);
        assert!(limit.take("example.org", loud, now(100_000)), "another scope");
    }

    #[test]
    fn a_network_is_modest_until_a_block_around_it_has_used_an_eighth() {
        let limit = NetworkLimit::new(16, MINUTE);
        let [one, beside, apart] = ["2001:db8::1", "2001:db8:0:1::1", "2001:db9::1"].map(address);
        let modest = |client| limit.is_modest(client, now(100_000));
        for taken in 1..=3 {
            assert!(modest(one), "{taken}");
            assert!(limit.take("", one, now(100_000)));
        }
        assert_eq!((modest(one), modest(beside)), (false, true));
        assert_eq!(allowed(&limit, std::iter::repeat_n(beside, 2)), 2);
        assert_eq!((modest(beside), modest(apart)), (false, true), "the /56 has used more than 4 of 32");
    }

    #[test]
    fn a_limit_applies_to_its_period() {
        let limit = NetworkLimit::new(6, Duration::from_hours(1));
        let client = address("192.0.2.1");
        let sent = |at: u64| (0..100).filter(|_| limit.take("", client, now(at))).count();
        assert_eq!((sent(100_000), sent(100_599), sent(100_601), sent(104_300)), (6, 0, 1, 6));
    }
}
