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
            created_records_are_read_back
            existing_records_are_not_created_again_and_failed_changes_are_rolled_back
            missing_records_are_named
            pages_contain_every_application_once_in_order
            rotation_never_extends_older_keys
            revocation_is_final_and_keeps_its_first_time
            tier_change_keeps_everything_else
            added_key_keeps_the_other_keys
            limits_descriptions_and_expiries_change_alone
            every_change_is_in_the_audit_trail_newest_first
            last_use_is_stored_and_never_decreases
            lease_is_limited_by_the_remaining_quota
            a_day_is_closed_once_a_later_one_is_opened
            returned_units_are_leased_again_and_never_negative
            many_leases_at_once_never_exceed_the_quota
            promised_grace_is_a_hundredth_of_the_quota
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
