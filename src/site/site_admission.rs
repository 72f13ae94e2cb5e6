//! Limits of the site. They are separate from the limits of the API, so visitors cannot take capacity from it.

use std::{
    net::{IpAddr, Ipv4Addr},
    time::Duration,
};

use http::{HeaderMap, HeaderName};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::gateway::Peer;
use scoregate_base::{
    address::Proxies,
    clock::{Clock, Now},
    keys::OwnerId,
    limits::{NetworkBlocks, NetworkLimit, TokenBucket},
};

use super::site_refusal::SiteRefusal;

/// Maximum number of concurrent requests. Each request uses the store for milliseconds.
const AT_ONCE: usize = 8;
/// Maximum number of waiting requests, and maximum waiting time per request.
const QUEUED: usize = 64;
const QUEUE_TIMEOUT: Duration = Duration::from_secs(1);
/// One third (1/`RESERVED`) of the queue, and of the links of all networks, is reserved for networks with few requests.
const RESERVED: usize = 3;
/// Maximum number of requests per minute from a network.
const PER_MINUTE: u32 = 240;
/// Maximum number of changes per minute, for each network and for each owner. Each change is kept in the audit trail.
const CHANGES_PER_MINUTE: u32 = 30;
const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// The state of the limits.
pub struct SiteAdmission {
    requests: NetworkLimit,
    changes: NetworkLimit,
    links: NetworkLimit,
    /// New accounts, by network and mail domain. With a limit per domain only, one network could block a domain for all
    /// others.
    accounts: NetworkLimit,
    all_links: Mutex<TokenBucket>,
    slots: Semaphore,
    queue: Semaphore,
}

/// The reason why a link was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkLimit {
    /// A network that contains the client has used up its links.
    Network,
    /// The rest of the total for all networks is reserved for networks with fewer requests.
    Reserved,
    /// All networks together have used up their links.
    Total,
}

impl SiteAdmission {
    /// Allows each network this many links per hour, and this many new accounts per mail domain and day.
    pub fn new(links_per_hour: u32, accounts_per_day: u32) -> Self {
        Self {
            requests: network_limit(PER_MINUTE, MINUTE),
            changes: network_limit(CHANGES_PER_MINUTE, MINUTE),
            links: network_limit(links_per_hour, HOUR),
            accounts: network_limit(accounts_per_day, DAY),
            all_links: Mutex::default(),
            slots: Semaphore::new(AT_ONCE),
            queue: Semaphore::new(QUEUED),
        }
    }

    /// Changes the limits on links and accounts.
    pub fn set_limits(&self, links_per_hour: u32, accounts_per_day: u32) {
        self.links.set_limit(links_per_hour);
        self.accounts.set_limit(accounts_per_day);
    }

    /// Counts a request of a client.
    pub fn count(&self, client: IpAddr, now: Now) -> Result<(), SiteRefusal> {
        self.requests
            .take("", client, now)
            .map_err(|_| SiteRefusal::TooManyRequests)
    }

    /// Counts a change by a client.
    pub fn count_change(&self, client: IpAddr, now: Now) -> Result<(), SiteRefusal> {
        self.count_change_of("", client, now)
    }

    /// Counts a change by an owner, whose network may differ each time.
    pub fn count_owner_change(&self, owner: OwnerId, now: Now) -> Result<(), SiteRefusal> {
        self.count_change_of(&owner.to_string(), Ipv4Addr::UNSPECIFIED.into(), now)
    }

    fn count_change_of(&self, scope: &str, client: IpAddr, now: Now) -> Result<(), SiteRefusal> {
        self.changes
            .take(scope, client, now)
            .map_err(|_| SiteRefusal::TooManyRequests)
    }

    /// Counts a link for a client. There is also a limit for all networks together, because a flood from many networks
    /// would ruin the reputation of the mail server, and each link is a commit in the store. Part of this limit is
    /// reserved, so that a few networks cannot use all of it.
    pub fn count_link(&self, client: IpAddr, in_total: u32, now: Now) -> Result<(), LinkLimit> {
        // This is checked before the link is counted, so that the link does not affect the result.
        let is_modest = self.links.is_modest(client, now);
        self.links
            .take("", client, now)
            .map_err(|_| LinkLimit::Network)?;
        let counted = self.count_any_link(in_total, is_modest, now);
        if counted.is_err() {
            self.links.give_back("", client);
        }
        counted
    }

