//! Usage statistics: the applications with the most requests of the day, and the unauthenticated clients with the
//! most refused requests.
//!
//! In memory, since the start of the process or midnight UTC, in bounded space: callers that are not tracked have too
//! few requests to matter. Remaining limits are in `account`; metrics never distinguish applications.

use std::net::IpAddr;
use std::sync::Arc;

use http::StatusCode;
use serde::{Deserialize, Serialize};

use crate::accounts::Account;
use crate::instruments::CacheOutcome;
use scoregate_base::clock::{Now, Wall};
use scoregate_base::keys::ApplicationId;
use scoregate_base::limits::{LimitRule, LimitStatus, network};
use scoregate_observe::telemetry::space_saving::{SketchEntry, SpaceSaving};

use super::super::refusal::Responsibility;

const NANOS_A_MINUTE: u64 = 60_000_000_000;

/// Usage statistics.
pub struct UsageTracker {
    since: Wall,
    /// An entry is assigned an account at its second request only. If most callers come once, no account is dropped
    /// whose memory is cold.
    applications: SpaceSaving<ApplicationId, UsageCounts<Option<Arc<Account>>>>,
    unauthenticated: SpaceSaving<IpAddr, UsageCounts<()>>,
}

/// How a request ended, for usage statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum RequestEnd {
    /// A document was delivered.
    Delivered(CacheOutcome),
    /// 304.
    Unchanged,
    /// No document (`/me`), or the client disconnected.
    Other,
    /// Refused by a limit.
    Limited,
    /// Refused by another fault of the caller.
    ClientError,
    /// The gateway or the backend failed.
    Failed,
}

/// Requests, by how they ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestCounts {
    /// All requests.
    pub requests: u64,
    /// Documents delivered.
    pub delivered: u64,
    /// Delivered documents that waited for the backend.
    pub waited: u64,
    /// 304 responses.
    pub unchanged: u64,
    /// Refused by a limit.
    pub limited: u64,
    /// Refused by another fault of the caller.
    pub client_errors: u64,
    /// The gateway or the backend failed.
    pub failed: u64,
}

/// Usage of an application.
#[derive(Clone, Debug)]
pub struct ApplicationUse {
    /// Its id.
    pub id: ApplicationId,
    /// Its name.
    pub name: Box<str>,
    /// The name of its tier.
    pub tier: String,
    /// Status of its minute, its day and its guard.
    pub limit_statuses: [LimitStatus; 3],
    /// Its requests, if it is tracked.
    pub counted: Option<CountedRequests>,
}

/// Usage of an unauthenticated client.
#[derive(Clone, Debug)]
pub struct UnauthenticatedUse {
    /// Its address or /64.
    pub network: IpAddr,
    /// Its refused requests.
    pub counted: CountedRequests,
}

/// Counted requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedRequests {
    /// Since midnight UTC or the start of the process.
    pub today: RequestCounts,
    /// In the last full minute.
    pub last_minute: RequestCounts,
    /// Upper bound of the requests before tracking began.
    pub missed: u64,
}

/// Tracked counts of a caller.
#[derive(Clone)]
struct UsageCounts<W> {
    caller: W,
    today: RequestCounts,
    minute: u64,
    this_minute: RequestCounts,
    last_minute: RequestCounts,
}

impl RequestEnd {
    /// Classifies the end of a request.
    pub(in super::super) fn of(
        refused: Option<(Responsibility, Option<LimitRule>)>,
        outcome: Option<CacheOutcome>,
        status: Option<StatusCode>,
    ) -> Self {
        match (refused, outcome) {
            (Some((_, Some(_))), _) => Self::Limited,
            (Some((Responsibility::Caller, None)), _) => Self::ClientError,
            (Some((Responsibility::Us | Responsibility::Upstream, None)), _) => Self::Failed,
            (None, Some(outcome)) if status == Some(StatusCode::OK) => Self::Delivered(outcome),
            (None, Some(_)) if status.is_some() => Self::Unchanged,
            (None, _) => Self::Other,
        }
    }
}

impl RequestCounts {
    fn add(&mut self, end: RequestEnd) {
        self.requests += 1;
        match end {
            RequestEnd::Delivered(outcome) => {
                self.delivered += 1;
                let waited =
                    matches!(outcome, CacheOutcome::Miss | CacheOutcome::Shared | CacheOutcome::Refreshed);
                self.waited += u64::from(waited);
            }
            RequestEnd::Unchanged => self.unchanged += 1,
            RequestEnd::Other => {}
            RequestEnd::Limited => self.limited += 1,
            RequestEnd::ClientError => self.client_errors += 1,
            RequestEnd::Failed => self.failed += 1,
        }
    }
}

impl<W> UsageCounts<W> {
    fn new(caller: W) -> Self {
        let (today, this_minute, last_minute) = Default::default();
        Self { caller, today, minute: 0, this_minute, last_minute }
    }

    fn add(&mut self, end: RequestEnd, minute: u64) {
        if minute > self.minute {
            self.last_minute = self.last_full_minute(minute);
            (self.minute, self.this_minute) = (minute, RequestCounts::default());
        }
        self.today.add(end);
        self.this_minute.add(end);
    }

