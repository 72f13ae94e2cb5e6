//! The part of an account that requests change: balances, the ledger call in flight, and counts that are not recorded
//! yet. Each step is pure and does not wait. The lock is in `account`.

use std::num::NonZeroU32;

use tokio::sync::watch;

use crate::accounts::{
    admission_step::{AdmissionEnd, AdmissionStep, Shortage, UnitSupply},
    balance_ahead::BalanceAhead,
    unrecorded_requests::{CountedRequest, UnrecordedRequests},
    window_state::WindowState,
};
use scoregate_base::{
    clock::{Day, Mono, Now, Wall},
    evidence::Origin,
    limits::{
        AccountBalance, AdmissionVerdict, DayBalance, LeaseAvailability, LimitRule, LimitStatus,
        Limits, MinuteLease, MinuteReport, NodeTotals, Period, ReturnedUnits, Scope, WindowUnits,
    },
};
use scoregate_store::LedgerReport;

/// The part of an account that is changed by requests.
#[derive(Clone, Debug)]
pub struct AccountState {
    /// The display name of the application.
    name: Box<str>,
    balance: AccountBalance,
    /// Boxed, because few of up to a million applications have a lease state.
    lease: Option<Box<LeaseState>>,
    /// Whether the account is in the list of accounts that reserved units of grace.
    pub is_uncharged: bool,
    /// Whether the account is in the list of accounts that leased units recently.
    is_listed: bool,
}

/// The charge for a response that is ready.
#[derive(Debug)]
pub enum Charge {
    /// The response is delivered.
    Paid {
        /// The day to which a unit was charged.
        day: Option<Day>,
        /// Whether to lease more units now.
        runs_low: bool,
        /// Status of the minute limit and the daily limit.
        statuses: [LimitStatus; 2],
    },
    /// The request exceeds a limit.
    Refused(LimitRule),
    /// Units or tokens must be leased first. Nothing is taken.
    Waits,
}

/// The state that only an application in use has.
#[derive(Clone, Debug, Default)]
struct LeaseState {
    /// The ledger call in flight.
    call: Option<LeaseCall>,
    /// Tokens of the minute limit, if gateways share it.
    minute: Option<MinuteLease>,
    /// The time of the next attempt to lease units that other gateways returned.
    returned_units: ReturnedUnits,
    /// Requests since the last recording.
    requests: UnrecordedRequests,
    /// The balance of a day that has not begun here.
    ahead: Option<BalanceAhead>,
    /// Calendar windows other than the day.
    windows: WindowState,
}

/// A ledger call in flight. Its value is `None` until the call ends, then `true` for success or `false` for failure.
#[derive(Clone, Debug)]
pub struct LeaseCall(pub watch::Receiver<Option<bool>>);

impl LeaseCall {
    /// Whether the call is still running. A call whose task no longer exists has ended.
    pub fn is_under_way(&self) -> bool {
        self.0.has_changed().is_ok()
    }
}

/// The day to which a response is charged; `None` for a 304, which costs no unit.
pub fn charged_day(day: Day, is_unchanged: bool) -> Option<Day> {
    (!is_unchanged).then_some(day)
}

impl AccountState {
    /// A state without a ledger call in flight.
    pub fn new(name: &str, balance: AccountBalance) -> Self {
        Self {
            name: name.into(),
            balance,
            lease: None,
            is_uncharged: false,
            is_listed: false,
        }
    }

    /// The display name of the application.
    pub fn name(&self) -> Box<str> {
        self.name.clone()
    }

    /// Changes the display name.
    pub fn set_name(&mut self, name: &str) {
        if *self.name != *name {
            self.name = name.into();
        }
    }

    /// The balances of the application.
    pub const fn balance(&self) -> AccountBalance {
        self.balance
    }

    /// Decides on a request. If several gateways share minute limits, the request takes a token that this gateway leased.
    pub fn admit(
        &mut self,
        limits: &Limits,
        gateways: Option<NonZeroU32>,
        now: Now,
        conditional: bool,
        ledger: LeaseAvailability,
    ) -> AdmissionVerdict {
        let asks = ReturnedUnits::may_ask;
        self.decide(limits, gateways, now, conditional, ledger, asks)
    }

