//! The rules that hold under all faults, checked on the record of a run. Each check returns the violations it found.

use super::trace::{
    AllowedUse, FaultWindow, KeptUnits, KnownRevocation, RequestNumber, SeenOutcome, SeenRequest,
    Trace,
};

/// Number of gateways.
const GATEWAYS: f64 = 3.0;
/// The longest time that a change takes to reach a gateway whose feed is live.
pub const PROPAGATION: f64 = 5.0;
/// Maximum time until a gateway is live again after a fault.
const RECOVERY: f64 = 8.0;
/// Maximum time until a gateway notices that the database is reachable again: two deadlines.
const RECONNECTION: f64 = 4.0;
/// Maximum time until a retry, and limits that no client of a run reaches.
const RETRY: f64 = 6.0;
const UNLIMITED: u32 = 1_000_000;
const LARGE_DAY: u32 = 300_000;
/// The lifetime of a lease of tokens.
const LEASE_LIFE: f64 = 100.0;

/// No application gets more than its quota on any day, except that a paid application gets at most one hundredth more
/// as grace.
pub fn days(trace: &Trace) -> Vec<String> {
    let (charged, _) = trace.charged();
    let excess = charged
        .into_iter()
        .filter_map(|((application, day), units)| {
            let allowed = trace.applications[application];
            let most = allowed.day
                + if allowed.is_paid {
                    allowed.day / 100
                } else {
                    0
                };
            (units > most)
                .then(|| format!("application {application} got {units} of {most} units of {day}"))
        });
    excess.collect()
}

/// In any interval of t seconds an application gets at most L + L·t/60 requests, plus the exceptions in
/// `docs/fleet.md`. These are L once after the database's clock was set ahead, and an equal part of the limit for each
/// gateway that cannot reach the database.
pub fn minutes(trace: &Trace) -> Vec<String> {
    let excess = trace
        .applications
        .iter()
        .enumerate()
        .filter_map(|(application, allowed)| {
            let served: Vec<&SeenRequest> = trace
                .requests
                .iter()
                .filter(|request| {
                    request.id.application == application && request.outcome == SeenOutcome::Served
                })
                .collect();
            let limit = f64::from(allowed.minute);
            minute(trace, served, limit).map(|found| format!("application {application}: {found}"))
        });
    excess.collect()
}

fn minute(trace: &Trace, mut served: Vec<&SeenRequest>, limit: f64) -> Option<String> {
    served.sort_by(|one, other| other.sent.total_cmp(&one.sent));
    let mut done: Vec<f64> = Vec::new();
    for first in served {
        let from = first.sent;
        done.insert(
            done.partition_point(|other| *other < first.done),
            first.done,
        );
        let mut count = 0.0;
        for until in &done {
            count += 1.0;
            let most = limit + limit * (until - from) / 60.0 + 0.01;
            // The exceptions are computed only if they matter.
            if count > most && count > most + exceptions(trace, limit, from, *until) {
                return Some(format!(
                    "{count} requests from {from:.3} to {until:.3}, of at most {most:.2}"
                ));
            }
        }
    }
    None
}

fn exceptions(trace: &Trace, limit: f64, from: f64, until: f64) -> f64 {
    let set_ahead = trace
        .set_ahead
        .iter()
        .filter(|at| **at < until && **at > from - LEASE_LIFE)
        .count();
    let unreachable: f64 = trace
        .faults
        .iter()
        .filter(|fault| fault.hides_database)
        .map(|fault| {
            let gateways = if fault.gateway.is_some() {
                1.0
            } else {
                GATEWAYS
            };
            // Tokens of the previous minute may be left.
            let seconds = until.min(fault.until + RECONNECTION) - (from - 60.0).max(fault.from);
            gateways * seconds.max(0.0)
        })
        .sum();
    let steps = u32::try_from(set_ahead).map_or(f64::MAX, f64::from);
    limit * steps + limit / GATEWAYS * unreachable / 60.0
}

