//! The applications with the most requests of the day, for operators.
//!
//! Counts are kept in bounded memory, since midnight UTC or the start of the process. Applications that are not tracked
//! have too few requests to matter. `request_counter` updates the counts later, so requests do not wait for the update. Metrics
//! never distinguish applications.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use scoregate_base::{
    clock::{Day, Now},
    keys::ApplicationId,
    limits::LimitRule,
};
use scoregate_observe::telemetry::space_saving::{SketchEntry, SpaceSaving};

use crate::accounts::{Account, CountedRequests, KindCount, UsageCounts};

/// Usage of an application, as the side port returns it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ApplicationUse {
    /// The id of the application.
    pub application: String,
    /// The name of the application.
    pub name: String,
    /// The name of the tier.
    pub tier: String,
    /// Remaining allowances for the minute, the day, the guard, and other limits whose balance is known.
    pub limits: Vec<RemainingAllowance>,
    /// The counted requests; null if there are too few to be tracked.
    pub requests: Option<CountedRequests>,
}

/// The remaining allowance of a rule.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RemainingAllowance {
    /// The rule.
    pub name: String,
    /// Allowed units.
    pub limit: u32,
    /// Remaining units.
    pub remaining: u32,
    /// Time at which the full allowance is available again.
    pub reset_at: String,
}

/// Tracks the applications with the most requests.
#[derive(Default)]
pub struct ApplicationUsage {
    applications: SpaceSaving<ApplicationId, TrackedUse>,
}

/// An entry that replaces another gets its account only on the second request. If most callers send a single request, this avoids
/// touching the reference counts of accounts that are no longer in the CPU caches.
#[derive(Clone, Default)]
struct TrackedUse {
    account: Option<Arc<Account>>,
    counts: UsageCounts,
}

impl ApplicationUsage {
    /// Counts requests of an application.
    pub fn count(&self, account: &Arc<Account>, counted: &KindCount) {
        let caller = || Arc::clone(account);
        let (requests, minute) = counted.requests_of_minute();
        self.applications.count(
            era(counted.day()),
            account.id,
            requests.requests,
            |inherited| TrackedUse {
                account: (inherited == 0).then(caller),
                ..TrackedUse::default()
            },
            |used| {
                if !used.counts.is_empty() || requests.requests > 1 {
                    used.account.get_or_insert_with(caller);
                }
                used.counts.add(&requests, minute);
            },
        );
    }

    /// The applications with the most requests of the day.
    pub fn list(&self, most: usize, now: Now) -> Vec<ApplicationUse> {
        let listed = self.applications.list(era(now.wall.day())).into_iter();
        let known = listed.filter_map(
            |SketchEntry {
                 overestimate,
                 value,
                 ..
             }| {
                let requests = Some(value.counts.counted(overestimate, now));
                Some(ApplicationUse::new(value.account.as_ref()?, requests, now))
            },
        );
        known.take(most).collect()
    }

    /// Usage of one application.
    pub fn of(&self, account: &Account, now: Now) -> ApplicationUse {
        let found = self.applications.find(era(now.wall.day()), account.id);
        let requests = found.map(|entry| entry.value.counts.counted(entry.overestimate, now));
        ApplicationUse::new(account, requests, now)
    }
}

impl ApplicationUse {
    fn new(account: &Account, requests: Option<CountedRequests>, now: Now) -> Self {
        let terms = account.terms();
        Self {
            application: account.id.to_string(),
            name: account.name().into(),
            tier: terms.tier_name.to_string(),
            limits: account
                .limit_statuses(LimitRule::Guard, &terms.limits, now)
                .into_iter()
                .chain(account.window_statuses(&terms.limits, now))
                .map(|status| RemainingAllowance {
                    name: status.rule.name().into(),
                    limit: status.limit,
                    remaining: status.remaining,
                    reset_at: status.reset.rfc3339(),
                })
                .collect(),
            requests,
        }
    }
}

/// The era of a day. Sketches are reset when the era changes.
fn era(day: Day) -> u64 {
    u64::from(day.number())
}
