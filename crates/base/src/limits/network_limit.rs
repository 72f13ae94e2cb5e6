//! Limits per network. An address counts in the smallest block around it, and may also count in larger blocks. The
//! owner of a large block may use a few times the limit of a small block, but not the limit of every block in it.
//!
//! The table of buckets has a fixed size and a keyed hash. Clients can neither make it grow nor choose the clients with
//! which they share a bucket.

use std::{
    hash::BuildHasher as _,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::atomic::{AtomicU32, AtomicU64, Ordering},
    time::Duration,
};

use crate::clock::{Mono, Now};

use super::{LimitRule, LimitStatus, TokenBucket};

// Each limit takes half a MiB. Networks that share a bucket share its limit.
const BUCKETS: usize = 65_536;
/// A network is modest if it has used at most its limit divided by this number.
const MODEST: u32 = 8;
const MINUTE: Duration = Duration::from_mins(1);

/// The blocks around an address, largest first: the prefix length, and the multiple of the limit that a block may use.
#[derive(Clone, Copy, Debug)]
pub struct NetworkBlocks {
    ipv4: &'static [(u32, u32)],
    ipv6: &'static [(u32, u32)],
}

impl NetworkBlocks {
    /// Only the block that a single customer of a provider gets.
    pub const OWN: Self = Self {
        ipv4: &[(32, 1)],
        ipv6: &[(64, 1)],
    };
    /// The block of a single customer and the larger blocks around it.
    pub const NESTED: Self = Self {
        ipv4: &[(24, 4), (32, 1)],
        ipv6: &[(48, 4), (56, 2), (64, 1)],
    };

    /// The blocks around an address, largest first.
    pub fn around(self, client: IpAddr) -> impl Iterator<Item = NetworkBlock> {
        let client = client.to_canonical();
        let blocks = if client.is_ipv4() {
            self.ipv4
        } else {
            self.ipv6
        };
        blocks.iter().map(move |&(length, times)| NetworkBlock {
            length,
            first: block(client, length),
            times,
        })
    }
}

/// A block of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct NetworkBlock {
    length: u32,
    first: IpAddr,
    /// The multiple of the limit that the block may use.
    pub times: u32,
}

/// A limit for each network.
pub struct NetworkLimit {
    buckets: Box<[AtomicU64]>,
    hash_builder: foldhash::quality::RandomState,
    limit: AtomicU32,
    /// The period in minutes. Buckets refill in a minute, so they use a clock that is this many times slower.
    minutes: u32,
    blocks: NetworkBlocks,
}

/// The bucket of a block.
struct BlockBucket<'b> {
    state: &'b AtomicU64,
    capacity: u32,
}

impl NetworkLimit {
    /// A limit that allows this number per period.
    pub fn new(limit: u32, period: Duration, blocks: NetworkBlocks) -> Self {
        Self {
            buckets: (0..BUCKETS).map(|_| AtomicU64::new(0)).collect(),
            hash_builder: foldhash::quality::RandomState::default(),
            limit: AtomicU32::new(limit),
            minutes: u32::try_from(period.as_secs() / MINUTE.as_secs())
                .unwrap_or(u32::MAX)
                .max(1),
            blocks,
        }
    }

