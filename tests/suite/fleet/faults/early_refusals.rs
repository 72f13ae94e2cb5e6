//! Refusals by the day that come long before a 200 of the same day. Each one is explained by the quota in force, or by units
//! that other gateways hold or that were lost, within the bounds of `docs/guarantees.md`.

use super::gateways::GATEWAYS;
use super::trace::{QuotaChange, SeenOutcome, SeenRequest, Trace};

/// A refusal is early if a 200 of the same day was requested later than this after it, in seconds.
const EARLY: f64 = 10.0;
/// A gateway that cannot reach the database may use an earlier quota for this long.
const OUTDATED: f64 = 20.0;
/// The days of refusals at midnight are not known to be those of the 200s.
const AROUND_MIDNIGHT: f64 = 5.0;

/// Refusals of paid callers by the day, and the causes of early ones.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct EarlyRefusals {
    pub(super) refused: usize,
    /// The quota in force was used up, and was raised later.
    pub(super) raised: usize,
    /// At most a lease of each gateway, and those of processes that ended without returning theirs, were unspent.
    pub(super) unspent: usize,
    pub(super) unexplained: Vec<String>,
}

/// The requests of an application on one day.
struct DayOfRequests<'t> {
    application: usize,
    refused: Vec<&'t SeenRequest>,
    /// When units were charged, or may have been.
    charged: Vec<f64>,
    last_served: f64,
}

impl EarlyRefusals {
    pub(super) fn of(trace: &Trace) -> Self {
        let mut found = Self::default();
        let paid = trace.applications.iter().enumerate();
        for (application, _) in paid.filter(|(_, allowed)| allowed.is_paid) {
            for day in days_of(trace, application) {
                found.refused += day.refused.len();
                for refused in &day.refused {
                    if day.last_served > refused.done + EARLY {
                        found.explain(trace, &day, refused);
                    }
                }
            }
        }
        found
    }

    fn explain(&mut self, trace: &Trace, day: &DayOfRequests<'_>, refused: &SeenRequest) {
        let application = day.application;
        let used = day.charged.partition_point(|at| *at <= refused.done);
        let quota = smallest_quota(trace, application, refused);
        if used >= quota && was_raised(trace, application, refused, quota) {
            self.raised += 1;
            return;
        }
        let lease = (quota / 100).max(1);
        let left = quota.saturating_sub(used);
        if used < quota && left <= (GATEWAYS + ended_before(trace, refused.done)) * lease {
            self.unspent += 1;
            return;
        }
        let at = refused.sent;
        self.unexplained.push(format!(
            "application {application} was refused at {at:.3} with {used} of {quota} used"
        ));
    }

    /// A row of a table: all, early ones, and their causes.
    pub(super) fn row(&self) -> String {
        let Self {
            refused,
            raised,
            unspent,
            unexplained,
        } = self;
        let early = raised + unspent + unexplained.len();
        format!(
            "| {refused} | {early} | {raised} | {unspent} | {} |",
            unexplained.len()
        )
    }
}

/// The day before midnight and the one after it.
fn days_of(trace: &Trace, application: usize) -> [DayOfRequests<'_>; 2] {
    let is_of_today = |request: &&SeenRequest| {
        let day = trace.days.get(&request.id);
        day.is_some_and(|day| *day == trace.today)
    };
    let today = trace.requests.iter().filter(is_of_today);
    let midnight = today.map(|request| request.sent).fold(f64::MAX, f64::min);
    let requests = trace.requests.iter();
    let requests: Vec<_> = requests
        .filter(|request| request.id.application == application)
        .collect();
    [false, true].map(|is_today| {
        let mut day = DayOfRequests {
            application,
            refused: Vec::new(),
            charged: Vec::new(),
            last_served: f64::MIN,
        };
        for request in &requests {
            if (request.sent >= midnight) == is_today {
                day.add(request, midnight);
            }
        }
        day.charged.sort_by(f64::total_cmp);
        day
    })
}

impl<'t> DayOfRequests<'t> {
    fn add(&mut self, request: &'t SeenRequest, midnight: f64) {
        match &request.outcome {
            SeenOutcome::Served => {
                self.charged.push(request.done);
                self.last_served = self.last_served.max(request.sent);
            }
            SeenOutcome::Unanswered => self.charged.push(request.done),
            SeenOutcome::Refused(429, code) if code == "quota_exceeded" => {
                if (request.sent - midnight).abs() > AROUND_MIDNIGHT {
                    self.refused.push(request);
                }
            }
            SeenOutcome::Refused(..) => {}
        }
    }
}

fn changes_of(trace: &Trace, application: usize) -> impl Iterator<Item = &QuotaChange> {
    let changes = trace.quota_changes.iter();
    changes.filter(move |change| change.application == application)
}

/// The smallest quota that may have been in force at a gateway.
fn smallest_quota(trace: &Trace, application: usize, refused: &SeenRequest) -> usize {
    let since = refused.sent - OUTDATED;
    let before = changes_of(trace, application)
        .filter(|change| change.until <= since)
        .last();
    let recent = changes_of(trace, application)
        .filter(|change| change.until > since && change.from < refused.done);
    let quotas = before.into_iter().chain(recent).map(|change| change.quota);
    let smallest = quotas.min();
    let quota = smallest.unwrap_or(trace.applications[application].day);
    usize::try_from(quota).unwrap()
}

fn was_raised(trace: &Trace, application: usize, refused: &SeenRequest, quota: usize) -> bool {
    changes_of(trace, application).any(|change| {
        let is_larger = usize::try_from(change.quota).unwrap() > quota;
        is_larger && change.until > refused.sent - OUTDATED
    })
}

/// Processes that ended before this time without returning their units, or may have.
fn ended_before(trace: &Trace, at: f64) -> usize {
    let faults = trace.faults.iter();
    let killed = faults.filter(|fault| fault.what.starts_with("KillGateway") && fault.from < at);
    let kept = trace.kept_units.iter().filter(|kept| kept.from < at);
    killed.count() + kept.count()
}
