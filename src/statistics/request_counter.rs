//! Counts the requests of each application by day, endpoint and outcome, until they are recorded in the store.
//!
//! A request increments a number in its account. Before each recording, these numbers are reset to zero and added
//! to the totals of this process, which never decrease. Successive `Account`s of an application therefore add up to
//! one total.

use std::{
    collections::{BTreeSet, HashMap},
    net::IpAddr,
    sync::Arc,
};

use http::HeaderValue;
use parking_lot::Mutex;

use scoregate_base::{
    clock::{Day, Now, Wall},
    evidence::HourEvidence,
    keys::ApplicationId,
    routes::Route,
};
use scoregate_store::{HourRecord, REQUEST_DAYS_OPEN, RequestTotal, Store, StoreResult};

use crate::{
    accounts::{Account, CountedRequest, RequestKind},
    statistics::{
        application_usage::{ApplicationUsage, ApplicationUse},
        evidence_book::EvidenceBook,
    },
};

/// Number of totals per store call.
// This limits the size of a statement, regardless of the number of active applications.
const AT_ONCE: usize = 1_000;
/// The endpoint name for unknown paths. Metrics and logs use the same word.
const NO_ENDPOINT: &str = "none";

/// Counts requests.
#[derive(Default)]
pub struct RequestCounter {
    /// Accounts with requests since the last recording, each listed once. A request locks the list only if it is its account's
    /// first since the last recording.
    accounts: Mutex<Vec<Arc<Account>>>,
    /// Locked while totals are recorded or read, never by requests.
    totals: Mutex<RequestTotals>,
    usage: ApplicationUsage,
    evidence: EvidenceBook,
}

/// Totals of this process.
#[derive(Default)]
struct RequestTotals {
    requests: HashMap<TotalKey, u64>,
    /// The totals that the store does not have yet.
    unrecorded: BTreeSet<TotalKey>,
    /// The day on which totals of closed days were last removed.
    cleaned_on: Day,
}

type TotalKey = (ApplicationId, RequestKind);

impl RequestCounter {
    /// Counts a request. The account is locked once.
    pub(crate) fn count(&self, account: &Arc<Account>, request: CountedRequest) {
        let is_first = account.state().count_request(request);
        // The account is unlocked here, because recording locks the list first and then the accounts.
        if is_first {
            self.accounts.lock().push(Arc::clone(account));
        }
    }

    /// Records the origin of an application's request.
    pub(crate) fn came_from(
        &self,
        account: &Account,
        address: IpAddr,
        agent: Option<&HeaderValue>,
        at: Wall,
    ) {
        if let Some(origin) = self.evidence.origin(address, agent, at) {
            account.state().came_from(origin, at);
        }
    }

    /// Advice for the owner of an application, based on the requests of the current hour that have already been taken from its account.
    pub(crate) fn advice(&self, account: &Account, now: Wall) -> Vec<String> {
        self.evidence.advice(account.id, HourEvidence::hour_of(now))
    }

    /// Adds to the totals the requests that accounts have counted since the last call.
    fn take_counted(&self) {
        // The lock is held throughout, because a concurrent reader must not miss numbers that were taken from accounts
        // but not added yet.
        let mut totals = self.totals.lock();
        let mut counted = Vec::new();
        // Only this method takes the numbers of an account, so an account that gets requests later is listed for the next call. The list is taken in a separate statement, so that no request waits for the list while accounts are
        // read.
        let accounts = std::mem::take(&mut *self.accounts.lock());
        for account in accounts {
            let (counts, evidence) = account.state().take_requests().into_parts();
            counted.extend(
                counts
                    .into_iter()
                    .map(|count| (Arc::clone(&account), count)),
            );
            self.evidence.add(account.id, evidence);
        }
        // The oldest day comes first: the usage table is cleared when a new day starts, and would then count older requests as
        // requests of that day.
        counted.sort_by_key(|(_, count)| count.day());
        for (account, count) in &counted {
            totals.add((account.id, count.kind()), count.requests());
            self.usage.count(account, count);
        }
    }

    /// The applications with the most requests of the day.
    pub fn applications(&self, most: usize, now: Now) -> Vec<ApplicationUse> {
        self.take_counted();
        self.usage.list(most, now)
    }

    /// Usage of one application.
    pub fn usage_of(&self, account: &Account, now: Now) -> ApplicationUse {
        self.take_counted();
        self.usage.of(account, now)
    }

    /// Gets the key of the day for hashing origins of requests.
    pub(crate) async fn begin_day(&self, store: &Store, day: Day) -> StoreResult<()> {
        self.evidence.ensure_key(store, day).await
    }

    /// Records the evidence of hours before `until`. Called after `record`.
    pub(crate) async fn record_evidence<F: Future<Output = StoreResult<()>>>(
        &self,
        until: u32,
        recording: impl Fn(Vec<HourRecord>) -> F,
    ) -> StoreResult<()> {
        self.evidence.record(until, recording).await
    }

