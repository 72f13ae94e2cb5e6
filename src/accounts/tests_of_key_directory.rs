//! Keys enter the directory, change and expire without losing balances.

use std::{sync::Arc, time::Duration};

use scoregate_base::{
    clock::{Day, Now, Wall},
    keys::Digest,
    plans::standard_tiers,
};

use crate::accounts::{
    key_directory::{KeyDirectory, KeyFault},
    sample::stored,
    terms::TermsByTier,
};

const DAY: Day = Day::from_number(20_000);

#[test]
fn rotation_keeps_balances_and_a_tier_change_takes_effect_at_once() {
    let key_directory = KeyDirectory::default();
    let terms = TermsByTier::new(&standard_tiers(), 60);
    assert!(key_directory.apply(&stored("free", &["a"]), &terms, DAY));
    let before = key_directory.find(&Digest::of("a")).unwrap().account;
    assert!(key_directory.apply(&stored("pro", &["a", "b"]), &terms, DAY));
    let after = key_directory.find(&Digest::of("b")).unwrap().account;
    assert!(Arc::ptr_eq(&before, &after));
    assert_eq!(before.terms().limits.day, 10_000);
}

#[test]
fn a_use_is_recorded_once_an_hour_and_survives_a_change_of_the_application() {
    let key_directory = KeyDirectory::default();
    let terms = TermsByTier::new(&standard_tiers(), 60);
    let key = Digest::of("a");
    let noon = Wall::from_seconds(12 * 3_600 + 5);
    let uses = |at: Wall| {
        key_directory.mark_used(&key, &key_directory.find(&key).unwrap(), at);
        key_directory
            .take_used(None, 9)
            .into_iter()
            .map(|used| used.at.seconds())
            .collect::<Vec<_>>()
    };
    key_directory.apply(&stored("free", &["a"]), &terms, DAY);
    assert_eq!(uses(noon), [12 * 3_600]);
    key_directory.apply(&stored("pro", &["a"]), &terms, DAY);
    assert!(uses(noon).is_empty() && uses(Wall::from_seconds(0)).is_empty());
    assert_eq!(uses(noon.plus(Duration::from_hours(1))), [13 * 3_600]);
}

#[test]
fn keys_of_an_unknown_tier_are_unknown() {
    let key_directory = KeyDirectory::default();
    let terms = TermsByTier::new(&standard_tiers(), 60);
    assert!(key_directory.apply(&stored("free", &["a"]), &terms, DAY));
    assert!(!key_directory.apply(&stored("gold", &["a"]), &terms, DAY));
    assert!(key_directory.is_empty());
}

#[test]
fn an_application_whose_tier_is_unknown_for_a_while_keeps_its_units() {
    let key_directory = KeyDirectory::default();
    let terms = TermsByTier::new(&standard_tiers(), 60);
    key_directory.apply(&stored("pro", &["a"]), &terms, DAY);
    let account = key_directory.find(&Digest::of("a")).unwrap().account;
    let mut state = account.state();
    let granted = state.day().grant(DAY, 5, 0, 5);
    state.set_day(granted);
    drop(state);
    key_directory.apply(&stored("gold", &["a"]), &terms, DAY);
    key_directory.sweep(Now {
        wall: DAY.end().minus(Duration::from_secs(1)),
        ..Now::default()
    });
    key_directory.apply(&stored("free", &["a"]), &terms, DAY);
    assert!(Arc::ptr_eq(
        &account,
        &key_directory.find(&Digest::of("a")).unwrap().account
    ));
}

