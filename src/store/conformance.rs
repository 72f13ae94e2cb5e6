//! What every engine must do: one list of checks, written against the door and run once per engine.
//!
//! An engine's tests say `conformance::run_with!(fresh)`, where `fresh()` gives an empty store and what keeps it alive.
//! Not for: what only one engine promises; that is tested beside it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use futures_util::future::join_all;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::*;

/// Runs every check of the list against an engine.
macro_rules! run_with {
    ($fresh:path) => {
        $crate::store::conformance::run_with! { $fresh:
            what_is_created_is_read_back
            what_is_there_is_not_made_again_and_a_failed_change_leaves_nothing
            what_is_not_there_is_named
            pages_meet_every_application_once_in_order
            a_rotation_ends_the_older_keys_then_and_never_later
            a_revocation_holds_and_keeps_its_first_time
            a_change_of_tier_leaves_the_rest
            a_lease_gives_what_the_quota_leaves
            a_day_is_closed_once_a_later_one_is_opened
            units_given_back_are_leased_again_and_never_below_nothing
            many_leases_at_once_never_exceed_the_quota
        }

        #[test]
        fn no_schedule_grants_more_than_the_quota_or_reopens_a_day() {
            let (_kept, store) = $fresh();
            $crate::store::conformance::no_schedule_grants_more_than_the_quota_or_reopens_a_day(&store);
        }
    };
    ($fresh:path: $($check:ident)*) => {
        $(
            #[tokio::test]
            async fn $check() {
                let (_kept, store) = $fresh();
                $crate::store::conformance::$check(&store).await;
            }
        )*
    };
}
pub(super) use run_with;

const NOON: Wall = Wall::from_seconds(1_763_726_400); // 2025-11-21T12:00:00Z
const HOUR: std::time::Duration = std::time::Duration::from_hours(1);

pub(super) fn a_key(text: &str) -> StoredKey {
    StoredKey {
        digest: Digest::of(text),
        shown: text.chars().take(12).collect(),
        created_at: NOON,
        expires_at: None,
        revoked_at: None,
    }
}

pub(super) fn an_id() -> ApplicationId {
    ApplicationId::mint().unwrap()
}

pub(super) fn changing(application: ApplicationId, what: What) -> Change {
    Change { at: NOON, who: "a test".into(), application, what }
}

pub(super) fn creating(application: ApplicationId) -> Change {
    let key = a_key(&application.to_string());
    let what = What::Create {
        name: "Weather station".into(),
        tier: "free".into(),
        own: OwnLimits::default(),
        contact: None,
        note: None,
        key,
    };
    changing(application, what)
}

pub(super) async fn created(store: &dyn Store) -> ApplicationId {
    store.change(creating(an_id())).await.unwrap().id
}

pub(super) fn asking(application: ApplicationId, day: Day, want: u32, quota: u32) -> LeaseAsk {
    LeaseAsk { application, node: 1, day, want, quota }
}

fn giving(application: ApplicationId, day: Day, units: u32) -> Vec<GiveBack> {
    vec![GiveBack { application, node: 1, day, units }]
}

async fn units(store: &dyn Store, ask: LeaseAsk) -> u32 {
    match store.lease(ask).await.unwrap() {
        Lease::Granted { units, .. } => units,
        Lease::Closed { newest } => panic!("closed by {newest}"),
    }
}

pub(super) async fn what_is_created_is_read_back(store: &dyn Store) {
    let id = an_id();
    let own = OwnLimits { minute: Some(7), day: Some(u32::MAX) };
    let (contact, note) = (Some("ops@example.org".to_owned()), Some("line one\nline two '; --".to_owned()));
    let key = StoredKey { expires_at: Some(NOON.plus(HOUR)), ..a_key("first") };
    let wanted = StoredApplication {
        id,
        name: "Wetter, Ünïcode 🌦".into(),
        tier: "a tier nobody configured".into(),
        own,
        contact: contact.clone(),
        note: note.clone(),
        created_at: NOON,
        keys: vec![key.clone()],
        granted: 0,
    };
    let (name, tier) = (wanted.name.clone(), wanted.tier.clone());
    let what = What::Create { name, tier, own, contact, note, key };
    assert_eq!(store.change(changing(id, what)).await.unwrap(), wanted);
    assert_eq!(store.application(id, NOON.day()).await.unwrap(), Some(wanted.clone()));
    let page = store.page(None, 10, NOON.day()).await.unwrap();
    assert_eq!((page.applications, page.skipped, page.next), (vec![wanted], vec![], None));
}

