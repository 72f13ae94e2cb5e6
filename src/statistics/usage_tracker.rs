//! Usage of the unauthenticated clients with the most refused requests of the day.
//!
//! Counts begin at midnight UTC or at the start of the process, and are kept in bounded memory. Applications are counted in
//! `application_usage`.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

use crate::accounts::{CountedRequests, RequestCounts, UsageCounts, minute_of};
use scoregate_base::{
    clock::{Now, Wall},
    limits::network,
};
use scoregate_observe::telemetry::space_saving::{SketchEntry, SpaceSaving};
use scoregate_store::RequestOutcome;

/// Usage statistics of unauthenticated clients.
pub struct UsageTracker {
    since: Wall,
    unauthenticated: SpaceSaving<IpAddr, UsageCounts>,
}

/// Usage of an unauthenticated client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UnauthenticatedUse {
    /// The IPv4 address, or the IPv6 network that is counted as one client.
    pub address: String,
    /// The refused requests.
    pub requests: CountedRequests,
}

impl UsageTracker {
    /// Empty statistics.
    pub fn new(now: Now) -> Self {
        Self {
            since: now.wall,
            unauthenticated: SpaceSaving::new(),
        }
    }

    /// Start of the counts: the start of the process, or midnight UTC.
    pub fn since(&self, now: Now) -> Wall {
        self.since.max(now.wall.day().start())
    }

    /// Counts a refused request.
    pub(crate) fn count(&self, address: IpAddr, outcome: RequestOutcome, now: Now) {
        let one = RequestCounts::with_outcome(outcome, 1);
        self.unauthenticated.count(
            era(now),
            network(address),
            1,
            |_| UsageCounts::default(),
            |counts: &mut UsageCounts| counts.add(&one, minute_of(now.mono)),
        );
    }

    /// The clients with the most refused requests of the day.
    pub fn unauthenticated(&self, most: usize, now: Now) -> Vec<UnauthenticatedUse> {
        let listed = self.unauthenticated.list(era(now)).into_iter().take(most);
        listed
            .map(
                |SketchEntry {
                     key,
                     overestimate,
                     value,
                     ..
                 }| UnauthenticatedUse {
                    address: key.to_string(),
                    requests: value.counted(overestimate, now),
                },
            )
            .collect()
    }
}

/// The day as the era of sketches, which are reset when it changes.
fn era(now: Now) -> u64 {
    u64::from(now.wall.day().number())
}
