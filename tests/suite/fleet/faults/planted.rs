//! Each check of `laws` finds a planted violation, and nothing in a record without one.

use super::{
    early_refusals::{EarlyCause, EarlyRefusals},
    laws,
    trace::*,
};

fn request(application: usize, number: u32, sent: f64, outcome: SeenOutcome) -> SeenRequest {
    let id = RequestNumber {
        application,
        gateway: 0,
        number,
    };
    SeenRequest {
        id,
        process: 1,
        sent,
        done: sent + 0.01,
        outcome,
        limit: None,
    }
}

/// One application of a free or a paid tier with this many 200s, one every `pause` seconds.
fn trace(allowed: AllowedUse, served: u32, pause: f64) -> Trace {
    let mut trace = Trace {
        applications: vec![allowed],
        today: "2026-11-24".into(),
        ..Trace::default()
    };
    for number in 0..served {
        trace.requests.push(request(
            0,
            number,
            f64::from(number) * pause,
            SeenOutcome::Served,
        ));
        let line = format!("{{\"request_id\":\"fault-0-0-{number}\",\"day\":\"2026-11-24\"}}\n");
        trace.read_log(&line);
    }
    trace
}

const PAID: AllowedUse = AllowedUse {
    minute: 60,
    day: 200,
    is_paid: true,
};
const FREE: AllowedUse = AllowedUse {
    is_paid: false,
    ..PAID
};

fn fault(gateway: Option<usize>, from: f64, until: f64) -> FaultWindow {
    FaultWindow {
        gateway,
        from,
        until,
        hides_database: true,
        what: "planted".into(),
    }
}

#[test]
fn a_day_above_the_quota_and_its_grace_is_found() {
    assert!(laws::days(&trace(PAID, 202, 1.0)).is_empty());
    assert_eq!(laws::days(&trace(PAID, 203, 1.0)).len(), 1);
    assert!(laws::days(&trace(FREE, 200, 1.0)).is_empty());
    assert_eq!(laws::days(&trace(FREE, 201, 1.0)).len(), 1);
    // A 200 that is in no access log belongs to the day around it.
    let mut lost = trace(FREE, 200, 1.0);
    lost.requests
        .push(request(0, 900, 50.0, SeenOutcome::Served));
    assert_eq!(laws::days(&lost).len(), 1);
    // The 200 belongs to another day: each day has its own quota.
    lost.days.insert(
        RequestNumber {
            application: 0,
            gateway: 0,
            number: 900,
        },
        "2026-11-23".into(),
    );
    assert!(laws::days(&lost).is_empty());
}

#[test]
fn a_minute_above_its_limit_is_found() {
    assert!(laws::minutes(&trace(PAID, 120, 1.0)).is_empty());
    assert!(laws::minutes(&trace(PAID, 60, 0.0)).is_empty());
    assert_eq!(laws::minutes(&trace(PAID, 61, 0.0)).len(), 1);
    assert_eq!(laws::minutes(&trace(PAID, 180, 0.6)).len(), 1);
    // A gateway without the database has its own part of the limit, and a clock that was set ahead grants the limit
    // again.
    let mut excused = trace(PAID, 70, 0.0);
    excused.faults.push(fault(Some(0), -40.0, 0.0));
    assert!(laws::minutes(&excused).is_empty());
    excused.faults[0].hides_database = false;
    assert_eq!(laws::minutes(&excused).len(), 1);
    let mut excused = trace(PAID, 120, 0.0);
    excused.set_ahead.push(-1.0);
    assert!(laws::minutes(&excused).is_empty());
    excused
        .requests
        .push(request(0, 900, 0.0, SeenOutcome::Served));
    assert_eq!(laws::minutes(&excused).len(), 1);
}

