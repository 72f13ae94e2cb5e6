//! Units delivered by this process, by application and day, until they are recorded as usage in the store.
//!
//! Requests do no work for it: the balance of an account has the total of its day. When the day changes, the account keeps
//! the total of the day that ended until the next recording.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use scoregate_base::clock::Day;
use scoregate_base::keys::ApplicationId;
use scoregate_store::{StoreResult, USAGE_DAYS_OPEN, UsageStore, UsageTotal};

use crate::accounts::Account;

/// Number of totals per store call.
const AT_ONCE: usize = 1_000;

/// Accounts that leased units lately, and what is recorded of them.
#[derive(Default)]
pub(crate) struct DeliveredUnits {
    /// Each account once.
    accounts: Mutex<Vec<Arc<Account>>>,
    days: tokio::sync::Mutex<RecordedDays>,
}

#[derive(Default)]
struct RecordedDays {
    days: HashMap<(Day, ApplicationId), RecordedDay>,
    /// The day on which outdated entries were removed last.
    cleaned_on: Day,
}

/// An application's day.
#[derive(Clone, Copy, Default)]
struct RecordedDay {
    /// Units of balances whose day ended.
    ended: u64,
    /// The total that the store has.
    recorded: u64,
}

impl DeliveredUnits {
    /// Lists an account. The caller has marked it as listed.
    pub(crate) fn list(&self, account: &Arc<Account>) {
        self.accounts.lock().push(Arc::clone(account));
    }

    /// Units of `today` leased and not delivered.
    pub(crate) fn held(&self, today: Day) -> u64 {
        let unspent = |account: Arc<Account>| u64::from(account.state().day().on(today).unspent());
        self.listed().into_iter().map(unspent).sum()
    }

    /// Records totals that grew since the last call. What could not be recorded is recorded by the next call.
    pub(crate) async fn record(
        &self,
        store: &dyn UsageStore,
        node: u64,
        today: Day,
    ) -> StoreResult<()> {
        let mut recorded = self.days.lock().await;
        let totals = recorded.grown(&self.listed(), today);
        for totals in totals.chunks(AT_ONCE) {
            store.record_usage(node, totals.to_vec()).await?;
            for total in totals {
                recorded
                    .days
                    .entry((total.day, total.application))
                    .or_default()
                    .recorded = total.units;
            }
        }
        if recorded.cleaned_on < today {
            recorded.cleaned_on = today;
            recorded.days.retain(|(day, _), _| is_open(*day, today));
            // One that was used yesterday may have a unit of yesterday in flight, or units leased before midnight.
            self.accounts
                .lock()
                .retain(|account| account.state().remains_listed(today));
        }
        drop(recorded);
        Ok(())
    }

    fn listed(&self) -> Vec<Arc<Account>> {
        self.accounts.lock().clone()
    }
}

impl RecordedDays {
    /// The totals that the store does not have yet, ordered by day and application.
    fn grown(&mut self, accounts: &[Arc<Account>], today: Day) -> Vec<UsageTotal> {
        let mut current: HashMap<(Day, ApplicationId), u64> = HashMap::new();
        for account in accounts {
            let mut state = account.state();
            for (day, units) in state
                .take_ended()
                .into_iter()
                .filter(|(day, _)| is_open(*day, today))
            {
                self.days.entry((day, account.id)).or_default().ended += u64::from(units);
            }
            let day = state.day();
            drop(state);
            if day.is_used() && is_open(day.day(), today) {
                *current.entry((day.day(), account.id)).or_default() += u64::from(day.spent());
            }
        }
        for key in current.keys() {
            self.days.entry(*key).or_default();
        }
        let total = |(key, known): (&(Day, ApplicationId), &RecordedDay)| {
            let units = known.ended + current.get(key).copied().unwrap_or(0);
            let (day, application) = *key;
            (units > known.recorded).then_some(UsageTotal {
                day,
                application,
                units,
            })
        };
        let mut totals: Vec<UsageTotal> = self.days.iter().filter_map(total).collect();
        totals.sort_unstable_by_key(|total| (total.day, total.application));
        totals
    }
}