    fn count_any_link(&self, limit: u32, is_modest: bool, now: Now) -> Result<(), LinkLimit> {
        // The lock is held for the check and the change, so that concurrent requests cannot use up the reserve.
        let mut bucket = self.all_links.lock();
        let reserved = if is_modest {
            0
        } else {
            limit / u32::try_from(RESERVED).unwrap_or(1)
        };
        let taken = bucket.take(limit, now.mono).ok_or(LinkLimit::Total)?;
        if taken.level(limit, now.mono).tokens < reserved {
            return Err(LinkLimit::Reserved);
        }
        *bucket = taken;
        Ok(())
    }

    /// Counts a new account with an address of a mail domain.
    pub fn count_account(&self, domain: &str, client: IpAddr, now: Now) -> Result<(), SiteRefusal> {
        self.accounts
            .take(domain, client, now)
            .map_err(|retry_after| SiteRefusal::TooManyAccounts { retry_after })
    }

    /// Undoes the counting of an account that was not created.
    pub fn return_account(&self, domain: &str, client: IpAddr) {
        self.accounts.give_back(domain, client);
    }

    /// Takes a slot for as long as the request uses the store. If none is free, the request waits in a short queue.
    pub async fn enter(
        &self,
        client: IpAddr,
        clock: &Clock,
    ) -> Result<SemaphorePermit<'_>, SiteRefusal> {
        if let Ok(free) = self.slots.try_acquire() {
            return Ok(free);
        }
        let reserved = if self.requests.is_modest(client, clock.now()) {
            0
        } else {
            QUEUED / RESERVED
        };
        // Concurrent requests may see the same number of free places, so the reserve may be short by a few.
        if self.queue.available_permits() <= reserved {
            return Err(SiteRefusal::Busy);
        }
        let _queued = self.queue.try_acquire().map_err(|_| SiteRefusal::Busy)?;
        let waited = clock.within(QUEUE_TIMEOUT, self.slots.acquire()).await;
        waited.ok().and_then(Result::ok).ok_or(SiteRefusal::Busy)
    }
}

fn network_limit(limit: u32, period: Duration) -> NetworkLimit {
    NetworkLimit::new(limit, period, NetworkBlocks::NESTED)
}

/// Refuses clear text, except on loopback and from a trusted proxy that does not report clear text from its client.
pub fn require_encryption(
    peer: Peer,
    proxies: &Proxies,
    headers: &HeaderMap,
) -> Result<(), SiteRefusal> {
    let address = peer.address.to_canonical();
    let is_proxy = proxies.trusted.contains(address);
    let may_be_private = peer.is_encrypted || address.is_loopback() || is_proxy;
    if may_be_private && !(is_proxy && says_clear_text(headers)) {
        Ok(())
    } else {
        Err(SiteRefusal::ClearText)
    }
}