    /// The limit for the block of a single customer.
    pub fn limit(&self) -> u32 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Changes the limit. A bucket above the new limit is reduced when the next token is taken.
    pub fn set_limit(&self, limit: u32) {
        // The setting is read independently of other values, so no ordering is needed.
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// Takes a token from each block around an address. If a block has none, no token is taken, and the error is the
    /// time until every block has one. Each `scope` has separate buckets.
    pub fn take(&self, scope: &str, client: IpAddr, now: Now) -> Result<(), Duration> {
        self.take_several(scope, client, 1, now)
    }

    /// Takes several tokens, but at most as many as the limit.
    pub fn take_several(
        &self,
        scope: &str,
        client: IpAddr,
        tokens: u32,
        now: Now,
    ) -> Result<(), Duration> {
        let tokens = tokens.min(self.limit().max(1));
        let now = self.slowed(now);
        let refused = self
            .blocks(scope, client)
            .position(|block| !block.take(tokens, now));
        let Some(refused) = refused else {
            return Ok(());
        };
        // The larger blocks before the refusing block were already charged.
        for block in self.blocks(scope, client).take(refused) {
            block.give_back(tokens);
        }
        let waits = self
            .blocks(scope, client)
            .map(|block| block.wait(tokens, now));
        Err(waits.max().unwrap_or_default() * self.minutes)
    }

    /// Returns a token that was not used.
    pub fn give_back(&self, scope: &str, client: IpAddr) {
        for block in self.blocks(scope, client) {
            block.give_back(1);
        }
    }

    /// Whether every block around an address has used at most a small part of its tokens.
    pub fn is_modest(&self, client: IpAddr, now: Now) -> bool {
        let now = self.slowed(now);
        self.blocks("", client).all(|block| {
            let left = block.bucket().level(block.capacity, now);
            block.capacity.saturating_sub(left.tokens) <= block.capacity / MODEST
        })
    }

    /// The status of the limit for an address, based on its smallest block. Only for limits per minute.
    pub fn status(&self, rule: LimitRule, client: IpAddr, now: Now) -> LimitStatus {
        let bucket = self
            .blocks("", client)
            .last()
            .map(|block| block.bucket())
            .unwrap_or_default();
        LimitStatus::of_bucket(rule, bucket, self.limit(), now)
    }

    fn slowed(&self, now: Now) -> Mono {
        Mono::from_nanos(now.mono.nanos() / u64::from(self.minutes))
    }

    /// The buckets of the blocks around an address, largest first. If a bucket has reached its limit, the buckets after
    /// it are not changed.
    fn blocks(&self, scope: &str, client: IpAddr) -> impl Iterator<Item = BlockBucket<'_>> {
        let limit = self.limit();
        let blocks = self.blocks.around(client);
        blocks.filter_map(move |block| {
            let hash = self.hash_builder.hash_one((scope, block));
            let state = self
                .buckets
                .get(usize::try_from(hash % BUCKETS as u64).ok()?)?;
            Some(BlockBucket {
                state,
                capacity: limit.saturating_mul(block.times),
            })
        })
    }
}

impl Clone for NetworkLimit {
    /// A copy. Taking tokens from it has no effect on the original.
    fn clone(&self) -> Self {
        // Buckets are read one by one, because a copy does not have to be a consistent snapshot.
        let copied = |bucket: &AtomicU64| AtomicU64::new(bucket.load(Ordering::Relaxed));
        Self {
            buckets: self.buckets.iter().map(copied).collect(),
            hash_builder: self.hash_builder.clone(),
            limit: AtomicU32::new(self.limit()),
            ..*self
        }
    }
}

impl BlockBucket<'_> {
    fn bucket(&self) -> TokenBucket {
        TokenBucket::from_nanos(self.state.load(Ordering::Relaxed))
    }

    fn update(&self, change: impl Fn(TokenBucket) -> Option<TokenBucket>) -> bool {
        // A bucket is a single number, so no ordering with other values is needed.
        self.state
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |nanos| {
                change(TokenBucket::from_nanos(nanos)).map(TokenBucket::to_nanos)
            })
            .is_ok()
    }

    fn take(&self, tokens: u32, now: Mono) -> bool {
        self.update(|bucket| bucket.take_several(tokens, self.capacity, now).ok())
    }

    fn give_back(&self, tokens: u32) {
        self.update(|bucket| Some(bucket.give_back_several(tokens, self.capacity)));
    }

    /// Time until the bucket has this many tokens.
    fn wait(&self, tokens: u32, now: Mono) -> Duration {
        self.bucket()
            .take_several(tokens, self.capacity, now)
            .err()
            .unwrap_or_default()
    }
}