    /// The verdict on a request. If no unit is left, but other gateways may have returned some, `asks` decides whether
    /// to lease first.
    fn decide(
        &mut self,
        limits: &Limits,
        gateways: Option<NonZeroU32>,
        now: Now,
        conditional: bool,
        ledger: LeaseAvailability,
        asks: fn(&mut ReturnedUnits, Mono) -> bool,
    ) -> AdmissionVerdict {
        self.open_day(now.wall.day(), limits);
        let spent = self.spent_window(limits, now);
        let without_units;
        let in_force = if spent.is_some() {
            // A unit is taken from all windows or from none, so if one window is exhausted, the day counts as exhausted too.
            without_units = Limits { day: 0, ..*limits };
            &without_units
        } else {
            limits
        };
        let balance = self.balance;
        let (balance, verdict) = match gateways {
            None => balance.admit(in_force, now, conditional, ledger),
            Some(gateways) => {
                let lease = self.minute_lease();
                balance.admit_leased(lease, gateways, in_force, now, conditional, ledger)
            }
        };
        self.balance = balance;
        // Other gateways, and other applications of the owner, may have returned units since the last lease, so a
        // refusal because of the quota is not final.
        let is_shared = spent.is_some_and(|window| window.row().scope == Scope::Owner);
        let may_gain = verdict == AdmissionVerdict::Refused(LimitRule::Day)
            && (gateways.is_some() || is_shared)
            && balance.day.may_gain(limits.day)
            && ledger == LeaseAvailability::Reachable;
        if may_gain && asks(self.returned_units(), now.mono) {
            return AdmissionVerdict::LeaseFirst;
        }
        match (verdict, spent) {
            (AdmissionVerdict::Refused(LimitRule::Day), Some(window)) => {
                AdmissionVerdict::Refused(window)
            }
            (AdmissionVerdict::RevalidateOnly(_), Some(window)) => {
                AdmissionVerdict::RevalidateOnly(window)
            }
            (verdict, _) => verdict,
        }
    }

    /// The exhausted window that resets last, if any. Leased units count as available in all windows.
    fn spent_window(&self, limits: &Limits, now: Now) -> Option<LimitRule> {
        if limits.calendar.is_empty() {
            return None;
        }
        self.window_statuses(limits, now)
            .into_iter()
            .filter(|status| status.remaining == 0)
            .max_by_key(|status| status.reset)
            .map(|status| status.rule)
    }

    /// Status of the current windows whose balance is known.
    pub fn window_statuses(&self, limits: &Limits, now: Now) -> Vec<LimitStatus> {
        let windows = self.windows();
        windows.map_or_else(Vec::new, |windows| {
            windows.statuses(self.day(), limits, now)
        })
    }

    /// Whether the ledger has reported the windows in force.
    pub fn knows_windows(&self) -> bool {
        self.windows().is_some_and(WindowState::is_known)
    }

    /// Units that the ledger may still grant in every window whose balance is known.
    pub fn unleased_in_windows(&self, limits: &Limits) -> u32 {
        let windows = self.windows();
        windows.map_or(u32::MAX, |windows| windows.unleased(self.day(), limits))
    }

    /// Applies the reply to a report. `node` contains this process's totals for the report's day, as stated in the reply.
    pub fn apply_to_windows(
        &mut self,
        report: &LedgerReport,
        node: NodeTotals,
        granted: u64,
        windows: &[WindowUnits],
    ) {
        let day = self.day();
        if let Some(lease) = &mut self.lease {
            lease.windows.apply(report, day, node, windows);
        }
        self.confirm(report.day, node, granted);
    }

    pub(super) fn windows(&self) -> Option<&WindowState> {
        self.lease.as_ref().map(|lease| &lease.windows)
    }

    pub(super) fn windows_mut(&mut self) -> &mut WindowState {
        &mut self.lease.get_or_insert_default().windows
    }

