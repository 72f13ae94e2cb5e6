//! Tests of `account_state`.

use std::num::NonZeroU32;

use scoregate_base::{
    clock::Now,
    limits::{
        AccountBalance, AdmissionVerdict, CalendarLimits, LeaseAvailability, LimitRule, Limits,
    },
};

use crate::accounts::account_state::{AccountState, Charge};

#[test]
fn a_request_that_has_to_wait_for_returned_units_leaves_the_attempt_to_the_path_that_waits() {
    let limits = Limits {
        minute: 60,
        day: 10,
        guard: 60,
        grace: 0,
        calendar: CalendarLimits::NONE,
    };
    let now = Now::default();
    let gateways = NonZeroU32::new(2);
    let day = now.wall.day();
    let mut state = AccountState::new("one", AccountBalance::opened(&limits, day, 10));
    for _ in 0..2 {
        let charge = state.charge(&limits, gateways, now, false, false);
        assert!(matches!(charge, Charge::Waits), "{charge:?}");
    }
    let waiting = state.admit(&limits, gateways, now, false, LeaseAvailability::Reachable);
    assert_eq!(waiting, AdmissionVerdict::LeaseFirst);
    // The next attempt is due a second later.
    let charge = state.charge(&limits, gateways, now, false, false);
    assert!(
        matches!(charge, Charge::Refused(LimitRule::Day)),
        "{charge:?}"
    );
}

#[test]
fn unchanged_responses_alone_lease_no_units_ahead() {
    let limits = Limits {
        minute: 6_000,
        day: 10_000,
        guard: 60,
        grace: 0,
        calendar: CalendarLimits::NONE,
    };
    let now = Now::default();
    let day = now.wall.day();
    let mut balance = AccountBalance::opened(&limits, day, 0);
    balance.day = balance.day.grant(day, 1, 0, 1);
    let mut state = AccountState::new("one", balance);
    let mut charge = |is_unchanged| state.charge(&limits, None, now, is_unchanged, false);
    for _ in 0..2 {
        let unchanged = charge(true);
        assert!(
            matches!(
                unchanged,
                Charge::Paid {
                    day: None,
                    runs_low: false,
                    ..
                }
            ),
            "{unchanged:?}"
        );
    }
    let delivered = charge(false);
    assert!(
        matches!(delivered, Charge::Paid { day: Some(charged), runs_low: true, .. } if charged == day),
        "{delivered:?}"
    );
}
