//! Tests of `account_state`.

use std::num::NonZeroU32;

use scoregate_base::clock::Now;
use scoregate_base::limits::{
    AccountBalance, AdmissionVerdict, LeaseAvailability, LimitRule, Limits,
};
use scoregate_store::RequestOutcome;

use super::account_state::AccountState;
use super::unrecorded_requests::{CountedRequest, RequestKind};

fn counted(outcome: RequestOutcome, at: Now) -> CountedRequest {
    let kind = RequestKind {
        day: at.wall.day(),
        endpoint: None,
        outcome,
    };
    CountedRequest {
        kind,
        document: None,
        waited: false,
        at,
    }
}

#[test]
fn a_request_that_has_to_wait_for_returned_units_leaves_the_attempt_to_the_path_that_waits() {
    let limits = Limits {
        minute: 60,
        day: 10,
        guard: 60,
        grace: 0,
    };
    let now = Now::default();
    let gateways = NonZeroU32::new(2);
    let day = now.wall.day();
    let mut state = AccountState::new("one", AccountBalance::opened(&limits, day, 10));
    let request = counted(RequestOutcome::Ok, now);
    for _ in 0..2 {
        assert!(
            state
                .admit_and_settle(&limits, gateways, now, request, || false)
                .is_none()
        );
    }
    let waiting = state.admit(&limits, gateways, now, false, LeaseAvailability::Reachable);
    assert_eq!(waiting, AdmissionVerdict::LeaseFirst);
    // The next attempt is due a second later.
    let refused = state
        .admit_and_settle(&limits, gateways, now, request, || false)
        .unwrap();
    assert_eq!(
        (refused.refused, refused.charged),
        (Some(LimitRule::Day), None)
    );
}

#[test]
fn unchanged_responses_alone_lease_no_units_ahead() {
    let limits = Limits {
        minute: 6_000,
        day: 10_000,
        guard: 60,
        grace: 0,
    };
    let now = Now::default();
    let day = now.wall.day();
    let mut balance = AccountBalance::opened(&limits, day, 0);
    balance.day = balance.day.grant(day, 1, 0, 1);
    let mut state = AccountState::new("one", balance);
    let mut runs_low = |outcome| {
        let request = counted(outcome, now);
        state
            .admit_and_settle(&limits, None, now, request, || false)
            .unwrap()
            .runs_low
    };
    assert!(!runs_low(RequestOutcome::NotModified) && !runs_low(RequestOutcome::NotModified));
    assert!(runs_low(RequestOutcome::Ok));
}