/// The network that an address counts as: the IPv4 address itself, or the /64 of an IPv6 address.
pub fn network(address: IpAddr) -> IpAddr {
    let address = address.to_canonical();
    block(address, if address.is_ipv4() { 32 } else { 64 })
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
        Now {
            wall: Wall::from_seconds(seconds),
            mono: Mono::from_nanos(seconds * 1_000_000_000),
        }
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    /// The number of allowed requests if each of these addresses sends one.
    fn allowed(limit: &NetworkLimit, addresses: impl Iterator<Item = IpAddr>) -> usize {
        addresses
            .filter(|client| limit.take("", *client, now(100_000)).is_ok())
            .count()
    }

    /// The number of allowed requests of one client.
    fn allowed_of(limit: &NetworkLimit, client: IpAddr, requests: usize) -> usize {
        allowed(limit, std::iter::repeat_n(client, requests))
    }

    #[test]
    fn larger_blocks_may_use_a_few_times_the_limit() {
        let limit = NetworkLimit::new(10, MINUTE, NetworkBlocks::NESTED);
        let ipv6 = |bits: u128| IpAddr::V6(Ipv6Addr::from_bits(0x2001_0db8 << 96 | bits));
        assert_eq!(allowed(&limit, (0..100).map(ipv6)), 10, "a /64");
        assert_eq!(
            allowed(
                &limit,
                (0..100).map(|number| ipv6((number % 256) << 64 | 7))
            ),
            10,
            "its /56"
        );
        assert_eq!(
            allowed(&limit, (0..100).map(|number| ipv6(number << 72))),
            20,
            "its /48"
        );
        assert_eq!(
            allowed(&limit, (0..100).map(|number| ipv6(1 << 80 | number << 72))),
            40,
            "another /48"
        );
        let ipv4 = |bits: u32| IpAddr::V4(Ipv4Addr::from_bits(0xc000_0200 + bits));
        assert_eq!(allowed_of(&limit, ipv4(1), 100), 10, "an address");
        assert_eq!(allowed(&limit, (0..256).map(ipv4)), 30, "its /24");
        assert_eq!(allowed_of(&limit, address("::ffff:192.0.3.1"), 100), 10);
        assert_eq!(allowed_of(&limit, address("192.0.3.1"), 100), 0);
    }

    #[test]
    fn a_refused_token_is_returned_to_the_other_blocks() {
        let limit = NetworkLimit::new(10, MINUTE, NetworkBlocks::NESTED);
        let loud = address("2001:db8::1");
        let quiet = address("2001:db8:0:1::1");
        assert_eq!(allowed_of(&limit, loud, 1_000), 10);
        assert_eq!(allowed_of(&limit, quiet, 1_000), 10, "the /56 had ten left");
        limit.give_back("", quiet);
        assert_eq!(allowed_of(&limit, quiet, 1_000), 1);
        assert_eq!(
            limit.take("example.org", loud, now(100_000)),
            Ok(()),
            "another scope"
        );
    }

    #[test]
    fn a_network_is_modest_until_a_block_around_it_has_used_an_eighth() {
        let limit = NetworkLimit::new(16, MINUTE, NetworkBlocks::NESTED);
        let [one, beside, apart] = ["2001:db8::1", "2001:db8:0:1::1", "2001:db9::1"].map(address);
        let modest = |client| limit.is_modest(client, now(100_000));
        for taken in 1..=3 {
            assert!(modest(one), "{taken}");
            limit.take("", one, now(100_000)).unwrap();
        }
        assert_eq!((modest(one), modest(beside)), (false, true));
        assert_eq!(allowed_of(&limit, beside, 2), 2);
        assert_eq!(
            (modest(beside), modest(apart)),
            (false, true),
            "the /56 has used more than 4 of 32"
        );
    }

    #[test]
    fn a_limit_applies_to_its_period() {
        let limit = NetworkLimit::new(6, Duration::from_hours(1), NetworkBlocks::NESTED);
        let client = address("192.0.2.1");
        let sent = |at: u64| {
            (0..100)
                .filter(|_| limit.take("", client, now(at)).is_ok())
                .count()
        };
        assert_eq!(
            (sent(100_000), sent(100_599), sent(100_601), sent(104_300)),
            (6, 0, 1, 6)
        );
    }
}