    fn last_full_minute(&self, minute: u64) -> RequestCounts {
        match minute.checked_sub(self.minute) {
            Some(0) => self.last_minute,
            Some(1) => self.this_minute,
            Some(_) | None => RequestCounts::default(),
        }
    }

    fn counted(&self, overestimate: u64, now: Now) -> CountedRequests {
        CountedRequests {
            today: self.today,
            last_minute: self.last_full_minute(minute(now)),
            missed: overestimate,
        }
    }
}

impl UsageTracker {
    /// Empty statistics.
    pub fn new(now: Now) -> Self {
        Self { since: now.wall, applications: SpaceSaving::new(), unauthenticated: SpaceSaving::new() }
    }

    /// Start of the counts: the start of the process, or midnight UTC.
    pub fn since(&self, now: Now) -> Wall {
        self.since.max(now.wall.day().start())
    }

    /// Counts a request of an application.
    pub(in super::super) fn count(&self, account: &Arc<Account>, end: RequestEnd, now: Now) {
        let caller = || Arc::clone(account);
        let new = |inherited| UsageCounts::new((inherited == 0).then(caller));
        self.applications.count(era(now), account.id, new, |usage| {
            if usage.today.requests > 0 {
                usage.caller.get_or_insert_with(caller);
            }
            usage.add(end, minute(now));
        });
    }

    /// Counts a refused request of an unauthenticated client.
    pub(in super::super) fn count_unauthenticated(&self, address: IpAddr, end: RequestEnd, now: Now) {
        let new = |_| UsageCounts::new(());
        self.unauthenticated.count(era(now), network(address), new, |usage| usage.add(end, minute(now)));
    }

    /// The applications with the most requests of the day.
    pub fn applications(&self, most: usize, now: Now) -> Vec<ApplicationUse> {
        let listed = self.applications.list(era(now)).into_iter();
        let known = listed.filter_map(|SketchEntry { overestimate, value, .. }| {
            let counted = Some(value.counted(overestimate, now));
            Some(ApplicationUse { counted, ..ApplicationUse::of(value.caller.as_ref()?, now) })
        });
        known.take(most).collect()
    }

    /// The unauthenticated clients with the most refused requests of the day.
    pub fn unauthenticated(&self, most: usize, now: Now) -> Vec<UnauthenticatedUse> {
        let listed = self.unauthenticated.list(era(now)).into_iter().take(most);
        listed
            .map(|SketchEntry { key, overestimate, value, .. }| UnauthenticatedUse {
                network: key,
                counted: value.counted(overestimate, now),
            })
            .collect()
    }

    /// Usage of one application.
    pub fn of(&self, account: &Account, now: Now) -> ApplicationUse {
        let found = self.applications.find(era(now), account.id);
        let counted = found.map(|entry| entry.value.counted(entry.overestimate, now));
        ApplicationUse { counted, ..ApplicationUse::of(account, now) }
    }
}

impl ApplicationUse {
    fn of(account: &Account, now: Now) -> Self {
        let terms = account.terms();
        Self {
            id: account.id,
            name: account.name(),
            tier: terms.tier_name.to_string(),
            limit_statuses: account.limit_statuses(LimitRule::Guard, &terms.limits, now),
            counted: None,
        }
    }
}

/// The day that sketches are reset for.
fn era(now: Now) -> u64 {
    u64::from(now.wall.day().number())
}

/// By monotonic time, which clock steps do not move.
fn minute(now: Now) -> u64 {
    now.mono.nanos() / NANOS_A_MINUTE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::TermsByTier;
    use crate::accounts::sample::stored;
    use scoregate_base::plans::standard_tiers;
    use scoregate_store::StoredApplication;

    fn account(number: u32, terms: &TermsByTier) -> Arc<Account> {
        let id = format!("app_{number:011}").parse().unwrap();
        let stored = StoredApplication { id, ..stored("free", &[]) };
        let terms = terms.of(&stored.tier, stored.own).unwrap();
        Arc::new(Account::new(&stored, terms, Now::default().wall.day()))
    }

    #[test]
    fn replacing_application_is_assigned_at_its_second_request() {
        let (terms, now) = (TermsByTier::new(&standard_tiers(), 60), Now::default());
        let usage = UsageTracker::new(now);
        let all: Vec<_> = (0..5_000).map(|number| account(number, &terms)).collect();
        for account in &all {
            usage.count(account, RequestEnd::Other, now);
        }
        let is_held = |account: &Arc<Account>| Arc::strong_count(account) > 1;
        let held = all.iter().filter(|account| is_held(account)).count();
        assert_eq!(usage.applications(usize::MAX, now).len(), held);
        let last = all.last().unwrap();
        assert!(held < 1_100 && !is_held(last), "{held}");
        usage.count(last, RequestEnd::Other, now);
        assert!(is_held(last));
        assert_eq!(usage.of(last, now).counted.map(|counted| counted.today.requests), Some(2));
        assert!(usage.applications(usize::MAX, now).iter().any(|one| one.id == last.id));
    }
}