    /// Records totals that have increased since the last call. The next call includes totals that could not be recorded. Calls
    /// must not overlap.
    pub(crate) async fn record<F: Future<Output = StoreResult<()>>>(
        &self,
        today: Day,
        recording: impl Fn(Vec<RequestTotal>) -> F,
    ) -> StoreResult<()> {
        self.take_counted();
        self.totals.lock().clean(today);
        loop {
            // The lock is held for each step but not during the call, because readers must not wait for the store.
            let batch = self.totals.lock().next_batch();
            if batch.is_empty() {
                return Ok(());
            }
            let (keys, totals): (Vec<_>, Vec<_>) = batch.into_iter().unzip();
            let recorded: Vec<u64> = totals.iter().map(|total| total.requests).collect();
            recording(totals).await?;
            self.totals.lock().recorded(keys.into_iter().zip(recorded));
        }
    }
}

impl RequestTotals {
    fn add(&mut self, key: TotalKey, requests: u64) {
        let total = self.requests.entry(key).or_default();
        *total = total.saturating_add(requests);
        self.unrecorded.insert(key);
    }

    /// Removes totals of days for which the store no longer accepts reports.
    fn clean(&mut self, today: Day) {
        if self.cleaned_on < today {
            self.cleaned_on = today;
            self.requests
                .retain(|(_, kind), _| is_open(kind.day, today));
            self.requests.shrink_to_fit();
            self.unrecorded.retain(|(_, kind)| is_open(kind.day, today));
        }
    }

    fn next_batch(&self) -> Vec<(TotalKey, RequestTotal)> {
        self.unrecorded
            .iter()
            .take(AT_ONCE)
            .map(|key| (*key, self.total(key)))
            .collect()
    }

    /// Marks these totals as recorded, except totals that have increased in the meantime.
    fn recorded(&mut self, totals: impl Iterator<Item = (TotalKey, u64)>) {
        for (key, requests) in totals {
            if self
                .requests
                .get(&key)
                .is_none_or(|total| *total == requests)
            {
                self.unrecorded.remove(&key);
            }
        }
    }

    fn total(&self, key: &TotalKey) -> RequestTotal {
        let (
            application,
            RequestKind {
                day,
                endpoint,
                outcome,
            },
        ) = *key;
        let requests = self.requests.get(key).copied().unwrap_or_default();
        let endpoint = endpoint.map_or(NO_ENDPOINT, Route::name).into();
        RequestTotal {
            day,
            application,
            endpoint,
            outcome,
            requests,
        }
    }
}