/// A paid caller below its limits gets a 200 from some gateway within its retry time, even during faults, unless every
/// gateway has its own fault.
pub fn retries(trace: &Trace) -> Vec<String> {
    let is_below = |request: &&SeenRequest| {
        let AllowedUse {
            minute,
            day,
            is_paid,
        } = trace.applications[request.id.application];
        is_paid && minute >= UNLIMITED && day >= LARGE_DAY
    };
    let below: Vec<&SeenRequest> = trace.requests.iter().filter(is_below).collect();
    let mut found = Vec::new();
    let last = below.iter().map(|request| request.done).fold(0.0, f64::max);
    for failed in below
        .iter()
        .filter(|request| request.outcome != SeenOutcome::Served)
    {
        let until = failed.done + RETRY;
        let is_retry = |other: &&&SeenRequest| {
            let is_same = other.id.application == failed.id.application;
            is_same
                && other.outcome == SeenOutcome::Served
                && other.sent >= failed.sent
                && other.done <= until
        };
        let has_fault = |gateway: usize| {
            trace.faults.iter().any(|fault| {
                fault.gateway == Some(gateway)
                    && fault.from < until
                    && fault.until + RECOVERY > failed.sent
            })
        };
        if until < last && !below.iter().any(|other| is_retry(&other)) && !(0..3).all(has_fault) {
            let RequestNumber {
                application,
                gateway,
                ..
            } = failed.id;
            found.push(format!(
                "application {application} got {:?} from gateway {gateway} at {:.3}, and no 200 until {until:.3}",
                failed.outcome, failed.sent
            ));
        }
    }
    found
}

/// A revoked key gets no 200 from a gateway that knows of a later change, nor more than five seconds later from a
/// gateway that was live in that time. Returns the violations, and the number of requests with revoked keys that could
/// have violated the rule.
pub fn revocations(trace: &Trace) -> (Vec<String>, u32) {
    let mut found = Vec::new();
    let mut checked = 0;
    for request in &trace.requests {
        let revoked = trace
            .revocations
            .iter()
            .find(|revoked| revoked.application == request.id.application);
        let Some(revoked) = revoked else { continue };
        let is_known = trace.known.iter().any(|known| knew(known, request));
        let is_late = request.sent > revoked.at + PROPAGATION && was_live(trace, request);
        checked += u32::from(is_known || is_late);
        if (is_known || is_late) && request.outcome == SeenOutcome::Served {
            let gateway = request.id.gateway;
            let since = request.sent - revoked.at;
            let reason = if is_known { "knew" } else { "was live" };
            found.push(format!(
                "application {} was served by gateway {gateway}, which {reason}, {since:.3} s after its revocation",
                revoked.application
            ));
        }
    }
    (found, checked)
}

fn knew(known: &KnownRevocation, request: &SeenRequest) -> bool {
    (known.application, known.gateway, known.process)
        == (request.id.application, request.id.gateway, request.process)
        && request.sent > known.since
}

fn was_live(trace: &Trace, request: &SeenRequest) -> bool {
    let from = request.sent - PROPAGATION;
    !trace
        .faults
        .iter()
        .any(|fault| affects(fault, request.id.gateway, from, request.done))
}

/// Whether a fault affects a gateway at some time of an interval.
pub fn affects(fault: &FaultWindow, gateway: usize, from: f64, until: f64) -> bool {
    fault.gateway.is_none_or(|affected| affected == gateway)
        && fault.from < until
        && fault.until + RECOVERY > from
}

/// After all faults the whole quota can be used, except for one lease per kill and per stop without a reachable
/// database. All other stops return their units. At the first refusal, at most one lease per gateway is unspent.
pub fn rest(trace: &Trace) -> Vec<String> {
    let (charged, unknown) = trace.charged();
    let mut found = Vec::new();
    for KeptUnits {
        gateway,
        from,
        until,
    } in &trace.kept_units
    {
        let hides =
            |fault: &FaultWindow| fault.hides_database && affects(fault, *gateway, *from, *until);
        if !trace.faults.iter().any(hides) {
            found.push(format!(
                "gateway {gateway} returned no units when it was stopped at {from:.3}"
            ));
        }
    }
    let keepers = u32::try_from(trace.kept_units.len()).unwrap();
    for end in &trace.used_up {
        let application = end.application;
        let lease = (end.quota / 100).max(1);
        let lost = (trace.kills + keepers) * lease + trace.unconfirmed(application) + unknown;
        let used = charged
            .get(&(application, trace.today.as_str()))
            .copied()
            .unwrap_or(0);
        if used + lost < end.quota {
            found.push(format!(
                "application {application} got {used} of {}, with {lost} lost",
                end.quota
            ));
        }
        let is_later = |request: &&SeenRequest| {
            request.id.application == application
                && request.sent > end.refused_at
                && request.outcome == SeenOutcome::Served
        };
        let later = u32::try_from(trace.requests.iter().filter(is_later).count()).unwrap();
        if later > 3 * lease {
            found.push(format!(
                "application {application} was refused with {later} units left"
            ));
        }
    }
    found
}