/// Whether the store takes reports of a day.
pub(crate) fn is_open(day: Day, today: Day) -> bool {
    day.number().saturating_add(USAGE_DAYS_OPEN) > today.number()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use tokio_util::task::TaskTracker;

    use crate::accounts::{TermsByTier, stored};
    use crate::instruments::Instruments;
    use crate::quota::delivered_units::*;
    use crate::quota::leases::Leases;
    use crate::quota::ledger_calls::LedgerCalls;
    use scoregate_base::clock::{Clock, ManualClock, Wall};
    use scoregate_base::limits::{AdmissionVerdict, LeaseAvailability, NodeTotals};
    use scoregate_base::plans::standard_tiers;
    use scoregate_base::routes::EndpointTable;
    use scoregate_observe::telemetry::metrics::MetricsRegistry;
    use scoregate_store::{
        Ledger, LedgerExchange, LedgerExchangeReply, LedgerReport, ReportOutcome, StoreError,
        StoreFuture, UsageList, UsageQuery,
    };

    /// Grants what is requested, and remembers recorded usage.
    #[derive(Default)]
    struct GenerousStore {
        is_away: AtomicBool,
        calls: Mutex<Vec<Vec<UsageTotal>>>,
    }

    impl Ledger for GenerousStore {
        fn day(&self) -> StoreFuture<'_, Option<Day>> {
            Box::pin(async { Ok(None) })
        }

        fn exchange(&self, exchange: LedgerExchange) -> StoreFuture<'_, LedgerExchangeReply> {
            let outcome = |report: &LedgerReport| ReportOutcome::Applied {
                node: NodeTotals {
                    granted: report.totals.granted,
                    ..report.totals.known
                },
                granted: u64::from(report.totals.granted),
                has_outdated_terms: false,
            };
            let outcomes = exchange.reports.iter().map(outcome).collect();
            let reply = LedgerExchangeReply {
                today: exchange.today,
                outcomes,
                minutes: Vec::new(),
            };
            Box::pin(async { Ok(reply) })
        }

        fn recalled(&self, _: u64) -> StoreFuture<'_, Vec<ApplicationId>> {
            Box::pin(async { Ok(Vec::new()) })
        }
    }

    impl UsageStore for GenerousStore {
        fn record_usage(&self, _: u64, totals: Vec<UsageTotal>) -> StoreFuture<'_, ()> {
            let is_away = self.is_away.load(Ordering::Relaxed);
            self.calls.lock().push(totals);
            let away = || StoreError::Unavailable {
                doing: "record usage",
                reason: "it is away".into(),
            };
            Box::pin(async move { if is_away { Err(away()) } else { Ok(()) } })
        }

        fn usage(&self, _: UsageQuery) -> StoreFuture<'_, UsageList> {
            Box::pin(async { Ok(UsageList::default()) })
        }
    }

    struct CountingGateway {
        store: Arc<GenerousStore>,
        leases: Arc<Leases>,
        account: Arc<Account>,
        clock: Clock,
        manual: ManualClock,
    }

    impl CountingGateway {
        fn new() -> Self {
            let (clock, manual) =
                Clock::manual(Wall::parse_rfc3339("2026-11-21T23:59:00Z").unwrap());
            let stored = stored("pro", &[]);
            let terms = TermsByTier::new(&standard_tiers(), 60)
                .of("pro", stored.own)
                .unwrap();
            let account = Arc::new(Account::new(&stored, terms, clock.now().wall.day()));
            let store = Arc::new(GenerousStore::default());
            let ledger: Arc<dyn Ledger> = Arc::clone(&store) as Arc<dyn Ledger>;
            let instruments = Arc::new(Instruments::new(
                &MetricsRegistry::default(),
                &[],
                &EndpointTable::default(),
            ));
            let tasks = TaskTracker::new();
            let spawn = Box::new(move |work| drop(tasks.spawn(work)));
            let calls = LedgerCalls::new(ledger, 7, spawn, clock.clone(), instruments);
            let leases = Arc::new(Leases::of(calls));
            Self {
                store,
                leases,
                account,
                clock,
                manual,
            }
        }

        /// Admits a request, and returns the day of its unit.
        async fn hold(&self) -> Day {
            let limits = self.account.terms().limits;
            loop {
                let now = self.clock.now();
                let ledger = LeaseAvailability::Reachable;
                let verdict = self
                    .account
                    .state()
                    .admit(&limits, None, now, false, ledger);
                match verdict {
                    AdmissionVerdict::Admitted { day, .. } => return day,
                    AdmissionVerdict::LeaseFirst => {
                        self.leases.lease(&self.account).await.unwrap();
                    }
                    other @ (AdmissionVerdict::RevalidateOnly
                    | AdmissionVerdict::RevalidateWithoutUnits
                    | AdmissionVerdict::Refused(_)
                    | AdmissionVerdict::OnGrace { .. }
                    | AdmissionVerdict::ReserveFirst
                    | AdmissionVerdict::NoToken { .. }
                    | AdmissionVerdict::NoUnits) => panic!("{other:?}"),
                }
            }
        }

        async fn deliver(&self, units: u32) {
            for _ in 0..units {
                let day = self.hold().await;
                self.account.state().settle(day, true);
            }
        }

        /// Records, and returns the recorded units by day of the month.
        async fn record(&self) -> BTreeMap<u32, u64> {
            self.store.calls.lock().clear();
            let calls = &self.leases.calls;
            let today = self.clock.now().wall.day();
            let recorded = calls
                .delivered
                .record(&*self.store, calls.node, today)
                .await;
            assert_eq!(
                recorded.is_ok(),
                !self.store.is_away.load(Ordering::Relaxed)
            );
            let first = Wall::parse_rfc3339("2026-11-01T00:00:00Z")
                .unwrap()
                .day()
                .number();
            let calls = self.store.calls.lock();
            calls
                .iter()
                .flatten()
                .map(|total| (total.day.number() - first + 1, total.units))
                .collect()
        }

        fn next_day(&self) {
            let now = self.clock.now().wall;
            self.manual
                .advance(now.day().end().since(now) + Duration::from_mins(1));
        }
    }

    #[tokio::test]
    async fn totals_are_recorded_when_they_grew() {
        let gateway = CountingGateway::new();
        assert_eq!(gateway.record().await, BTreeMap::new());
        gateway.deliver(3).await;
        let refused = gateway.hold().await;
        gateway.account.state().settle(refused, false);
        assert_eq!(gateway.record().await, BTreeMap::from([(21, 3)]));
        assert_eq!(gateway.record().await, BTreeMap::new());
        gateway.deliver(2).await;
        assert_eq!(gateway.record().await, BTreeMap::from([(21, 5)]));
    }

    #[tokio::test]
    async fn units_of_the_last_minute_of_a_day_are_recorded_after_midnight() {
        let gateway = CountingGateway::new();
        gateway.deliver(3).await;
        assert_eq!(gateway.record().await, BTreeMap::from([(21, 3)]));
        gateway.deliver(2).await;
        let delivered = gateway.hold().await;
        let refused = gateway.hold().await;
        gateway.next_day();
        gateway.deliver(1).await;
        assert_eq!(gateway.record().await, BTreeMap::from([(21, 5), (22, 1)]));
        gateway.account.state().settle(delivered, true);
        gateway.account.state().settle(refused, false);
        assert_eq!(
            gateway.record().await,
            BTreeMap::from([(21, 6)]),
            "a unit in flight at midnight"
        );
        assert_eq!(gateway.record().await, BTreeMap::new());
    }

    #[tokio::test]
    async fn units_that_were_not_recorded_are_part_of_the_next_total() {
        let gateway = CountingGateway::new();
        gateway.deliver(3).await;
        gateway.store.is_away.store(true, Ordering::Relaxed);
        assert_eq!(gateway.record().await, BTreeMap::from([(21, 3)]));
        gateway.next_day();
        gateway.deliver(4).await;
        assert_eq!(gateway.record().await, BTreeMap::from([(21, 3), (22, 4)]));
        gateway.store.is_away.store(false, Ordering::Relaxed);
        gateway.deliver(1).await;
        assert_eq!(gateway.record().await, BTreeMap::from([(21, 3), (22, 5)]));
    }

    #[tokio::test]
    async fn an_account_is_listed_until_the_day_after_its_last_use_and_again_with_the_next_one() {
        let gateway = CountingGateway::new();
        let listed = || gateway.leases.calls.delivered.listed().len();
        gateway.deliver(3).await;
        for expected in [1, 1, 0, 0] {
            gateway.record().await;
            assert_eq!(listed(), expected);
            gateway.next_day();
        }
        gateway.deliver(2).await;
        assert_eq!(gateway.record().await, BTreeMap::from([(25, 2)]));
        assert_eq!(listed(), 1);
    }
}