    /// Decides on and settles a request whose response is ready. A 304 or a refusal costs no unit.
    pub fn charge(
        &mut self,
        limits: &Limits,
        gateways: Option<NonZeroU32>,
        now: Now,
        is_unchanged: bool,
        is_unreachable: bool,
    ) -> Charge {
        // A charge never waits. Only `admit` waits for the ledger.
        let ledger = LeaseAvailability::Reachable;
        // If it is time to lease units that other gateways may have returned, the request waits. The attempt is recorded only when it is made.
        let asks = |units: &mut ReturnedUnits, now| units.is_due(now);
        let verdict = self.decide(limits, gateways, now, is_unchanged, ledger, asks);
        let (day, runs_low) = match AdmissionStep::of(verdict, ledger, is_unreachable) {
            AdmissionStep::End(AdmissionEnd::Hold { day, supply }) => {
                let charged = charged_day(day, is_unchanged);
                self.settle(day, charged.is_some());
                // A returned unit does not need to be replaced.
                let runs_low = supply == UnitSupply::Low
                    && (charged.is_some() || self.runs_low(limits, now.mono));
                (charged, runs_low)
            }
            AdmissionStep::End(AdmissionEnd::Revalidate(_)) => (None, false),
            AdmissionStep::End(AdmissionEnd::Refuse(Shortage::Limit(rule))) => {
                return Charge::Refused(rule);
            }
            AdmissionStep::End(AdmissionEnd::Refuse(Shortage::Units | Shortage::Token { .. }))
            | AdmissionStep::Lease
            | AdmissionStep::Reserve
            | AdmissionStep::WithoutLedger => return Charge::Waits,
        };
        Charge::Paid {
            day,
            runs_low,
            statuses: [LimitRule::Minute, LimitRule::Day]
                .map(|rule| self.limit_status(rule, limits, now)),
        }
    }

    pub const fn day(&self) -> DayBalance {
        self.balance.day
    }

    /// The balance of the current day. If `today` is a new day, this is a new balance with the units that were leased in advance.
    /// A node's totals cover the whole day, so these units must not be counted separately.
    pub fn open_day(&mut self, today: Day, limits: &Limits) -> DayBalance {
        if self.day().day() < today {
            if !limits.calendar.is_empty() {
                let ended = self.day();
                let lease = self.lease.get_or_insert_default();
                lease.windows.end_day(ended, today, limits);
            }
            let ahead = self.take_ahead().filter(|ahead| ahead.day() == today);
            if let Some(lease) = &mut self.lease {
                let confirmed = ahead.map(BalanceAhead::confirmed);
                lease.windows.begin_day(confirmed.unwrap_or_default());
            }
            let day = match ahead {
                Some(ahead) => ahead.begin(limits),
                None => self.day().on(today),
            };
            self.set_day(day);
            self.drop_unused_lease();
        }
        self.day()
    }

    /// The balance of a day that has not begun here.
    pub(super) fn ahead(&self) -> Option<BalanceAhead> {
        self.lease.as_ref().and_then(|lease| lease.ahead)
    }

    /// Stores the balance of a day that has not begun here.
    pub(super) fn set_ahead(&mut self, ahead: BalanceAhead) {
        self.lease.get_or_insert_default().ahead = Some(ahead);
    }

    /// Takes the balance of a day that has not begun here.
    pub(super) fn take_ahead(&mut self) -> Option<BalanceAhead> {
        self.lease.as_mut().and_then(|lease| lease.ahead.take())
    }

    pub const fn set_day(&mut self, day: DayBalance) {
        self.balance.day = day;
    }

    /// Settles a unit that was held on a day.
    pub fn settle(&mut self, day: Day, kept: bool) {
        self.balance.day = self.balance.day.settle(day, kept);
        if day < self.day().day()
            && let Some(lease) = &mut self.lease
        {
            lease.windows.settle(day, kept);
        }
    }

    /// Whether the account owes units of this day to the ledger.
    pub fn owes_on(&self, today: Day) -> bool {
        self.day().on(today).owed() > 0
    }

    /// Records `total` units of a day as reserved.
    pub fn reserve(&mut self, day: Day, total: u32) {
        self.balance.day = self.balance.day.reserve(day, total);
    }

    /// Drops the reserved units.
    pub fn drop_reserve(&mut self) {
        self.balance.day = self.balance.day.without_reserve();
    }

    /// Returns the minute token of a request that cost nothing.
    pub fn give_back_token(&mut self) {
        self.balance = self.balance.give_back_token();
        if let Some(minute) = self.lease.as_mut().and_then(|lease| lease.minute.as_mut()) {
            minute.gave_back();
        }
    }

