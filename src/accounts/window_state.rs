//! Calendar windows of an account other than its day: their balances, and the units of yesterday that are returned to
//! them. Each step takes the balance of the account's day.

use scoregate_base::clock::{Day, Now};
use scoregate_base::limits::{
    CalendarQuota, DayBalance, LimitStatus, Limits, NodeTotals, Window, WindowBalance, WindowUnits,
};
use scoregate_store::LedgerReport;

/// The windows of an account in use.
#[derive(Clone, Debug, Default)]
pub(super) struct WindowState {
    /// The balances of the current windows, once the ledger has reported them.
    known: Option<Vec<WindowBalance>>,
    /// Yesterday.
    ended: Option<EndedDay>,
}

/// The balance of a day that has ended, without its unspent units.
#[derive(Clone, Copy, Debug)]
struct EndedDay {
    day: DayBalance,
    /// Whether the return of the unspent units was reported to the ledger.
    is_reported: bool,
}

impl WindowState {
    /// Whether the state can be dropped without loss.
    pub(super) const fn is_unused(&self) -> bool {
        self.known.is_none() && self.ended.is_none()
    }

    /// Whether the ledger has reported the windows in force.
    pub(super) const fn is_known(&self) -> bool {
        self.known.is_some()
    }

    /// Status of the current windows whose balance is known.
    pub(super) fn statuses(&self, day: DayBalance, limits: &Limits, now: Now) -> Vec<LimitStatus> {
        let today = day.on(now.wall.day());
        let status = |limit: CalendarQuota| {
            let balance = self.balance(limit.window, day, today.day())?;
            Some(limit.status(balance, today, now))
        };
        let windows = limits.calendar.around(today.day());
        windows.filter_map(status).collect()
    }

    /// Units granted in a window to all gateways, if known. `today` is the balance of the current day.
    pub(super) fn granted(
        &self,
        window: Window,
        day: DayBalance,
        today: DayBalance,
    ) -> Option<u64> {
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

    /// Units that the ledger may still grant in all windows, as far as is known.
    pub(super) fn unleased(&self, day: DayBalance, limits: &Limits) -> u32 {
        let unleased = |limit: CalendarQuota| {
            let balance = self.balance(limit.window, day, day.day())?;
            Some(balance.unleased(limit.quota, day))
        };
        let windows = limits.calendar.around(day.day());
        windows.filter_map(unleased).min().unwrap_or(u32::MAX)
    }

    /// Applies the reply to a report that named windows. `node` contains the totals of this process in the reply for
    /// the report's day.
    pub(super) fn apply(
        &mut self,
        report: &LedgerReport,
        day: DayBalance,
        node: NodeTotals,
        windows: &[WindowUnits],
    ) {
        let contain_today = |limit: &CalendarQuota| limit.window.contains(day.day());
        // A report that returns units of yesterday may name windows that have ended in the meantime.
        if report.windows.is_empty() || !report.windows.iter().all(contain_today) {
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

    /// Starts a new day. Unspent units of `ended` are returned, so that longer windows keep them.
    pub(super) fn end_day(&mut self, ended: DayBalance, today: Day, limits: &Limits) {
        if self.is_known() {
            let windows = limits.calendar.around(today);
            let known = windows.filter_map(|limit| self.balance(limit.window, ended, today));
            self.known = Some(known.collect());
        }
        let day = ended.without_idle();
        let is_yesterday = ended.is_leased() && ended.day().next() == today;
        self.ended = is_yesterday.then_some(EndedDay {
            day,
            is_reported: day == ended,
        });
    }

    /// Yesterday without the units that are to be returned, if there are any.
    pub(super) fn ended(&self) -> Option<DayBalance> {
        let ended = self.ended.filter(|ended| !ended.is_reported)?;
        Some(ended.day)
    }

    /// Records that the ledger applied a report about a day that has ended. Units granted in its reply must also be
    /// returned.
    pub(super) fn apply_ended(&mut self, report: &LedgerReport, node: NodeTotals, granted: u64) {
        let of_report = |ended: &&mut EndedDay| ended.day.day() == report.day;
        if let Some(ended) = self.ended.as_mut().filter(of_report) {
            let day = ended.day.apply(report.day, node, granted).without_idle();
            ended.is_reported = day.totals() == report.totals.known;
            ended.day = day;
        }
    }
}
