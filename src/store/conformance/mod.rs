//! The conformance suite: checks that every engine must pass, written against the traits.
//!
//! An engine's tests call `conformance::run_with!(fresh)`, where `fresh()` returns an empty store and what keeps it
//! alive. Guarantees of a single engine are tested beside it.

mod changes;
mod days;

use super::*;
use crate::clock::Wall;
use crate::keys::Digest;

pub(super) use changes::*;
pub(super) use days::*;

/// Runs all checks against an engine.
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
            a_key_is_added_and_the_others_go_on
            limits_words_and_ends_change_and_nothing_else_does
            every_change_is_in_the_audit_trail_newest_first
            a_use_is_remembered_and_never_goes_back
            a_lease_gives_what_the_quota_leaves
            a_day_is_closed_once_a_later_one_is_opened
            units_given_back_are_leased_again_and_never_below_nothing
            many_leases_at_once_never_exceed_the_quota
            what_is_promised_for_bad_times_is_a_hundredth_of_the_quota_in_all
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
        last_used_at: None,
    }
}

pub(super) fn an_id() -> ApplicationId {
    ApplicationId::mint().unwrap()
}

pub(super) fn changing(application: ApplicationId, what: ChangeKind) -> StoreChange {
    StoreChange { at: NOON, who: "a test".into(), application, what }
}

pub(super) fn creating(application: ApplicationId) -> StoreChange {
    let key = a_key(&application.to_string());
    let what = ChangeKind::Create {
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

pub(super) fn asking(application: ApplicationId, day: Day, want: u32, quota: u32) -> LeaseRequest {
    LeaseRequest { application, node: 1, day, known: 0, want, quota, grace: 0 }
}

fn giving(application: ApplicationId, day: Day, units: u32) -> Vec<LeaseReturn> {
    vec![LeaseReturn { application, node: 1, day, units, grace: 0 }]
}

async fn units(store: &dyn Store, request: LeaseRequest) -> u32 {
    match store.lease(request).await.unwrap() {
        LeaseReply::Granted { units, .. } => units,
        LeaseReply::Closed { newest } => panic!("closed by {newest}"),
    }
}
