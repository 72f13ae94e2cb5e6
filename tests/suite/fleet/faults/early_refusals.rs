//! Refusals by the daily quota that come long before a 200 on the same day. Each one has a cause within the bounds of
//! `docs/guarantees.md`: another limit, or units that other gateways hold or that were lost.

use std::{collections::BTreeMap, fmt::Write as _};

use super::{
    gateways::GATEWAYS,
    laws::{PROPAGATION, affects},
    trace::{DayLimit, FaultWindow, QuotaChange, SeenOutcome, SeenRequest, Trace},
};

/// A refusal is early if a request more than this many seconds later got a 200 on the same day.
const EARLY: f64 = 10.0;
/// Units of a day that may be leased before it begins.
const FIRST_LEASE: usize = 8;

/// The cause of an early refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EarlyCause {
    /// The limit was used up, and was raised later.
    Raised,
    /// The limit was raised later. Other gateways held its last units, or these were lost.
    RaisedWithRest,
    /// The limit had been raised, and the gateway had not applied the change.
    Outdated,
    /// Other gateways held the last units, which were spent later.
    Held,
    /// A gateway that could not reach the database later spent units that it held, or grace.
    WithoutDatabase,
}

impl EarlyCause {
    const ALL: [Self; 5] = [
        Self::Raised,
        Self::RaisedWithRest,
        Self::Outdated,
        Self::Held,
        Self::WithoutDatabase,
    ];
}

/// Refusals of paid callers by the daily quota, and the causes of early ones.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct EarlyRefusals {
    pub refused: usize,
    /// Numbers of early ones, by the limit that refused and by cause.
    pub explained: BTreeMap<(u32, EarlyCause), usize>,
    pub unexplained: Vec<String>,
}

/// A refusal and the limit stated in it.
#[derive(Clone, Copy, Debug)]
struct DayRefusal<'t> {
    request: &'t SeenRequest,
    limit: u32,
}

/// Units that were lost, or may have been lost, at a time.
#[derive(Clone, Copy, Debug)]
struct LostUnits {
    at: f64,
    units: usize,
}

/// The requests of an application on one day.
struct ApplicationDay<'t> {
    trace: &'t Trace,
    application: usize,
    refused: Vec<DayRefusal<'t>>,
    /// In the order in which they were sent.
    served: Vec<&'t SeenRequest>,
    /// Times at which units were charged, in order.
    charged: Vec<f64>,
    lost: Vec<LostUnits>,
}

impl EarlyRefusals {
    pub fn of(trace: &Trace) -> Self {
        let mut found = Self::default();
        for day in days_of(trace) {
            found.refused += day.refused.len();
            for refusal in &day.refused {
                let later = refusal.request.done + EARLY;
                let next = day.served.partition_point(|served| served.sent <= later);
                if let Some(next) = day.served.get(next) {
                    found.add(&day, *refusal, next);
                }
            }
        }
        found
    }

    fn add(&mut self, day: &ApplicationDay<'_>, refusal: DayRefusal<'_>, next: &SeenRequest) {
        let DayRefusal { request, limit } = refusal;
        if let Some(cause) = day.cause(refusal, next) {
            *self.explained.entry((limit, cause)).or_default() += 1;
            return;
        }
        let application = day.application;
        let gateway = request.id.gateway;
        let at = request.sent;
        let used = day.used(request);
        let others = day.held_or_lost(request);
        let served = next.sent;
        self.unexplained.push(format!(
            "application {application} was refused by gateway {gateway} at {at:.3} with {used} of {limit} used and at most \
             {others} held or lost, and served at {served:.3}"
        ));
    }

    /// Adds the refusals of another run.
    pub fn append(&mut self, mut other: Self) {
        self.refused += other.refused;
        for (key, count) in other.explained {
            *self.explained.entry(key).or_default() += count;
        }
        self.unexplained.append(&mut other.unexplained);
    }