#[test]
fn a_200_with_a_revoked_key_is_found() {
    let revoked = |served_at: f64| {
        let mut trace = trace(PAID, 0, 1.0);
        trace.revocations.push(SeenRevocation {
            application: 0,
            at: 100.0,
            marker: "key".into(),
        });
        trace
            .requests
            .push(request(0, 1, served_at, SeenOutcome::Served));
        trace
    };
    assert_eq!(laws::revocations(&revoked(104.9)), (vec![], 0));
    assert_eq!(laws::revocations(&revoked(105.1)).0.len(), 1);
    // The gateway was cut off, or another one.
    let mut cut_off = revoked(105.1);
    cut_off.faults.push(fault(Some(0), 90.0, 103.0));
    assert_eq!(laws::revocations(&cut_off), (vec![], 0));
    let mut other = revoked(105.1);
    other.faults.push(fault(Some(1), 90.0, 103.0));
    assert_eq!(laws::revocations(&other).0.len(), 1);
    // The gateway knew of a later change, although it was cut off.
    cut_off.known.push(KnownRevocation {
        application: 0,
        gateway: 0,
        process: 1,
        since: 105.0,
    });
    assert_eq!(laws::revocations(&cut_off).0.len(), 1);
    cut_off.requests[0].outcome = SeenOutcome::Refused(401, "key_revoked".into());
    assert_eq!(laws::revocations(&cut_off), (vec![], 1));
}

#[test]
fn units_that_nobody_can_use_and_an_early_refusal_are_found() {
    let used_up = |served, kills, refused_at| {
        let mut trace = trace(PAID, served, 1.0);
        trace.kills = kills;
        trace.used_up.push(UsedUp {
            application: 0,
            quota: 200,
            refused_at,
        });
        trace
    };
    assert!(laws::rest(&used_up(200, 0, 200.0)).is_empty());
    assert_eq!(laws::rest(&used_up(199, 0, 200.0)).len(), 1);
    // One lease of two units per kill, and requests without a response, may be missing.
    assert!(laws::rest(&used_up(196, 2, 200.0)).is_empty());
    let mut unanswered = used_up(195, 2, 200.0);
    assert_eq!(laws::rest(&unanswered).len(), 1);
    unanswered
        .requests
        .push(request(0, 900, 3.0, SeenOutcome::Unanswered));
    assert!(laws::rest(&unanswered).is_empty());
    // A stopped gateway returns its units, unless the database cannot be reached.
    let mut stopped = used_up(198, 0, 200.0);
    stopped.kept_units.push(KeptUnits {
        gateway: 1,
        from: 40.0,
        until: 42.0,
    });
    assert_eq!(laws::rest(&stopped).len(), 1);
    stopped.faults.push(fault(None, 10.0, 33.0));
    assert!(laws::rest(&stopped).is_empty());
    stopped.faults[0].until = 31.0;
    assert_eq!(laws::rest(&stopped).len(), 1);
    // One lease per gateway may be unspent at the first refusal.
    assert!(laws::rest(&used_up(200, 0, 193.5)).is_empty());
    assert_eq!(laws::rest(&used_up(200, 0, 192.5)).len(), 1);
}

/// 300 requests are served, one a second, and one is refused by this limit. Changes have a limit and a time.
fn refused_once(at: f64, quota: u32, changes: &[(u32, f64)]) -> Trace {
    let mut trace = trace(PAID, 300, 1.0);
    let outcome = SeenOutcome::Refused(429, "quota_exceeded".into());
    let day = trace.today.clone();
    let limit = Some(DayLimit { day, quota });
    trace.requests.push(SeenRequest {
        limit,
        ..request(0, 900, at, outcome)
    });
    // A 200 on the next day.
    let next = request(0, 901, 320.0, SeenOutcome::Served);
    trace.days.insert(next.id, "2026-11-25".into());
    trace.requests.push(next);
    let changes = changes.iter().map(|(quota, at)| QuotaChange {
        application: 0,
        quota: *quota,
        from: *at,
        until: *at,
    });
    trace.quota_changes.extend(changes);
    trace
}

/// The cause of the refusal; `None` if it is unexplained or not early.
fn cause(trace: &Trace) -> Option<EarlyCause> {
    let found = EarlyRefusals::of(trace);
    assert_eq!(found.refused, 1);
    assert!(found.explained.len() + found.unexplained.len() <= 1);
    found.explained.into_keys().map(|(_, cause)| cause).next()
}

#[test]
fn an_early_refusal_without_a_cause_is_found() {
    let early = |trace: &Trace| {
        let found = EarlyRefusals::of(trace);
        [found.explained.len(), found.unexplained.len()]
    };
    assert_eq!(early(&refused_once(295.0, 200, &[])), [0, 0]);
    assert_eq!(early(&refused_once(100.5, 200, &[])), [0, 1]);
    assert_eq!(early(&refused_once(150.5, 100, &[(100, 0.0)])), [0, 1]);
}

