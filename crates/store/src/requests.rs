//! Requests of each application by UTC day, endpoint and outcome, for reports.
//!
//! They are stored with a delay, so no decision may depend on them: quotas follow the ledger. Reports of a node are totals that
//! only increase, so a report that is repeated, late or out of order changes nothing. A day is open for reports
//! until two days after it ended. Then the totals of its nodes are merged. Only requests with a valid key are counted.
//!
//! Used units follow from the requests: each response with content from an endpoint other than `/me` costs one unit.

use std::{borrow::Cow, collections::BTreeMap};

use serde::{Deserialize, Serialize};

use scoregate_base::{
    clock::Day,
    keys::{ApplicationId, OwnerId},
    limits::{LimitRule, Period},
    words,
};

/// Number of days that are open for reports, including the current day.
pub const REQUEST_DAYS_OPEN: u32 = 3;
/// Number of days for which requests are kept, including the current day.
pub const REQUEST_DAYS_KEPT: u32 = 92;

words! {
    /// The outcome of a request, as the developer of an application sees it.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum RequestOutcome: word {
        /// A response with content.
        Ok = "ok",
        /// 304: the caller's copy is current.
        NotModified = "not_modified",
        /// The request must be changed: 4xx except the two 429 outcomes below, including 429 `too_many_refusals`.
        ClientError = "client_error",
        /// 429: the minute limit is used up.
        RateLimited = "rate_limited",
        /// 429: a daily or monthly quota is used up.
        QuotaExceeded = "quota_exceeded",
        /// 5xx: the gateway or the backend failed.
        ServerError = "server_error",
        /// The client disconnected before the response.
        Disconnected = "disconnected",
    }
}

impl RequestOutcome {
    /// The outcome of a request that was refused by a limit.
    pub const fn of_limit(rule: LimitRule) -> Self {
        match rule.row().period {
            Period::Minute => Self::RateLimited,
            Period::Calendar(_) => Self::QuotaExceeded,
            // Waiting does not help: the caller has to fix the requests that were refused earlier.
            Period::Guard => Self::ClientError,
        }
    }
}

/// Requests of an application to one endpoint with one outcome on one day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RequestTotal {
    /// The day.
    pub day: Day,
    /// The application.
    pub application: ApplicationId,
    /// The name of the endpoint, or `none` for other paths. A newer release may have written names that are unknown here.
    pub endpoint: Cow<'static, str>,
    /// The outcome.
    pub outcome: RequestOutcome,
    /// The number of requests.
    pub requests: u64,
}

/// A query for the request counts of an application, summed over all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestQuery {
    /// The application.
    pub application: ApplicationId,
    /// The first day.
    pub first: Day,
    /// The last day. If the range is longer than [`REQUEST_DAYS_KEPT`] days, only its last days are read.
    pub last: Day,
}

/// The reply to a query for requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestList {
    /// The totals by day, endpoint and outcome, oldest day first.
    pub totals: Vec<RequestTotal>,
}

/// Usage of a day, summed over all nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageList {
    /// The totals, the largest first.
    pub totals: Vec<UsageTotal>,
    /// Number of applications with usage, including those beyond the limit of the query.
    pub matching: u64,
    /// The sum of their units.
    pub units: u64,
    /// Whether the day is closed. The totals of a closed day no longer change.
    pub is_closed: bool,
}

/// Units delivered to an application on a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsageTotal {
    /// The account at the end of the day, or when the application was closed; `None` if there was none.
    pub account: Option<OwnerId>,
    /// The application.
    pub application: ApplicationId,
    /// The day.
    pub day: Day,
    /// The day and the application.
    pub id: String,
    /// The tier at the end of the day; `None` if a restored backup lacks the application.
    pub tier: Option<String>,
    /// The units.
    pub units: u64,
}

impl UsageTotal {
    /// The names of the columns in CSV.
    pub const CSV_HEAD: &str = "account,application,day,id,tier,units\n";

    /// The total as a line of CSV. No value needs quoting.
    pub fn csv(&self) -> String {
        let Self {
            account,
            application,
            day,
            id,
            tier,
            units,
        } = self;
        let account = account.map_or(String::new(), |id| id.to_string());
        let tier = tier.as_deref().unwrap_or_default();
        format!("{account},{application},{day},{id},{tier},{units}\n")
    }

    /// The total as a line of JSON.
    pub fn json(&self) -> String {
        let json = serde_json::to_string(self).expect("strings and numbers are valid JSON");
        json + "\n"
    }
}

/// The first day of a month such as `2026-11`, if all days of the month up to today are kept.
pub fn first_of_month(month: &str, today: Day) -> Option<Day> {
    Day::parse(&format!("{month}-01"))
        .filter(|first| *first <= today && first.number() + REQUEST_DAYS_KEPT > today.number())
}

/// Requests by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    missing_docs,
    reason = "each is a variant of `RequestOutcome`, which describes it"
)]
pub struct OutcomeCounts {
    pub ok: u64,
    pub not_modified: u64,
    pub client_error: u64,
    pub rate_limited: u64,
    pub quota_exceeded: u64,
    pub server_error: u64,
    pub disconnected: u64,
}