    /// A row of a table: all refusals, early ones, and their causes.
    pub fn row(&self) -> String {
        let early = self.explained.values().sum::<usize>() + self.unexplained.len();
        let mut row = format!("| {} | {early} |", self.refused);
        for cause in EarlyCause::ALL {
            write!(row, " {} |", self.count(cause, |_| true)).unwrap();
        }
        write!(row, " {} |", self.unexplained.len()).unwrap();
        row
    }

    /// Rows of a table: the early refusals by stated limit and by cause.
    pub fn rows_by_limit(&self) -> String {
        let mut limits: Vec<u32> = self.explained.keys().map(|(limit, _)| *limit).collect();
        limits.dedup();
        let mut rows = String::new();
        for limit in limits {
            write!(rows, "| {limit} |").unwrap();
            for cause in EarlyCause::ALL {
                write!(rows, " {} |", self.count(cause, |of| of == limit)).unwrap();
            }
            rows.push('\n');
        }
        rows
    }

    fn count(&self, cause: EarlyCause, is_counted: impl Fn(u32) -> bool) -> usize {
        let all = self.explained.iter();
        all.filter(|((limit, of), _)| *of == cause && is_counted(*limit))
            .map(|(_, count)| count)
            .sum()
    }
}

/// The days of all paid applications.
fn days_of(trace: &Trace) -> Vec<ApplicationDay<'_>> {
    let mut days = BTreeMap::new();
    for request in &trace.requests {
        let application = request.id.application;
        let is_paid = trace.applications[application].is_paid;
        let day = is_paid.then(|| trace.day_of(request)).flatten();
        if let Some(day) = day {
            let new = || ApplicationDay::new(trace, application);
            let day = days.entry((application, day)).or_insert_with(new);
            day.add(request);
        }
    }
    let mut days: Vec<_> = days.into_values().collect();
    for day in &mut days {
        day.charged.sort_by(f64::total_cmp);
        day.served
            .sort_by(|one, other| one.sent.total_cmp(&other.sent));
        day.lost = day.losses();
    }
    days
}

impl<'t> ApplicationDay<'t> {
    fn new(trace: &'t Trace, application: usize) -> Self {
        Self {
            trace,
            application,
            refused: Vec::new(),
            served: Vec::new(),
            charged: Vec::new(),
            lost: Vec::new(),
        }
    }

    fn add(&mut self, request: &'t SeenRequest) {
        if let Some(DayLimit { quota, .. }) = request.limit {
            self.refused.push(DayRefusal {
                request,
                limit: quota,
            });
            return;
        }
        self.charged.push(request.done);
        if request.outcome == SeenOutcome::Served {
            self.served.push(request);
        }
    }

    /// The cause of a refusal before `next`, the first 200 that makes it early.
    fn cause(&self, refusal: DayRefusal<'_>, next: &SeenRequest) -> Option<EarlyCause> {
        let DayRefusal { request, limit } = refusal;
        let used = self.used(request);
        let size = usize::try_from(limit).unwrap();
        if used + self.held_or_lost(request) < size {
            return None;
        }
        if self.was_larger(refusal) {
            return self.may_not_know(refusal).then_some(EarlyCause::Outdated);
        }
        let is_raise = |change: &QuotaChange| {
            change.quota > limit && change.from < next.done && change.until > request.sent
        };
        let hides = |fault: &FaultWindow| {
            fault.hides_database && affects(fault, next.id.gateway, next.sent, next.done)
        };
        if self.changes().any(is_raise) {
            return Some(if used >= size {
                EarlyCause::Raised
            } else {
                EarlyCause::RaisedWithRest
            });
        }
        if self.trace.faults.iter().any(hides) {
            return Some(EarlyCause::WithoutDatabase);
        }
        (used < size).then_some(EarlyCause::Held)
    }

    /// Units that were charged before the response.
    fn used(&self, request: &SeenRequest) -> usize {
        self.charged.partition_point(|at| *at <= request.done)
    }

