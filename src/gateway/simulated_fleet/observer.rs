//! The observer: counts what all gateways deliver, and compares it with the limits, the headers and the ledger. It computes
//! windows from its own table.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use scoregate_base::{
    clock::{Day, Wall},
    limits::{LimitRule, LimitStatus},
};

use super::applications::{APPLICATIONS, SimulatedApplication};

/// Maximum error of a gateway's clock, and the time until it follows a step.
const CLOCK_ERROR: Duration = Duration::from_secs(190);
/// Time after an outage after which the parts of a minute limit that gateways used without the ledger do not matter.
const AFTER_OUTAGE: Duration = Duration::from_secs(200);
const TOKEN: i64 = 1_000_000;

/// Counts of a run.
pub type FleetFigures = BTreeMap<&'static str, u64>;

/// One bucket of the whole minute limit.
struct ReferenceBucket {
    /// Millionths of a token.
    tokens: i64,
    at: Duration,
    unchecked_until: Duration,
}

/// The units granted in a window, according to the ledger.
pub struct AuditedWindow {
    pub rule: LimitRule,
    pub start: Day,
    pub granted: u64,
}

/// The observer.
#[derive(Default)]
pub struct FleetObserver {
    pub now: Duration,
    pub is_traced: bool,
    pub figures: FleetFigures,
    /// Processes that ended, and whether they returned their units.
    pub stopped: Vec<(u64, bool)>,
    /// The first violation.
    pub violation: Option<String>,
    delivered: BTreeMap<(usize, Day), u64>,
    of_process: BTreeMap<(u64, usize, Day), u64>,
    begun: BTreeMap<(u64, usize, Day), u64>,
    /// Requests in flight.
    open: BTreeMap<(u64, usize), u64>,
    most_open: BTreeMap<(u64, usize), u64>,
    /// Days of which grace may have been delivered.
    outages: BTreeSet<Day>,
    /// Units that crashes may have cost.
    lost: BTreeMap<(usize, Day), u64>,
    granted: BTreeMap<(usize, Day), u64>,
    minutes: BTreeMap<usize, ReferenceBucket>,
    /// Processes that may use parts of minute limits.
    parts: BTreeSet<(u64, usize)>,
}

/// The days that clocks may show.
fn days_around(wall: Wall) -> BTreeSet<Day> {
    let days = [wall.minus(CLOCK_ERROR), wall.plus(CLOCK_ERROR)];
    days.map(Wall::day).into()
}

impl FleetObserver {
    /// Counts an event.
    pub fn count(&mut self, event: &'static str) {
        *self.figures.entry(event).or_default() += 1;
    }

    /// Prints an event of a run that is repeated.
    #[expect(clippy::print_stdout, reason = "shown for a seed that failed")]
    pub fn trace(&self, event: impl FnOnce() -> String) {
        if self.is_traced {
            println!("{:?} {}", self.now, event());
        }
    }

    fn found(&mut self, violation: &str) {
        let after = self.now;
        self.violation
            .get_or_insert_with(|| format!("after {after:?}: {violation}"));
    }

    /// A request begins.
    pub fn begin(&mut self, node: u64, application: usize, wall: Wall) {
        self.count("requests");
        for day in days_around(wall) {
            *self.begun.entry((node, application, day)).or_default() += 1;
        }
        let open = self.open.entry((node, application)).or_default();
        *open += 1;
        let most = self.most_open.entry((node, application)).or_default();
        *most = (*open).max(*most);
    }

    /// A request has ended.
    pub fn end(&mut self, node: u64, application: usize) {
        *self.open.get_mut(&(node, application)).unwrap() -= 1;
    }

    /// Whether requests are in flight.
    pub fn has_open(&self, node: u64) -> bool {
        let mut of_node = self.open.range((node, 0)..=(node, usize::MAX));
        of_node.any(|(_, open)| *open > 0)
    }

    /// A gateway does not reach the ledger.
    pub fn is_cut_on(&mut self, wall: Wall) {
        self.outages.extend(days_around(wall));
    }

    /// A request is decided without the ledger, perhaps with a token of the gateway's own part of the minute.
    pub fn without_ledger(&mut self, node: u64, application: usize) {
        self.parts.insert((node, application));
    }

    /// A request takes a token of the minute. The limit may be exceeded while a gateway uses its own part of the
    /// minute, and for `AFTER_OUTAGE` afterwards.
    pub fn admitted(&mut self, node: u64, application: usize, is_cut: bool) {
        let limit = i64::from(APPLICATIONS[application].minute);
        let full = limit * TOKEN;
        let bucket = self.minutes.entry(application).or_insert(ReferenceBucket {
            tokens: full,
            at: self.now,
            unchecked_until: Duration::ZERO,
        });
        let passed = self.now.checked_sub(bucket.at).unwrap();
        let gained = limit * i64::try_from(passed.as_micros()).unwrap() / 60;
        bucket.at = self.now;
        if self.parts.iter().any(|(_, of)| *of == application) {
            bucket.unchecked_until = self.now + AFTER_OUTAGE;
        }
        if !is_cut {
            self.parts.remove(&(node, application));
        }
        bucket.tokens = if self.now < bucket.unchecked_until {
            full
        } else {
            full.min(bucket.tokens + gained)
        };
        bucket.tokens -= TOKEN;
        // Each report rounds by less than a hundred millionths.
        if bucket.tokens < -TOKEN / 100 {
            let name = APPLICATIONS[application].key;
            self.found(&format!("{name} has more requests than its minute"));
        }
    }