pub(super) async fn what_is_there_is_not_made_again_and_a_failed_change_leaves_nothing(store: &dyn Store) {
    let (first, second) = (created(store).await, an_id());
    assert!(matches!(store.change(creating(first)).await, Err(StoreError::Exists(_))));
    let mut same_key = creating(second);
    let What::Create { key, .. } = &mut same_key.what else { unreachable!() };
    key.digest = Digest::of(&first.to_string());
    assert!(matches!(store.change(same_key).await, Err(StoreError::Exists(_))));
    assert_eq!(store.application(second, NOON.day()).await.unwrap(), None, "half a creation stayed");

    let again = What::Rotate { key: a_key(&first.to_string()), retire_others_at: NOON };
    assert!(matches!(store.change(changing(first, again)).await, Err(StoreError::Exists(_))));
    let application = store.application(first, NOON.day()).await.unwrap().unwrap();
    assert_eq!(application.keys, [a_key(&first.to_string())], "half a rotation stayed");
}

pub(super) async fn what_is_not_there_is_named(store: &dyn Store) {
    let (there, gone) = (created(store).await, an_id());
    let other = created(store).await;
    assert_eq!(store.application(gone, NOON.day()).await.unwrap(), None);
    let unknown = |outcome| matches!(outcome, Err(StoreError::UnknownApplication(id)) if id == gone);
    assert!(unknown(store.change(changing(gone, What::RevokeAll)).await));
    assert!(unknown(store.change(changing(gone, What::SetTier { tier: "pro".into() })).await));
    let lease = store.lease(asking(gone, NOON.day(), 1, 1)).await;
    assert!(matches!(lease, Err(StoreError::UnknownApplication(id)) if id == gone), "{lease:?}");
    assert_eq!(store.newest_day().await.unwrap(), None, "a refused lease opened a day");
    for digest in [Digest::of("never"), Digest::of(&other.to_string())] {
        let refused = store.change(changing(there, What::RevokeKey { digest })).await;
        assert!(matches!(refused, Err(StoreError::UnknownKey(id)) if id == there), "{refused:?}");
    }
}