    /// Maximum number of units that other gateways held or that were lost: one lease of each other gateway, and the
    /// losses until then.
    fn held_or_lost(&self, request: &SeenRequest) -> usize {
        let at = request.done;
        let lost = self.lost.iter().filter(|lost| lost.at < at);
        (GATEWAYS - 1) * self.lease(at) + lost.map(|lost| lost.units).sum::<usize>()
    }

    /// The largest lease under the limits until a time.
    fn lease(&self, until: f64) -> usize {
        let changes = self.changes().filter(|change| change.from < until);
        let largest = changes.map(|change| change.quota).max();
        let allowed = self.trace.applications[self.application].day;
        usize::try_from(largest.unwrap_or(allowed) / 100)
            .unwrap()
            .max(1)
    }

    /// Units of processes that ended, or may have ended, without returning them, and units of requests without a
    /// response.
    fn losses(&self) -> Vec<LostUnits> {
        let faults = self.trace.faults.iter();
        let killed = faults.filter(|fault| fault.what.starts_with("KillGateway"));
        let killed = killed.filter_map(|fault| Some((fault.gateway?, fault.from)));
        let kept = self.trace.kept_units.iter();
        let ended = killed.chain(kept.map(|kept| (kept.gateway, kept.from)));
        // A gateway that does not run is not killed again.
        let of_processes: BTreeMap<_, _> = ended
            .filter_map(|(gateway, at)| self.loss(gateway, at))
            .collect();
        let unconfirmed = self.requests().filter(|request| {
            request.outcome == SeenOutcome::Unanswered && !self.trace.days.contains_key(&request.id)
        });
        let unconfirmed = unconfirmed.map(|request| LostUnits {
            at: request.sent,
            units: 1,
        });
        of_processes.into_values().chain(unconfirmed).collect()
    }

    /// The process of a gateway that ended at a time, and the units that it lost: at most one lease, and no more units
    /// than it had used.
    fn loss(&self, gateway: usize, at: f64) -> Option<((usize, u32), LostUnits)> {
        let of_gateway = self
            .requests()
            .filter(|request| request.id.gateway == gateway && request.sent < at);
        let process = of_gateway.map(|request| request.process).max()?;
        let used = self.served.iter().filter(|request| {
            request.id.gateway == gateway && request.process == process && request.sent < at
        });
        let units = used.count().max(FIRST_LEASE).min(self.lease(at));
        Some(((gateway, process), LostUnits { at, units }))
    }

    fn requests(&self) -> impl Iterator<Item = &'t SeenRequest> {
        let application = self.application;
        let requests = self.trace.requests.iter();
        requests.filter(move |request| request.id.application == application)
    }

    fn changes(&self) -> impl Iterator<Item = &'t QuotaChange> {
        let application = self.application;
        let changes = self.trace.quota_changes.iter();
        changes.filter(move |change| change.application == application)
    }

    /// Whether all limits that may have been in force were larger than the one that refused.
    fn was_larger(&self, refusal: DayRefusal<'_>) -> bool {
        let DayRefusal { request, limit } = refusal;
        let before = self.changes().filter(|change| change.until <= request.sent);
        let recent = self
            .changes()
            .filter(|change| change.until > request.sent && change.from < request.done);
        let in_force: Vec<_> = before.last().into_iter().chain(recent).collect();
        !in_force.is_empty() && in_force.iter().all(|change| change.quota > limit)
    }

    /// Whether the gateway may not have applied the change that ended this limit.
    fn may_not_know(&self, refusal: DayRefusal<'_>) -> bool {
        let DayRefusal { request, limit } = refusal;
        let changes: Vec<_> = self
            .changes()
            .filter(|change| change.from < request.done)
            .collect();
        let Some(last) = changes.iter().rposition(|change| change.quota == limit) else {
            return false;
        };
        let Some(end) = changes.get(last + 1) else {
            return false;
        };
        let mut faults = self.trace.faults.iter();
        request.sent <= end.until + PROPAGATION
            || faults.any(|fault| affects(fault, request.id.gateway, end.from, request.done))
    }
}
