//! Limits of the site. They are its own, so its visitors cannot take capacity from the API.

use std::net::IpAddr;
use std::time::Duration;

use http::{HeaderMap, HeaderName, header};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::address::Proxies;
use crate::clock::{Clock, Mono, Now};
use crate::gateway::{AddressGuard, Peer};
use crate::limits::TokenBucket;

use super::site_refusal::SiteRefusal;

/// Maximum number of requests at once. Each uses the store for milliseconds.
const AT_ONCE: usize = 8;
/// Maximum number of requests that wait for that, and how long each does.
const QUEUED: usize = 64;
const QUEUE_TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of requests of a network in a minute.
const PER_MINUTE: u32 = 240;
/// Maximum number of changes by a network in a minute. Each is kept in the audit trail.
const CHANGES_PER_MINUTE: u32 = 30;
/// The buckets of a guard are filled in a minute. On a clock this much slower, they are filled in an hour.
const MINUTES: u64 = 60;

const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// The state of the limits.
pub(super) struct SiteAdmission {
    requests: AddressGuard,
    changes: AddressGuard,
    links: AddressGuard,
    all_links: Mutex<TokenBucket>,
    slots: Semaphore,
    queue: Semaphore,
}

impl SiteAdmission {
    /// Allows this many links per network in an hour.
    pub(super) fn new(links_per_hour: u32) -> Self {
        Self {
            requests: AddressGuard::new(PER_MINUTE),
            changes: AddressGuard::new(CHANGES_PER_MINUTE),
            links: AddressGuard::new(links_per_hour),
            all_links: Mutex::default(),
            slots: Semaphore::new(AT_ONCE),
            queue: Semaphore::new(QUEUED),
        }
    }

    /// Changes the limit on links.
    pub(super) fn set_links_per_hour(&self, limit: u32) {
        self.links.set_limit(limit);
    }

    /// Counts a request of a client.
    pub(super) fn count(&self, client: IpAddr, now: Now) -> Result<(), SiteRefusal> {
        if self.requests.take(client, now) { Ok(()) } else { Err(SiteRefusal::TooManyRequests) }
    }

    /// Counts a change by a client.
    pub(super) fn count_change(&self, client: IpAddr, now: Now) -> Result<(), SiteRefusal> {
        if self.changes.take(client, now) { Ok(()) } else { Err(SiteRefusal::TooManyRequests) }
    }

    /// Counts a link for a client.
    pub(super) fn count_link(&self, client: IpAddr, now: Now) -> Result<(), SiteRefusal> {
        let slowed = Now { mono: Mono::from_nanos(now.mono.nanos() / MINUTES), ..now };
        if self.links.take(client, slowed) { Ok(()) } else { Err(SiteRefusal::TooManyLinks) }
    }

    /// Counts a link of any client. All together have a limit: a flood from many networks would ruin the reputation of the
    /// mail server, and each link is a commit of the store.
    pub(super) fn count_any_link(&self, limit: u32, now: Now) -> Result<(), SiteRefusal> {
        let mut bucket = self.all_links.lock();
        *bucket = bucket.take(limit, now.mono).ok_or(SiteRefusal::TooManyLinksInTotal)?;
        Ok(())
    }

    /// A counted link was not sent.
    pub(super) fn return_link(&self, limit: u32) {
        let mut bucket = self.all_links.lock();
        *bucket = bucket.give_back(limit);
    }

    /// Takes a slot for as long as the request uses the store. Waits for it in a short queue.
    pub(super) async fn enter(&self, clock: &Clock) -> Result<SemaphorePermit<'_>, SiteRefusal> {
        if let Ok(free) = self.slots.try_acquire() {
            return Ok(free);
        }
        let _queued = self.queue.try_acquire().map_err(|_| SiteRefusal::Busy)?;
        let waited = clock.within(QUEUE_TIMEOUT, self.slots.acquire()).await;
        waited.ok().and_then(Result::ok).ok_or(SiteRefusal::Busy)
    }
}