/// Whether a proxy reports that its client used HTTP without TLS.
fn says_clear_text(headers: &HeaderMap) -> bool {
    let mut lines = headers.get_all(FORWARDED_PROTO).iter();
    let last = lines.next_back().and_then(|line| line.to_str().ok());
    let hop = last.and_then(|line| line.rsplit(',').next());
    hop.is_some_and(|proto| proto.trim().eq_ignore_ascii_case("http"))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;
    use scoregate_base::clock::{Mono, Wall};

    fn now(seconds: u64) -> Now {
        Now {
            wall: Wall::from_seconds(seconds),
            mono: Mono::from_nanos(seconds * 1_000_000_000),
        }
    }

    #[test]
    fn all_networks_together_have_a_limit_of_links_and_a_third_is_reserved_for_modest_ones() {
        let admission = SiteAdmission::new(1_000, 10);
        let loud = "2001:db8::1".parse().unwrap();
        let quiet =
            |number: u128| IpAddr::V6(Ipv6Addr::from_bits(0x2001_0db9 << 96 | number << 80));
        let results = |clients: &mut dyn Iterator<Item = IpAddr>, at: u64| {
            let counted = clients.map(|client| admission.count_link(client, 150, now(at)));
            counted.fold([0; 3], |[sent, reserved, total], counted| match counted {
                Ok(()) => [sent + 1, reserved, total],
                Err(LinkLimit::Reserved) => [sent, reserved + 1, total],
                Err(other) => {
                    assert_eq!(other, LinkLimit::Total);
                    [sent, reserved, total + 1]
                }
            })
        };
        // The network counts as modest for its first 126 links.
        assert_eq!(
            results(&mut std::iter::repeat_n(loud, 300), 100),
            [126, 174, 0]
        );
        assert_eq!(results(&mut (0..30).map(quiet), 100), [24, 0, 6]);
        assert_eq!(
            results(&mut std::iter::repeat_n(loud, 300), 150),
            [75, 225, 0]
        );
        assert_eq!(results(&mut (30..90).map(quiet), 150), [50, 0, 10]);
    }

    #[test]
    fn a_refused_link_costs_its_network_nothing() {
        let admission = SiteAdmission::new(6, 10);
        let client = "192.0.2.1".parse().unwrap();
        let sent = |in_total, at| {
            let sent = || admission.count_link(client, in_total, now(at));
            [sent(), sent(), sent()]
        };
        assert_eq!(
            sent(1, 100),
            [Ok(()), Err(LinkLimit::Total), Err(LinkLimit::Total)]
        );
        assert_eq!(sent(60, 200), [Ok(()); 3]);
        assert_eq!(sent(60, 200), [Ok(()), Ok(()), Err(LinkLimit::Network)]);
    }

    #[test]
    fn new_accounts_are_limited_by_pair_of_domain_and_network() {
        let admission = SiteAdmission::new(60, 2);
        let [one, beside, other] =
            ["192.0.2.1", "192.0.2.2", "198.51.100.1"].map(|text| text.parse().unwrap());
        let created = |domain, client, at: u64| {
            (0..10)
                .filter(|_| admission.count_account(domain, client, now(at)).is_ok())
                .count()
        };
        assert_eq!(
            (
                created("a.example", one, 100),
                created("b.example", one, 100)
            ),
            (2, 2)
        );
        assert_eq!(
            (
                created("a.example", beside, 100),
                created("a.example", other, 100)
            ),
            (2, 2)
        );
        assert_eq!(
            (
                created("a.example", one, 43_299),
                created("a.example", one, 43_301)
            ),
            (0, 1)
        );
        admission.return_account("a.example", one);
        assert_eq!(created("a.example", one, 43_302), 1);
    }

    #[tokio::test]
    async fn requests_beyond_the_slots_wait_for_a_second_and_beyond_the_queue_not_at_all() {
        let admission = SiteAdmission::new(1, 1);
        let (clock, manual) = Clock::manual(Wall::from_seconds(100));
        let [loud, quiet] = ["192.0.2.1", "198.51.100.1"].map(|text| text.parse().unwrap());
        for _ in 0..=PER_MINUTE / 8 {
            admission.count(loud, clock.now()).unwrap();
        }
        let mut held = Vec::new();
        for _ in 0..AT_ONCE {
            held.push(admission.enter(loud, &clock).await.unwrap());
        }
        let mut waiting: Vec<_> = Vec::new();
        for client in std::iter::repeat_n(loud, QUEUED - QUEUED / RESERVED) {
            waiting.push(Box::pin(admission.enter(client, &clock)));
            assert!(futures_util::poll!(waiting.last_mut().unwrap()).is_pending());
        }
        let refused = admission.enter(loud, &clock).await.unwrap_err();
        assert_eq!(
            refused,
            SiteRefusal::Busy,
            "the rest is reserved for networks that send little"
        );
        for client in std::iter::repeat_n(quiet, QUEUED / RESERVED) {
            waiting.push(Box::pin(admission.enter(client, &clock)));
            assert!(futures_util::poll!(waiting.last_mut().unwrap()).is_pending());
        }
        assert_eq!(
            admission.enter(quiet, &clock).await.unwrap_err(),
            SiteRefusal::Busy
        );
        held.pop();
        let first = waiting.remove(0).await.unwrap();
        manual.advance(QUEUE_TIMEOUT);
        for entering in waiting {
            assert_eq!(entering.await.unwrap_err(), SiteRefusal::Busy);
        }
        drop(first);
        assert!(admission.enter(quiet, &clock).await.is_ok());
    }

    #[test]
    fn clear_text_is_accepted_on_loopback_and_from_a_trusted_proxy_only() {
        let trusted = ["10.0.0.1".parse().unwrap()].into_iter().collect();
        let proxies = Proxies {
            trusted,
            ..Proxies::default()
        };
        let check = |address: &str, is_encrypted, lines: &[(HeaderName, &'static str)]| {
            let headers = lines
                .iter()
                .map(|(name, value)| (name.clone(), http::HeaderValue::from_static(value)));
            let peer = Peer {
                address: address.parse().unwrap(),
                is_encrypted,
                is_tool_call: false,
            };
            require_encryption(peer, &proxies, &headers.collect()).is_ok()
        };
        assert!(
            check("192.0.2.1", true, &[])
                && check("127.0.0.1", false, &[])
                && check("::ffff:127.0.0.1", false, &[])
        );
        assert!(
            check("10.0.0.1", false, &[])
                && check("10.0.0.1", false, &[(FORWARDED_PROTO, "https")])
        );
        assert!(
            !check("192.0.2.1", false, &[])
                && !check("192.0.2.1", false, &[(FORWARDED_PROTO, "https")])
        );
        assert!(!check(
            "10.0.0.1",
            false,
            &[(FORWARDED_PROTO, "https, http")]
        ));
    }
}
