//! Calendar windows of an account other than its day: their balances, and the settlement of yesterday, which returns units to
//! them. Each step takes the balance of the account's day.

use scoregate_base::{
    clock::{Day, Now},
    limits::{
        ConfirmedTotals, DayBalance, EndedDay, LimitStatus, Limits, NodeTotals, Window,
        WindowBalance, WindowUnits,
    },
};
use scoregate_store::LedgerReport;

/// The windows of an account in use.
#[derive(Clone, Debug, Default)]
pub struct WindowState {
    /// The balances of the current windows, once the ledger has reported them.
    known: Option<Vec<WindowBalance>>,
    /// The totals of the current day.
    confirmed: ConfirmedTotals,
    /// Yesterday.
    ended: Option<EndedDay>,
}

impl WindowState {
    /// Whether the state can be dropped without loss.
    pub fn is_unused(&self) -> bool {
        let is_settled = self.ended.and_then(EndedDay::report).is_none();
        self.known.is_none() && !self.confirmed.is_uncertain() && is_settled
    }

    /// Whether the ledger has reported the windows in force.
    pub const fn is_known(&self) -> bool {
        self.known.is_some()
    }

    /// Status of the current windows whose balance is known.
    pub fn statuses(&self, day: DayBalance, limits: &Limits, now: Now) -> Vec<LimitStatus> {
        let today = day.on(now.wall.day());
        let windows = limits.calendar.around(today.day());
        windows
            .filter_map(|limit| {
                let balance = self.balance(limit.window, day, today.day())?;
                Some(limit.status(balance, today, now))
            })
            .collect()
    }

    /// Units granted in a window to all gateways, if known. `today` is the balance of the current day.
    pub fn granted(&self, window: Window, day: DayBalance, today: DayBalance) -> Option<u64> {
        let balance = self.balance(window, day, today.day())?;
        Some(balance.granted(today))
    }

    /// The balance of a window that contains `today`, if it is known.
    fn balance(&self, window: Window, day: DayBalance, today: Day) -> Option<WindowBalance> {
        let is_later = day.day() < today;
        self.known.as_ref()?.iter().find_map(|known| {
            let before = known.window();
            if before == window {
                return Some(if is_later { known.after(day) } else { *known });
            }
            // If the window before this one is known, this window has begun in the meantime.
            let follows = before.rule == window.rule && before.end == window.start;
            (follows && is_later).then(|| WindowBalance::begun(window))
        })
    }

    /// Units that the ledger may still grant without exceeding any window, as far as is known.
    pub fn unleased(&self, day: DayBalance, limits: &Limits) -> u32 {
        let windows = limits.calendar.around(day.day());
        windows
            .filter_map(|limit| {
                let balance = self.balance(limit.window, day, day.day())?;
                Some(balance.unleased(limit.quota, day))
            })
            .min()
            .unwrap_or(u32::MAX)
    }

    /// Applies the reply to a report that named windows. `node` contains this process's totals for the report's day, as stated in
    /// the reply.
    pub fn apply(
        &mut self,
        report: &LedgerReport,
        day: DayBalance,
        node: NodeTotals,
        windows: &[WindowUnits],
    ) {
        // A report that returns yesterday's units may name windows that have ended in the meantime.
        if report.windows.is_empty()
            || !report
                .windows
                .iter()
                .all(|limit| limit.window.contains(day.day()))
        {
            return;
        }
        let own = if report.day == day.day() {
            node
        } else {
            day.totals()
        };
        let known = windows.iter().map(|units| WindowBalance::new(*units, own));
        self.known = Some(known.collect());
    }

    /// The totals of the current day that the ledger has confirmed.
    pub const fn confirmed(&self) -> ConfirmedTotals {
        self.confirmed
    }

    /// Begins another day, for which the ledger has confirmed these totals.
    pub const fn begin_day(&mut self, confirmed: ConfirmedTotals) {
        self.confirmed = confirmed;
    }

    /// Ends a day. It is settled, so that longer windows keep its unspent units.
    pub fn end_day(&mut self, ended: DayBalance, today: Day, limits: &Limits) {
        if self.is_known() {
            let windows = limits.calendar.around(today);
            let known = windows.filter_map(|limit| self.balance(limit.window, ended, today));
            self.known = Some(known.collect());
        }
        let is_yesterday = ended.day().next() == today;
        self.ended = is_yesterday.then(|| EndedDay::new(ended, self.confirmed));
    }

    /// The day that ended last, if it was the day before the current one.
    pub const fn ended(&self) -> Option<EndedDay> {
        self.ended
    }

    /// Records this process's totals for a day, as stated in the reply to a report. `current` is the account's day.
    pub fn confirm(&mut self, current: Day, day: Day, node: NodeTotals, granted: u64) {
        if day == current {
            self.confirmed = ConfirmedTotals::new(node);
        }
        self.change_ended(day, |ended| ended.apply(node, granted));
    }

    /// Records that the reply to a report for a day was lost.
    pub fn without_reply(&mut self, current: Day, day: Day) {
        if day == current {
            self.confirmed = self.confirmed.without_reply();
        }
        self.change_ended(day, EndedDay::without_reply);
    }

    /// Settles a unit that was held on a day.
    pub fn settle(&mut self, day: Day, kept: bool) {
        self.change_ended(day, |ended| ended.settle(kept));
    }

    fn change_ended(&mut self, day: Day, change: impl FnOnce(EndedDay) -> EndedDay) {
        if let Some(ended) = self.ended.as_mut().filter(|ended| ended.day() == day) {
            *ended = change(*ended);
        }
    }
}