/// Whether the store still accepts reports for a day.
fn is_open(day: Day, today: Day) -> bool {
    day.number().saturating_add(REQUEST_DAYS_OPEN) > today.number()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::future::ready;

    use crate::accounts::{TermsByTier, stored};
    use crate::statistics::request_counter::*;
    use scoregate_base::plans::standard_tiers;
    use scoregate_store::{RequestOutcome, StoreError, StoredApplication};

    const TODAY: Day = Day::from_number(20_413);
    const OK: RequestOutcome = RequestOutcome::Ok;

    type Totals = BTreeMap<(Day, String, RequestOutcome), u64>;

    /// The totals that are passed to the store, which is unreachable if `is_away`.
    async fn passed(counter: &RequestCounter, today: Day, is_away: bool) -> Totals {
        let passed = Mutex::new(Vec::new());
        let recording = |totals: Vec<RequestTotal>| {
            passed.lock().extend(totals);
            let away = || StoreError::Unavailable {
                doing: "record requests",
                reason: "it is away".into(),
            };
            ready(if is_away { Err(away()) } else { Ok(()) })
        };
        let recorded = counter.record(today, recording).await;
        assert_eq!(recorded.is_ok(), !is_away);
        let passed = passed.into_inner().into_iter();
        passed
            .map(|total| {
                let endpoint = total.endpoint.to_string();
                ((total.day, endpoint, total.outcome), total.requests)
            })
            .collect()
    }

    async fn recorded(counter: &RequestCounter, today: Day) -> Totals {
        passed(counter, today, false).await
    }

    fn account(id: ApplicationId) -> Arc<Account> {
        let stored = StoredApplication {
            id,
            ..stored("pro", &[])
        };
        let terms = TermsByTier::new(&standard_tiers(), 60)
            .of("pro", stored.own)
            .unwrap();
        Arc::new(Account::new(&stored, terms, TODAY))
    }

    fn count(
        counter: &RequestCounter,
        account: &Arc<Account>,
        day: Day,
        kind: (Option<Route>, RequestOutcome),
    ) {
        let (endpoint, outcome) = kind;
        let kind = RequestKind {
            day,
            endpoint,
            outcome,
        };
        let request = CountedRequest {
            kind,
            document: None,
            waited: false,
            at: Now::default(),
        };
        counter.count(account, request);
    }

    fn day(after: u32) -> Day {
        Day::from_number(TODAY.number() + after)
    }

    #[tokio::test]
    async fn totals_of_requests_are_recorded_when_they_grew() {
        let counter = RequestCounter::default();
        let account = account(ApplicationId::mint().unwrap());
        assert!(recorded(&counter, TODAY).await.is_empty());
        for outcome in [OK, OK, RequestOutcome::Disconnected] {
            count(&counter, &account, TODAY, (Some(Route::Models), outcome));
        }
        count(
            &counter,
            &account,
            TODAY,
            (None, RequestOutcome::ClientError),
        );
        let ok = |requests| ((TODAY, "models".to_owned(), OK), requests);
        let gone = (
            (TODAY, "models".to_owned(), RequestOutcome::Disconnected),
            1,
        );
        let none = ((TODAY, "none".to_owned(), RequestOutcome::ClientError), 1);
        assert_eq!(
            recorded(&counter, TODAY).await,
            BTreeMap::from([ok(2), gone, none])
        );
        assert!(recorded(&counter, TODAY).await.is_empty());
        count(&counter, &account, TODAY, (Some(Route::Models), OK));
        assert_eq!(recorded(&counter, TODAY).await, BTreeMap::from([ok(3)]));
    }

    #[tokio::test]
    async fn a_request_counts_on_the_day_on_which_it_began_until_that_day_is_closed() {
        let counter = RequestCounter::default();
        let account = account(ApplicationId::mint().unwrap());
        let count = |of| count(&counter, &account, of, (Some(Route::Index), OK));
        let total = |of, requests| ((of, "index".to_owned(), OK), requests);
        count(TODAY);
        assert_eq!(
            recorded(&counter, TODAY).await,
            BTreeMap::from([total(TODAY, 1)])
        );
        count(day(1));
        count(TODAY);
        let both = BTreeMap::from([total(TODAY, 2), total(day(1), 1)]);
        assert_eq!(recorded(&counter, day(1)).await, both);
        count(TODAY);
        assert_eq!(
            recorded(&counter, day(2)).await,
            BTreeMap::from([total(TODAY, 3)])
        );
        count(TODAY);
        count(day(1));
        assert_eq!(
            recorded(&counter, day(3)).await,
            BTreeMap::from([total(day(1), 2)])
        );
        assert_eq!(
            counter.totals.lock().requests.len(),
            1,
            "totals of closed days use no memory"
        );
    }

    #[tokio::test]
    async fn requests_that_were_not_recorded_are_part_of_the_next_total() {
        let counter = RequestCounter::default();
        let account = account(ApplicationId::mint().unwrap());
        let total = |requests| BTreeMap::from([((TODAY, "models".to_owned(), OK), requests)]);
        count(&counter, &account, TODAY, (Some(Route::Models), OK));
        assert_eq!(passed(&counter, TODAY, true).await, total(1));
        count(&counter, &account, TODAY, (Some(Route::Models), OK));
        assert_eq!(passed(&counter, TODAY, true).await, total(2));
        assert_eq!(recorded(&counter, TODAY).await, total(2));
    }

    #[tokio::test]
    async fn an_account_that_replaces_another_of_its_application_continues_the_total() {
        let counter = RequestCounter::default();
        let id = ApplicationId::mint().unwrap();
        let total = |requests| BTreeMap::from([((TODAY, "models".to_owned(), OK), requests)]);
        for requests in 1..=3 {
            let replacing = account(id);
            count(&counter, &replacing, TODAY, (Some(Route::Models), OK));
            assert_eq!(recorded(&counter, TODAY).await, total(requests));
            assert!(
                counter.accounts.lock().is_empty(),
                "an account without new requests is not listed"
            );
        }
    }

    #[tokio::test]
    async fn totals_of_requests_are_recorded_in_batches_and_none_is_recorded_twice() {
        let counter = RequestCounter::default();
        for number in 0..2_500 {
            let account = account(format!("app_{number:011}").parse().unwrap());
            count(&counter, &account, TODAY, (Some(Route::Models), OK));
        }
        let calls = Mutex::new(Vec::new());
        let recording = |totals| {
            calls.lock().push(totals);
            ready(Ok(()))
        };
        counter.record(TODAY, recording).await.unwrap();
        let calls = calls.into_inner();
        let sizes: Vec<usize> = calls.iter().map(Vec::len).collect();
        assert_eq!(sizes, [1_000, 1_000, 500]);
        let recorded: BTreeSet<_> = calls
            .iter()
            .flatten()
            .map(|total| total.application)
            .collect();
        assert_eq!(recorded.len(), 2_500);
    }
}