/// Refuses clear text, except on loopback and from a trusted proxy that does not say that its client used it.
pub(super) fn require_encryption(
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

/// Whether a proxy says that its client used HTTP without TLS.
fn says_clear_text(headers: &HeaderMap) -> bool {
    let last = |name: &HeaderName| {
        let line = headers.get_all(name).iter().next_back()?.to_str().ok()?;
        Some(line.rsplit(',').next().unwrap_or_default().trim().to_ascii_lowercase())
    };
    let is_http = |proto: String| proto == "http";
    let in_forwarded = |hop: String| {
        hop.split(';').any(|pair| {
            pair.trim().strip_prefix("proto=").is_some_and(|value| value.trim_matches('"') == "http")
        })
    };
    last(&FORWARDED_PROTO).is_some_and(is_http) || last(&header::FORWARDED).is_some_and(in_forwarded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Wall;

    fn now(seconds: u64) -> Now {
        Now { wall: Wall::from_seconds(seconds), mono: Mono::from_nanos(seconds * 1_000_000_000) }
    }

    #[test]
    fn a_network_gets_its_links_in_an_hour_and_not_in_a_minute() {
        let admission = SiteAdmission::new(6);
        let client = "192.0.2.1".parse().unwrap();
        let sent = |at: u64| (0..100).filter(|_| admission.count_link(client, now(at)).is_ok()).count();
        assert_eq!(sent(100_000), 6);
        assert_eq!(sent(100_000 + 599), 0);
        assert_eq!(sent(100_000 + 601), 1);
        assert_eq!(sent(100_000 + 4_300), 6);
        assert!(admission.count_link("192.0.2.2".parse().unwrap(), now(100_000)).is_ok());
    }

    #[test]
    fn all_networks_together_have_a_limit_of_links() {
        let admission = SiteAdmission::new(6);
        let sent = |at: u64| (0..100).filter(|_| admission.count_any_link(60, now(at)).is_ok()).count();
        assert_eq!((sent(100), sent(100), sent(101), sent(160)), (60, 0, 1, 59));
    }

    #[tokio::test]
    async fn requests_beyond_the_slots_wait_for_a_second_and_beyond_the_queue_not_at_all() {
        let admission = SiteAdmission::new(1);
        let (clock, manual) = Clock::manual(Wall::from_seconds(100));
        let mut held = Vec::new();
        for _ in 0..AT_ONCE {
            held.push(admission.enter(&clock).await.unwrap());
        }
        let mut waiting: Vec<_> = (0..QUEUED).map(|_| Box::pin(admission.enter(&clock))).collect();
        for entering in &mut waiting {
            assert!(futures_util::poll!(entering).is_pending());
        }
        assert_eq!(admission.enter(&clock).await.unwrap_err(), SiteRefusal::Busy);
        held.pop();
        let first = waiting.remove(0).await.unwrap();
        manual.advance(QUEUE_TIMEOUT);
        for entering in waiting {
            assert_eq!(entering.await.unwrap_err(), SiteRefusal::Busy);
        }
        drop(first);
        assert!(admission.enter(&clock).await.is_ok());
    }

    #[test]
    fn clear_text_is_accepted_on_loopback_and_from_a_trusted_proxy_only() {
        let trusted = ["10.0.0.1".parse().unwrap()].into_iter().collect();
        let proxies = Proxies { trusted, ..Proxies::default() };
        let check = |address: &str, is_encrypted, lines: &[(HeaderName, &'static str)]| {
            let headers =
                lines.iter().map(|(name, value)| (name.clone(), http::HeaderValue::from_static(value)));
            let peer = Peer { address: address.parse().unwrap(), is_encrypted };
            require_encryption(peer, &proxies, &headers.collect()).is_ok()
        };
        assert!(
            check("192.0.2.1", true, &[])
                && check("127.0.0.1", false, &[])
                && check("::ffff:127.0.0.1", false, &[])
        );
        assert!(check("10.0.0.1", false, &[]) && check("10.0.0.1", false, &[(FORWARDED_PROTO, "https")]));
        assert!(!check("192.0.2.1", false, &[]) && !check("192.0.2.1", false, &[(FORWARDED_PROTO, "https")]));
        assert!(!check("10.0.0.1", false, &[(FORWARDED_PROTO, "https, http")]));
        assert!(!check("10.0.0.1", false, &[(header::FORWARDED, "for=1.2.3.4; proto=http")]));
    }
}