pub(super) async fn pages_meet_every_application_once_in_order(store: &dyn Store) {
    assert!(store.page(None, 3, NOON.day()).await.unwrap().applications.is_empty());
    let mut wanted = Vec::new();
    for _ in 0..7 {
        wanted.push(created(store).await);
    }
    wanted.sort();
    for most in [1, 3, 7, 100] {
        let (mut met, mut after) = (Vec::new(), None);
        loop {
            let page = store.page(after, most, NOON.day()).await.unwrap();
            assert!(page.applications.len() <= most);
            met.extend(page.applications.iter().map(|application| application.id));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(met, wanted, "{most} a page");
    }
}

pub(super) async fn a_rotation_ends_the_older_keys_then_and_never_later(store: &dyn Store) {
    let id = created(store).await;
    let rotate = |key: StoredKey, at| changing(id, What::Rotate { key, retire_others_at: at });
    let soon = StoredKey { expires_at: Some(NOON.plus(HOUR)), created_at: NOON.plus(HOUR), ..a_key("soon") };
    store.change(rotate(soon, NOON.plus(3 * HOUR))).await.unwrap();
    let last = StoredKey { created_at: NOON.plus(2 * HOUR), ..a_key("last") };
    let now = store.change(rotate(last, NOON.plus(2 * HOUR))).await.unwrap();
    let ends: Vec<_> = now.keys.iter().map(|key| key.expires_at).collect();
    assert_eq!(ends, [Some(NOON.plus(2 * HOUR)), Some(NOON.plus(HOUR)), None], "oldest first");
    assert_eq!(store.application(id, NOON.day()).await.unwrap(), Some(now));
}

pub(super) async fn a_revocation_holds_and_keeps_its_first_time(store: &dyn Store) {
    let (id, other) = (created(store).await, created(store).await);
    let later = StoredKey { created_at: NOON.plus(HOUR), ..a_key("later") };
    store.change(changing(id, What::Rotate { key: later, retire_others_at: NOON.plus(HOUR) })).await.unwrap();
    let first = What::RevokeKey { digest: Digest::of(&id.to_string()) };
    let now = store.change(changing(id, first)).await.unwrap();
    let revoked = |now: &StoredApplication| now.keys.iter().map(|key| key.revoked_at).collect::<Vec<_>>();
    assert_eq!(revoked(&now), [Some(NOON), None]);
    let all = Change { at: NOON.plus(HOUR), ..changing(id, What::RevokeAll) };
    let now = store.change(all).await.unwrap();
    assert_eq!(revoked(&now), [Some(NOON), Some(NOON.plus(HOUR))]);
    let untouched = store.application(other, NOON.day()).await.unwrap().unwrap();
    assert_eq!(revoked(&untouched), [None]);
}

pub(super) async fn a_change_of_tier_leaves_the_rest(store: &dyn Store) {
    let id = created(store).await;
    let before = store.application(id, NOON.day()).await.unwrap().unwrap();
    units(store, asking(id, NOON.day(), 4, 10)).await;
    let after = store.change(changing(id, What::SetTier { tier: "pro".into() })).await.unwrap();
    assert_eq!(after, StoredApplication { tier: "pro".into(), granted: 4, ..before });
}

pub(super) async fn a_lease_gives_what_the_quota_leaves(store: &dyn Store) {
    let (id, other, day) = (created(store).await, created(store).await, NOON.day());
    let granted = |units, total| Lease::Granted { units, total };
    assert_eq!(store.newest_day().await.unwrap(), None);
    for (want, quota, given) in [
        (0, 10, granted(0, 0)),
        (4, 10, granted(4, 4)),
        (u32::MAX, 10, granted(6, 10)),
        (1, 10, granted(0, 10)),
        (5, 3, granted(0, 10)), // a smaller tier since
        (5, 12, granted(2, 12)),
        (u32::MAX, u32::MAX, granted(u32::MAX - 12, u64::from(u32::MAX))),
        (u32::MAX, u32::MAX, granted(0, u64::from(u32::MAX))),
    ] {
        assert_eq!(store.lease(asking(id, day, want, quota)).await.unwrap(), given, "{want} of {quota}");
    }
    assert_eq!(units(store, asking(other, day, 1, 10)).await, 1, "quotas are apart");
    let told = store.application(id, day).await.unwrap().unwrap();
    assert_eq!(told.granted, u64::from(u32::MAX));
    let yesterday = Day::from_number(day.number() - 1);
    assert_eq!(store.application(id, yesterday).await.unwrap().unwrap().granted, 0);
    let page = store.page(None, 10, day).await.unwrap();
    let granted: u64 = page.applications.iter().map(|application| application.granted).sum();
    assert_eq!(granted, u64::from(u32::MAX) + 1);
}

pub(super) async fn a_day_is_closed_once_a_later_one_is_opened(store: &dyn Store) {
    let (id, other) = (created(store).await, created(store).await);
    let (today, tomorrow) = (NOON.day(), Day::from_number(NOON.day().number() + 1));
    assert_eq!(units(store, asking(id, today, 3, 10)).await, 3);
    // A wish for nothing opens it as well, and for every application.
    assert_eq!(units(store, asking(other, tomorrow, 0, 0)).await, 0);
    assert_eq!(store.newest_day().await.unwrap(), Some(tomorrow));
    let closed = store.lease(asking(id, today, 1, 10)).await.unwrap();
    assert_eq!(closed, Lease::Closed { newest: tomorrow });
    store.give_back(giving(id, today, 3)).await.unwrap();
    assert_eq!(store.application(id, today).await.unwrap().unwrap().granted, 3, "a closed day moved");
    assert_eq!(units(store, asking(id, tomorrow, 99, 10)).await, 10);
}

pub(super) async fn units_given_back_are_leased_again_and_never_below_nothing(store: &dyn Store) {
    let (id, day) = (created(store).await, NOON.day());
    let later = Day::from_number(day.number() + 1);
    store.give_back(giving(id, day, 1)).await.unwrap();
    assert_eq!(units(store, asking(id, day, 10, 10)).await, 10);
    let mut back = giving(id, day, 4);
    back.extend(giving(an_id(), day, 4));
    back.extend(giving(id, later, 4));
    store.give_back(back).await.unwrap();
    assert_eq!(store.newest_day().await.unwrap(), Some(day), "units given back opened a day");
    assert_eq!(units(store, asking(id, day, 10, 10)).await, 4);
    store.give_back(giving(id, day, u32::MAX)).await.unwrap();
    assert_eq!(units(store, asking(id, day, 99, 10)).await, 10);
}

pub(super) async fn many_leases_at_once_never_exceed_the_quota(store: &dyn Store) {
    let (id, day) = (created(store).await, NOON.day());
    let asks = (0..300).map(|node| store.lease(LeaseAsk { node, ..asking(id, day, 3, 500) }));
    let given: u64 = join_all(asks)
        .await
        .into_iter()
        .map(|lease| match lease.unwrap() {
            Lease::Granted { units, .. } => u64::from(units),
            Lease::Closed { newest } => panic!("closed by {newest}"),
        })
        .sum();
    assert_eq!(given, 500);
    assert_eq!(store.application(id, day).await.unwrap().unwrap().granted, 500);
}

/// One call of a schedule; `day` counts from the schedule's first, back or forth.
#[derive(Clone, Copy, Debug)]
enum Call {
    Lease { day: u32, want: u32, quota: u32 },
    GiveBack { day: u32, units: u32 },
}

pub(super) fn no_schedule_grants_more_than_the_quota_or_reopens_a_day(store: &dyn Store) {
    let call = prop_oneof![
        3 => (0u32..4, 0u32..9, prop_oneof![Just(10u32), 0u32..20])
            .prop_map(|(day, want, quota)| Call::Lease { day, want, quota }),
        1 => (0u32..4, 1u32..6).prop_map(|(day, units)| Call::GiveBack { day, units }),
    ];
    // Calls of one round are under way together; rounds follow each other.
    let schedules = prop::collection::vec(prop::collection::vec(call, 1..6), 1..10);
    let next = AtomicU32::new(NOON.day().number());
    let config = Config { cases: 48, failure_persistence: None, ..Config::default() };
    let held = TestRunner::new(config).run(&schedules, |rounds| {
        let first = next.fetch_add(10, Relaxed); // the days of earlier schedules are closed
        wait(schedule_holds(store, first, rounds));
        Ok(())
    });
    held.unwrap();
}

async fn schedule_holds(store: &dyn Store, first: u32, rounds: Vec<Vec<Call>>) {
    let id = created(store).await;
    let (mut held, mut largest) = (BTreeMap::<u32, u64>::new(), BTreeMap::<u32, u64>::new());
    let mut newest = None;
    for round in rounds {
        // Only what is held is given back: a gateway has no other units.
        let mut back = Vec::new();
        for call in &round {
            if let Call::GiveBack { day, units } = *call {
                let of_day = held.entry(day).or_default();
                let units = u64::from(units).min(*of_day);
                *of_day -= units;
                let (day, units) = (Day::from_number(first + day), u32::try_from(units).unwrap());
                back.push(store.give_back(giving(id, day, units)));
            }
        }
        let asks = round.iter().filter_map(|call| match *call {
            Call::Lease { day, want, quota } => Some((day, want, quota)),
            Call::GiveBack { .. } => None,
        });
        let leases = join_all(asks.map(|(day, want, quota)| async move {
            (day, want, quota, store.lease(asking(id, Day::from_number(first + day), want, quota)).await)
        }));
        let (leases, back) = tokio::join!(leases, join_all(back));
        back.into_iter().collect::<Result<(), _>>().unwrap();
        let before = newest;
        for (day, want, quota, lease) in leases {
            let most = largest.entry(day).or_default();
            *most = u64::from(quota).max(*most);
            match lease.unwrap() {
                Lease::Granted { units, total } => {
                    assert!(before.is_none_or(|before| day >= before), "a closed day was opened again");
                    assert!(units <= want && total <= u64::from(quota).max(total - u64::from(units)));
                    *held.entry(day).or_default() += u64::from(units);
                    newest = newest.max(Some(day));
                }
                Lease::Closed { newest } => assert!(newest.number() > first + day),
            }
        }
        assert!(held.iter().all(|(day, held)| *held <= largest.get(day).copied().unwrap_or(0)), "{held:?}");
        let told = store.newest_day().await.unwrap();
        assert!(newest.is_none_or(|newest| told == Some(Day::from_number(first + newest))));
    }
}
