//! Limits refusals per address for clients without a valid key, and page bytes per network for all clients.
//!
//! Refusals of an IPv6 address are counted for its /64. Pages are also counted for the larger blocks that contain it: a
//! page costs more than a refusal, and a /48 has 65,536 /64s. Each application with a known key has a separate guard.

use std::{net::IpAddr, time::Duration};

use scoregate_base::{
    clock::Now,
    limits::{LimitRule, LimitStatus, NetworkBlocks, NetworkLimit},
};

const MINUTE: Duration = Duration::from_mins(1);
/// KiB of pages that an address gets per minute for each refusal that the guard allows. The largest page costs about
/// as much as seven hits, so 60 refusals allow pages that cost as much as ten hits a second.
const PAGE_KIB_PER_REFUSAL: u32 = 256;
/// A stricter guard does not reduce the allowance for pages: clients that read pages cause no refusals.
const LEAST_REFUSALS: u32 = 60;

/// Token buckets for refusals and for KiB of pages, by address.
#[derive(Clone)]
pub struct AddressGuard {
    refusals: NetworkLimit,
    pages: NetworkLimit,
}

impl AddressGuard {
    /// Allows `limit` refusals per minute and address.
    pub fn new(limit: u32) -> Self {
        Self {
            refusals: NetworkLimit::new(limit, MINUTE, NetworkBlocks::OWN),
            pages: NetworkLimit::new(page_kib(limit), MINUTE, NetworkBlocks::NESTED),
        }
    }

    /// The number of refusals allowed per minute and address.
    pub fn limit(&self) -> u32 {
        self.refusals.limit()
    }

    /// Changes the limit.
    pub fn set_limit(&self, limit: u32) {
        self.refusals.set_limit(limit);
        self.pages.set_limit(page_kib(limit));
    }

    /// Takes a token of an address. Returns `false` if there is none.
    pub fn take(&self, address: IpAddr, now: Now) -> bool {
        self.refusals.take("", address, now).is_ok()
    }

    /// Gives back the token of a request that was not refused.
    pub fn give_back(&self, address: IpAddr) {
        self.refusals.give_back("", address);
    }

    /// Takes the bytes of a page. The error is the time until the page can be sent. A page that is larger than the
    /// whole allowance takes all of it.
    pub fn take_page(&self, address: IpAddr, bytes: usize, now: Now) -> Result<(), Duration> {
        let kib = u32::try_from(bytes.div_ceil(1024)).unwrap_or(u32::MAX);
        self.pages.take_several("", address, kib, now)
    }

    /// Remaining tokens of an address.
    pub fn limit_status(&self, address: IpAddr, now: Now) -> LimitStatus {
        self.refusals.status(LimitRule::Guard, address, now)
    }
}

/// KiB of pages allowed per minute and address.
fn page_kib(limit: u32) -> u32 {
    limit
        .max(LEAST_REFUSALS)
        .saturating_mul(PAGE_KIB_PER_REFUSAL)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;
    use scoregate_base::clock::{Mono, Wall};

    #[test]
    fn addresses_have_separate_tokens_and_an_ipv6_network_shares_one_bucket() {
        let guard = AddressGuard::new(2);
        let now = Now {
            wall: Wall::from_seconds(100),
            mono: Mono::from_nanos(1_000_000_000),
        };
        let [a, b, c] =
            ["2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"].map(|text| text.parse().unwrap());
        assert!(guard.take(a, now) && guard.take(b, now) && !guard.take(a, now));
        assert!(guard.take(c, now));
        assert_eq!(guard.limit_status(b, now).remaining, 0);
        let plain = "192.0.2.1".parse().unwrap();
        let mapped = "::ffff:192.0.2.1".parse().unwrap();
        assert!(guard.take(plain, now) && guard.take(mapped, now) && !guard.take(plain, now));
    }

    #[test]
    fn an_address_gets_15_mib_of_pages_a_minute_whatever_it_was_refused() {
        let guard = AddressGuard::new(1);
        let now = Now {
            wall: Wall::from_seconds(100),
            mono: Mono::from_nanos(1_000_000_000),
        };
        let [one, other] = ["192.0.2.1", "192.0.2.2"].map(|text| text.parse().unwrap());
        assert!(guard.take(one, now) && !guard.take(one, now));
        for _ in 0..15 {
            guard.take_page(one, 1 << 20, now).unwrap();
        }
        // One KiB is available again after 1/256 of a second.
        assert_eq!(
            guard.take_page(one, 1, now),
            Err(Duration::from_nanos(60_000_000_000_u64.div_ceil(15 * 1024)))
        );
        assert_eq!(guard.take_page(one, 0, now), Ok(()), "a 304 has no bytes");
        assert_eq!(
            guard.take_page(other, usize::MAX, now),
            Ok(()),
            "the whole allowance"
        );
    }

    #[test]
    fn a_large_network_gets_the_pages_of_four_addresses() {
        let guard = AddressGuard::new(60);
        let now = Now {
            wall: Wall::from_seconds(100),
            mono: Mono::from_nanos(1_000_000_000),
        };
        let all_pages = |address| guard.take_page(address, 15 << 20, now).is_ok();
        let ipv6 = |number: u128| IpAddr::V6(Ipv6Addr::from_bits(0x2001_0db8 << 96 | number << 72));
        assert_eq!(
            (0..100)
                .map(ipv6)
                .filter(|address| all_pages(*address))
                .count(),
            4,
            "a /48"
        );
        let ipv4 = |number| IpAddr::from([192, 0, 2, number]);
        assert_eq!(
            (0..100)
                .map(ipv4)
                .filter(|address| all_pages(*address))
                .count(),
            4,
            "a /24"
        );
        assert_eq!(
            (0..100)
                .map(ipv6)
                .filter(|address| guard.take(*address, now))
                .count(),
            100,
            "refusals"
        );
    }
}