    /// Takes a token from the guard. Returns `false` if there is none.
    pub fn take_guard(&mut self, limits: &Limits, now: Now) -> bool {
        let taken = self.balance.take_guard(limits, now);
        self.balance = taken.unwrap_or(self.balance);
        taken.is_some()
    }

    /// Counts a request. Returns whether it is the first request since the last recording.
    pub fn count_request(&mut self, request: CountedRequest) -> bool {
        let requests = &mut self.lease.get_or_insert_default().requests;
        let is_first = requests.is_empty();
        requests.count(request);
        is_first
    }

    /// Records the origin of a request.
    pub fn came_from(&mut self, origin: Origin, at: Wall) {
        self.lease
            .get_or_insert_default()
            .requests
            .came_from(origin, at);
    }

    /// Removes and returns the requests counted since the last recording.
    pub fn take_requests(&mut self) -> UnrecordedRequests {
        let counted = self
            .lease
            .as_mut()
            .map(|lease| std::mem::take(&mut lease.requests));
        self.drop_unused_lease();
        counted.unwrap_or_default()
    }

    /// Marks the account as listed. Returns `true` if it was not listed.
    pub fn mark_listed(&mut self) -> bool {
        !std::mem::replace(&mut self.is_listed, true)
    }

    /// Whether the account remains listed because it was used today or yesterday.
    pub fn remains_listed(&mut self, today: Day) -> bool {
        if let Some(lease) = &mut self.lease {
            lease.ahead.take_if(|ahead| ahead.day() < today);
        }
        self.drop_unused_lease();
        self.is_listed = self.day().day().next() >= today;
        self.is_listed
    }

    fn returned_units(&mut self) -> &mut ReturnedUnits {
        &mut self.lease.get_or_insert_default().returned_units
    }

    fn runs_low(&self, limits: &Limits, now: Mono) -> bool {
        self.day().runs_low(limits.day)
            || self
                .known_minute_lease()
                .is_some_and(|lease| lease.runs_low(now))
    }

    /// Status of one rule.
    pub fn limit_status(&self, rule: LimitRule, limits: &Limits, now: Now) -> LimitStatus {
        match rule.row().period {
            Period::Minute => match self.known_minute_lease() {
                Some(lease) => self.balance.leased_minute_status(lease, limits, now),
                None => self.balance.minute_status(limits, now),
            },
            Period::Guard => self.balance.guard_status(limits, now),
            Period::Calendar(_) if rule == LimitRule::Day => self.balance.day_status(limits, now),
            Period::Calendar(_) => {
                let windows = self.window_statuses(limits, now);
                let found = windows.into_iter().find(|status| status.rule == rule);
                // A rule that refuses requests has a known status.
                found.unwrap_or_else(|| self.balance.day_status(limits, now))
            }
        }
    }

    /// The ledger call in flight.
    pub fn call(&self) -> Option<&LeaseCall> {
        self.lease
            .as_ref()
            .and_then(|lease| lease.call.as_ref())
            .filter(|call| call.is_under_way())
    }

    /// Records that a ledger call begins.
    pub fn begin_call(&mut self, call: LeaseCall) {
        self.lease.get_or_insert_default().call = Some(call);
    }

    /// Records that the ledger call has ended.
    pub fn end_call(&mut self) {
        if let Some(lease) = &mut self.lease {
            lease.call = None;
        }
        self.drop_unused_lease();
    }

    fn drop_unused_lease(&mut self) {
        // There may be a million accounts, so an account that is not in use has no lease state.
        self.lease.take_if(|lease| {
            lease.call.is_none()
                && lease.minute.is_none()
                && lease.requests.is_unused()
                && lease.ahead.is_none()
                && lease.windows.is_unused()
        });
    }

    /// The minute tokens that this gateway leased, if any.
    pub fn known_minute_lease(&self) -> Option<&MinuteLease> {
        self.lease.as_ref().and_then(|lease| lease.minute.as_ref())
    }

    /// The minute tokens that this gateway leased.
    pub fn minute_lease(&mut self) -> &mut MinuteLease {
        self.lease
            .get_or_insert_default()
            .minute
            .get_or_insert_default()
    }

    /// The report that returns the minute tokens. `None` if there are none.
    pub fn release_minute(&mut self, limit: u32, now: Mono) -> Option<MinuteReport> {
        let lease = self.lease.as_mut()?;
        lease.minute.as_mut()?.release(limit, now)
    }
}