#[test]
fn a_sweep_visits_expired_keys_only() {
    let key_directory = KeyDirectory::default();
    let terms = TermsByTier::new(&standard_tiers(), 60);
    let at = |seconds: u64| Now {
        wall: Wall::from_seconds(seconds),
        ..Now::default()
    };
    let mut by_expiry = stored("pro", &["soon", "late", "never"]);
    for (key, seconds) in by_expiry.keys.iter_mut().zip([10, 20]) {
        key.expires_at = Some(Wall::from_seconds(seconds));
    }
    key_directory.apply(&by_expiry, &terms, Day::default());
    // A key with a new expiry is not visited at its old expiry.
    by_expiry.keys[1].expires_at = Some(Wall::from_seconds(30));
    key_directory.apply(&by_expiry, &terms, Day::default());
    for (now, left, listed) in [(9, 3, 3), (10, 2, 2), (29, 2, 1), (30, 1, 0)] {
        key_directory.sweep(at(now));
        assert_eq!(
            (key_directory.len(), key_directory.expiring()),
            (left, listed),
            "{now}"
        );
    }
}

#[test]
fn last_key_of_an_application_is_removed_only_without_loss() {
    let key_directory = KeyDirectory::default();
    let terms = TermsByTier::new(&standard_tiers(), 60);
    let mut ended = stored("pro", &["a"]);
    key_directory.apply(&ended, &terms, DAY);
    ended.keys[0].revoked_at = Some(Wall::from_seconds(1));
    key_directory.apply(&ended, &terms, DAY);
    let now = Now {
        wall: DAY.end().minus(Duration::from_secs(1)),
        ..Now::default()
    };
    let account = key_directory.find(&Digest::of("a")).unwrap().account;
    let mut state = account.state();
    let granted = state.day().grant(DAY, 5, 0, 5);
    state.set_day(granted);
    drop(state);
    // A request in flight holds another reference to the account. This makes no difference.
    key_directory.sweep(now);
    assert_eq!(key_directory.len(), 1);
    assert_eq!(key_directory.drain().1, 5);
    key_directory.sweep(now);
    assert_eq!(
        key_directory.len(),
        1,
        "the ledger has totals of this process"
    );
    key_directory.sweep(Now {
        wall: DAY.end(),
        ..Now::default()
    });
    assert!(key_directory.is_empty());
    drop(account);
}

#[test]
fn a_drain_reports_units_that_a_change_of_limits_returned() {
    let key_directory = KeyDirectory::default();
    let terms = TermsByTier::new(&standard_tiers(), 60);
    key_directory.apply(&stored("pro", &["a", "b"]), &terms, DAY);
    let account = key_directory.find(&Digest::of("a")).unwrap().account;
    let mut state = account.state();
    let granted = state.day().grant(DAY, 5, 0, 5);
    state.set_day(granted);
    drop(state);
    key_directory.apply(&stored("free", &["a", "b"]), &terms, DAY);
    let (reports, units) = key_directory.drain();
    let known: Vec<_> = reports.iter().map(|report| report.totals.known).collect();
    assert_eq!(
        (known.len(), known[0].granted, known[0].returned, units),
        (1, 5, 5, 5)
    );
    assert_eq!(key_directory.drain(), (Vec::new(), 0));
}

#[test]
fn the_reason_why_a_key_is_refused_is_known_before_and_after_a_sweep() {
    let key_directory = KeyDirectory::default();
    let terms = TermsByTier::new(&standard_tiers(), 60);
    let mut application = stored("pro", &["expired", "revoked", "valid"]);
    application.keys[0].expires_at = Some(Wall::from_seconds(10));
    application.keys[1].revoked_at = Some(Wall::from_seconds(5));
    key_directory.apply(&application, &terms, Day::default());
    let now = Now {
        wall: Wall::from_seconds(10),
        ..Now::default()
    };
    let fault = |key| key_directory.find_valid(&Digest::of(key), now.wall).err();
    for left in [1, 1] {
        assert_eq!(
            ["expired", "revoked", "valid", "nobody"].map(fault),
            [
                Some(KeyFault::Expired),
                Some(KeyFault::Revoked),
                None,
                Some(KeyFault::Unknown)
            ]
        );
        key_directory.sweep(now);
        assert_eq!(key_directory.len(), left);
    }
    application.keys[0].expires_at = None;
    key_directory.apply(&application, &terms, Day::default());
    assert_eq!(fault("expired"), None);
}