impl RequestQuery {
    /// The days, oldest first.
    pub fn days(&self) -> impl DoubleEndedIterator<Item = Day> + use<> {
        let oldest = self.last.number().saturating_sub(REQUEST_DAYS_KEPT - 1);
        (self.first.number().max(oldest)..=self.last.number()).map(Day::from_number)
    }
}

impl RequestList {
    /// All requests.
    pub fn sum(&self) -> OutcomeCounts {
        let mut sum = OutcomeCounts::default();
        self.totals
            .iter()
            .for_each(|total| sum.add(total.outcome, total.requests));
        sum
    }

    /// The requests of each day of the query, oldest first. Days without requests are included.
    pub fn by_day(&self, query: &RequestQuery) -> Vec<(Day, OutcomeCounts)> {
        let mut days: BTreeMap<Day, OutcomeCounts> = query
            .days()
            .map(|day| (day, OutcomeCounts::default()))
            .collect();
        for total in &self.totals {
            days.entry(total.day)
                .or_default()
                .add(total.outcome, total.requests);
        }
        days.into_iter().collect()
    }

    /// The requests to each endpoint, most requests first.
    pub fn by_endpoint(&self) -> Vec<(&str, OutcomeCounts)> {
        let mut endpoints: BTreeMap<&str, OutcomeCounts> = BTreeMap::new();
        for total in &self.totals {
            endpoints
                .entry(&total.endpoint)
                .or_default()
                .add(total.outcome, total.requests);
        }
        let mut endpoints: Vec<_> = endpoints.into_iter().collect();
        endpoints.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.total()));
        endpoints
    }
}

impl OutcomeCounts {
    /// Number of requests with this outcome.
    pub const fn of(mut self, outcome: RequestOutcome) -> u64 {
        *self.count(outcome)
    }

    /// Number of requests with any outcome.
    pub fn total(&self) -> u64 {
        RequestOutcome::ALL
            .iter()
            .fold(0, |sum: u64, outcome| sum.saturating_add(self.of(*outcome)))
    }

    fn add(&mut self, outcome: RequestOutcome, requests: u64) {
        let count = self.count(outcome);
        *count = count.saturating_add(requests);
    }

    const fn count(&mut self, outcome: RequestOutcome) -> &mut u64 {
        match outcome {
            RequestOutcome::Ok => &mut self.ok,
            RequestOutcome::NotModified => &mut self.not_modified,
            RequestOutcome::ClientError => &mut self.client_error,
            RequestOutcome::RateLimited => &mut self.rate_limited,
            RequestOutcome::QuotaExceeded => &mut self.quota_exceeded,
            RequestOutcome::ServerError => &mut self.server_error,
            RequestOutcome::Disconnected => &mut self.disconnected,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(number: u32) -> Day {
        Day::from_number(number)
    }

    #[test]
    fn requests_are_added_up_by_day_and_by_endpoint() {
        let application = ApplicationId::mint().unwrap();
        let total = |of, endpoint: &'static str, outcome, requests| RequestTotal {
            day: day(of),
            application,
            endpoint: endpoint.into(),
            outcome,
            requests,
        };
        let totals = vec![
            total(20_000, "index", RequestOutcome::Ok, 1),
            total(20_000, "models", RequestOutcome::Ok, 5),
            total(20_002, "models", RequestOutcome::RateLimited, u64::MAX),
        ];
        let list = RequestList { totals };
        let query = RequestQuery {
            application,
            first: day(20_000),
            last: day(20_002),
        };
        let ok = |ok| OutcomeCounts {
            ok,
            ..OutcomeCounts::default()
        };
        let limited = OutcomeCounts {
            rate_limited: u64::MAX,
            ..OutcomeCounts::default()
        };
        assert_eq!(
            list.by_day(&query),
            [
                (day(20_000), ok(6)),
                (day(20_001), ok(0)),
                (day(20_002), limited)
            ]
        );
        let models = OutcomeCounts { ok: 5, ..limited };
        assert_eq!(list.by_endpoint(), [("models", models), ("index", ok(1))]);
        assert_eq!(
            (list.sum(), models.total()),
            (OutcomeCounts { ok: 6, ..limited }, u64::MAX)
        );
    }

    #[test]
    fn a_query_reads_at_most_the_days_that_are_kept() {
        let application = ApplicationId::mint().unwrap();
        let days = |first, last| {
            RequestQuery {
                application,
                first: day(first),
                last: day(last),
            }
            .days()
        };
        assert_eq!(days(7, 9).collect::<Vec<_>>(), [day(7), day(8), day(9)]);
        assert_eq!(days(9, 7).count(), 0);
        assert_eq!(days(0, 3).count(), 4);
        let all: Vec<Day> = days(0, u32::MAX).collect();
        assert_eq!((all.len(), all.last()), (92, Some(&day(u32::MAX))));
    }

    #[test]
    fn every_outcome_has_a_name_and_a_count() {
        for outcome in RequestOutcome::ALL {
            assert_eq!(RequestOutcome::parse(outcome.word()), Some(outcome));
            let mut counts = OutcomeCounts::default();
            counts.add(outcome, 3);
            assert_eq!((counts.of(outcome), counts.total()), (3, 3));
            let shown = serde_json::to_value(counts).unwrap();
            assert_eq!(shown[outcome.word()], 3);
        }
        assert_eq!(RequestOutcome::parse("OK"), None);
    }
}