#[test]
fn units_that_others_hold_or_that_were_lost_explain_an_early_refusal() {
    // One lease of two units of each of two other gateways.
    assert_eq!(
        cause(&refused_once(195.5, 200, &[])),
        Some(EarlyCause::Held)
    );
    assert_eq!(cause(&refused_once(194.5, 200, &[])), None);
    // And one lease that a process lost.
    for (at, explained) in [(193.5, Some(EarlyCause::Held)), (192.5, None)] {
        let mut trace = refused_once(at, 200, &[]);
        trace.faults.push(FaultWindow {
            what: "KillGateway(0)".into(),
            ..fault(Some(0), 50.0, 51.0)
        });
        assert_eq!(cause(&trace), explained);
        trace.faults.clear();
        trace.kept_units.push(KeptUnits {
            gateway: 0,
            from: 50.0,
            until: 51.0,
        });
        assert_eq!(cause(&trace), explained);
    }
}

#[test]
fn a_limit_that_was_raised_explains_an_early_refusal() {
    let refused_by_100 =
        |at: f64, raised_at: f64| refused_once(at, 100, &[(100, 0.0), (500, raised_at)]);
    assert_eq!(
        cause(&refused_by_100(150.5, 160.0)),
        Some(EarlyCause::Raised)
    );
    let with_rest = refused_by_100(97.5, 105.0);
    assert_eq!(cause(&with_rest), Some(EarlyCause::RaisedWithRest));
    assert_eq!(cause(&refused_by_100(96.5, 105.0)), None);
    // Gateways apply a change within five seconds, unless they have a fault.
    assert_eq!(
        cause(&refused_by_100(150.5, 146.0)),
        Some(EarlyCause::Outdated)
    );
    let mut late = refused_by_100(150.5, 145.0);
    assert_eq!(cause(&late), None);
    late.faults.push(fault(Some(1), 140.0, 149.0));
    assert_eq!(cause(&late), None, "another gateway");
    late.faults[0].gateway = Some(0);
    assert_eq!(cause(&late), Some(EarlyCause::Outdated));
}

#[test]
fn a_gateway_without_the_database_explains_an_early_refusal() {
    let mut trace = refused_once(150.5, 100, &[(500, 0.0), (100, 120.0)]);
    assert_eq!(cause(&trace), None);
    trace.faults.push(fault(Some(0), 150.0, 155.0));
    assert_eq!(cause(&trace), Some(EarlyCause::WithoutDatabase));
    trace.faults[0].hides_database = false;
    assert_eq!(cause(&trace), None);
    // The other gateway served units that the refusing gateway could not get.
    let mut trace = refused_once(195.5, 200, &[]);
    trace.faults.push(fault(Some(0), 190.0, 200.0));
    assert_eq!(cause(&trace), Some(EarlyCause::WithoutDatabase));
}

#[test]
fn a_paid_caller_without_a_200_within_its_retry_is_found() {
    const BELOW: AllowedUse = AllowedUse {
        minute: 4_000_000,
        day: 300_000,
        is_paid: true,
    };
    let refused = |allowed: AllowedUse, pause: f64| {
        let mut trace = trace(allowed, 30, pause);
        trace.requests.push(request(
            0,
            900,
            20.5,
            SeenOutcome::Refused(503, "overloaded".into()),
        ));
        trace
    };
    assert!(laws::retries(&refused(BELOW, 5.0)).is_empty());
    assert_eq!(laws::retries(&refused(BELOW, 10.0)).len(), 1);
    assert!(
        laws::retries(&refused(PAID, 10.0)).is_empty(),
        "the caller may be above its limits"
    );
    let mut excused = refused(BELOW, 10.0);
    excused
        .faults
        .extend([0, 1].map(|gateway| fault(Some(gateway), 19.0, 22.0)));
    assert_eq!(
        laws::retries(&excused).len(),
        1,
        "the third gateway has no fault"
    );
    excused.faults.push(fault(Some(2), 19.0, 22.0));
    assert!(laws::retries(&excused).is_empty());
}