    /// A request cost no token.
    pub fn gave_back(&mut self, application: usize) {
        self.minutes.get_mut(&application).unwrap().tokens += TOKEN;
    }

    /// A response was delivered and charged to a day.
    pub fn delivered(&mut self, node: u64, application: usize, day: Day) {
        self.count("delivered");
        *self.delivered.entry((application, day)).or_default() += 1;
        let own = (node, application, day);
        *self.of_process.entry(own).or_default() += 1;
        let limited = &APPLICATIONS[application];
        for (rule, quota) in limited.quotas() {
            let units = Self::sum(&self.delivered, limited, rule, day);
            let allowed = u64::from(quota) + self.grace_in(limited, rule, day);
            if units > allowed {
                let name = limited.key;
                let rule = rule.name();
                self.found(&format!(
                    "{name} got {units} of {allowed} in its {rule} on {day}"
                ));
            }
        }
    }

    /// The units of a window up to a day.
    fn sum(
        units: &BTreeMap<(usize, Day), u64>,
        limited: &SimulatedApplication,
        rule: LimitRule,
        day: Day,
    ) -> u64 {
        let start = limited.window_start(rule, day);
        let of = |counted| units.range((counted, start)..=(counted, day));
        limited
            .counted(rule)
            .flat_map(of)
            .map(|(_, units)| units)
            .sum()
    }

    fn grace_in(&self, limited: &SimulatedApplication, rule: LimitRule, day: Day) -> u64 {
        let days = self.outages.range(limited.window_start(rule, day)..=day);
        let graces = limited.counted(rule).map(|one| APPLICATIONS[one].grace());
        days.count() as u64 * graces.sum::<u64>()
    }

    /// The day of a charge is the present day.
    pub fn is_of_today(&mut self, day: Day, wall: Wall) {
        if !days_around(wall).contains(&day) {
            self.found(&format!(
                "a unit of {day} was charged at {}",
                wall.rfc3339()
            ));
        }
    }

    /// A caller reads the headers of a response.
    pub fn reads(&mut self, node: u64, application: usize, status: &LimitStatus) {
        if !status.rule.row().period.is_calendar() || status.remaining == 0 {
            return;
        }
        let length = Duration::from_secs(status.window_seconds.into());
        let start = status.reset.minus(length).day();
        let last = Day::from_number(status.reset.day().number() - 1);
        let days = (node, application, start)..=(node, application, last);
        let own: u64 = self.of_process.range(days).map(|(_, units)| units).sum();
        let limited = &APPLICATIONS[application];
        let is_start = limited.window_start(status.rule, last) == start;
        // Grace is charged later.
        let allowed = u64::from(status.limit) + self.grace_in(limited, status.rule, last);
        if !is_start || u64::from(status.remaining) + own > allowed {
            self.found(&format!("{}: {own} used, and {status:?}", limited.key));
        }
    }

    /// A process ended.
    pub fn ended(&mut self, node: u64) {
        self.parts.retain(|(of, _)| *of != node);
    }

    /// A process ended without returning its units. `days` are those of which it may have some.
    pub fn crashed(&mut self, node: u64, days: &[Day]) {
        self.count("crashes");
        let used = self.most_open.range((node, 0)..=(node, usize::MAX));
        // Leases grow with the requests in flight, which may end without data.
        for ((_, application), open) in used {
            let limited = &APPLICATIONS[*application];
            let lease = u64::from(limited.day) / 100;
            for day in days {
                let of = |day| self.begun.get(&(node, *application, day)).copied();
                // Before midnight, units are leased ahead.
                let before = Day::from_number(day.number() - 1);
                let ahead = of(before).map_or(0, |_| 8);
                let used = of(*day).unwrap_or_default().max(ahead);
                let on_grace = u64::from(self.outages.contains(day)) * (limited.grace() / 8 + 1);
                let lost = lease.min(used + open).max(1) + open + on_grace;
                *self.lost.entry((*application, *day)).or_default() += lost;
            }
        }
        self.open.retain(|(of, _), _| *of != node);
    }

    /// Compares the units that the ledger granted for a day with those that were delivered. `is_settled` if every process
    /// has returned what it did not deliver.
    pub fn audit(&mut self, application: usize, day: Day, granted: u64, is_settled: bool) {
        let limited = &APPLICATIONS[application];
        let delivered = Self::sum(&self.delivered, limited, LimitRule::Day, day);
        let lost = self.lost.get(&(application, day)).copied();
        let most = delivered + lost.unwrap_or_default();
        let grace = self.grace_in(limited, LimitRule::Day, day);
        let name = limited.key;
        if granted > limited.day.into() && grace == 0 {
            self.found(&format!("{name}: {granted} units of {day} are granted"));
        }
        if delivered > granted + grace || is_settled && granted > most {
            self.found(&format!(
                "{name}: {granted} units of {day} are granted, {delivered} delivered, at most {lost:?} lost"
            ));
        }
        self.granted.insert((application, day), granted);
    }

    /// Compares the units of a window with those of its days.
    pub fn audit_window(&mut self, application: usize, window: &AuditedWindow, day: Day) {
        let limited = &APPLICATIONS[application];
        let sum = Self::sum(&self.granted, limited, window.rule, day);
        let start = limited.window_start(window.rule, day);
        if window.start != start || window.granted != sum {
            let name = limited.key;
            let rule = window.rule.name();
            let counted = window.granted;
            self.found(&format!(
                "{name}: the {rule} of {day} has {counted} units, its days {sum}"
            ));
        }
    }
}
