//! The conformance suite: checks that both engines must pass.
//!
//! An engine's tests call `conformance::run_with!(fresh, "package")`. `fresh()` returns an empty store and a guard that
//! keeps it alive. The literals name the Debian packages that the engine needs. A guarantee that only one engine makes
//! is tested with that engine.

mod attachments;
mod changes;
mod closed_applications;
mod contents;
mod days;
mod evidence;
mod feed;
mod fixtures;
mod grace;
mod leaks;
mod limits_until;
mod mail;
pub mod notices;
mod owner_changes;
mod owner_search;
mod owner_sessions;
mod reports;
mod request_totals;
mod status_page;
mod usage_lines;
mod webhooks;
mod windows;

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::sample::limits_set;
use scoregate_base::{
    clock::{Day, Wall},
    keys::{ApplicationId, Digest, OwnerId},
    limits::{LimitChanges, LimitSetting, NodeReport, NodeTotals, OwnLimits},
};

pub use attachments::*;
pub use changes::*;
pub use closed_applications::*;
pub use contents::*;
pub use days::*;
pub use evidence::*;
pub use feed::*;
pub use fixtures::*;
pub use grace::*;
pub use leaks::*;
pub use limits_until::*;
pub use mail::*;
pub use notices::*;
pub use owner_changes::*;
pub use owner_search::*;
pub use owner_sessions::*;
pub use reports::*;
pub use request_totals::*;
pub use status_page::*;
pub use usage_lines::*;
pub use webhooks::*;
pub use windows::*;

/// Runs all checks against an engine.
macro_rules! run_with {
    ($fresh:path $(, $package:literal)*) => {
        $crate::conformance::run_with! { $fresh, ($($package),*):
            created_records_are_read_back
            existing_records_are_not_created_again_and_failed_changes_are_rolled_back
            missing_records_are_named
            pages_contain_every_application_once_in_order
            all_applications_are_read_once_with_their_keys_and_units
            rotation_never_extends_older_keys
            rotation_without_overlap_revokes_older_keys
            revocation_is_final_and_keeps_its_first_time
            tier_change_keeps_everything_else
            added_key_keeps_the_other_keys
            of_concurrent_new_keys_one_meets_the_conditions
            limits_descriptions_and_expiries_change_alone
            limits_with_an_end_are_followed_by_those_of_before_the_first_of_them
            limits_without_an_end_and_the_last_revocation_leave_nothing_to_restore
            limits_of_an_account_are_those_of_its_present_and_new_applications
            of_concurrent_restorations_of_limits_one_is_made
            every_change_is_in_the_audit_trail_newest_first_without_secrets
            last_use_is_stored_and_never_decreases
            lease_is_limited_by_the_remaining_quota
            a_day_is_closed_once_a_later_one_is_opened
            returned_units_are_leased_again_and_never_negative
            many_leases_and_returns_at_once_never_exceed_the_quota
            a_grant_fits_into_the_month_and_a_return_leaves_it
            a_month_ends_with_its_last_day
            a_month_counts_its_days_before_and_while_no_limit_needs_it
            units_of_yesterday_are_returned_to_the_month
            a_final_report_finds_and_returns_units_whose_grant_was_not_answered
            a_closed_day_stays_closed_and_uncounted_after_returns
            leases_of_two_days_at_once_never_exceed_the_month
            days_of_one_exchange_share_their_month
            applications_of_an_owner_share_its_windows
            returns_of_an_attached_application_leave_the_units_of_its_owner
            a_share_of_grace_has_one_holder_until_its_next_process_returns_it
            claims_of_grace_made_at_once_get_shares_of_their_own
            a_claim_of_grace_for_a_future_day_keeps_the_shares_of_the_present_one
            the_feed_names_each_changed_application_once_in_order
            a_reader_of_the_feed_misses_no_concurrent_change
            a_position_ahead_of_the_feed_or_of_another_one_requires_a_reload
            requests_are_added_up_over_nodes_and_a_repeated_or_late_total_changes_nothing
            requests_are_read_by_day_oldest_first_within_the_bounds
            requests_of_closed_days_are_merged_and_take_no_reports
            requests_are_kept_for_92_days
            usage_of_a_day_is_its_requests_with_content_except_me_over_all_nodes
            a_closed_day_has_a_line_for_each_application_with_units
            a_day_is_open_until_all_its_reports_are_merged
            a_line_keeps_the_account_and_the_tier_of_its_day
            units_of_the_day_on_which_an_application_was_closed_have_its_account
            a_node_is_listed_with_its_last_report_until_it_is_removed
            a_minute_is_ready_if_any_gateway_stored_that_and_reports_may_be_repeated
            minutes_are_added_up_by_day_within_the_bounds
            minutes_are_kept_for_91_days_and_the_first_one_forever
            messages_of_an_incident_keep_its_title_and_are_listed_newest_first
            messages_of_open_incidents_are_listed_above_the_limit
            an_incident_that_is_unknown_or_resolved_takes_no_message
            every_message_has_an_audit_record_without_an_application
            messages_posted_at_once_get_numbers_of_their_own
            a_link_signs_up_its_address_once_and_only_with_the_terms
            each_new_account_queues_one_message_to_the_operator
            a_second_link_of_a_mailbox_signs_in_its_owner
            a_link_used_at_once_makes_one_session
            links_and_sessions_expire
            a_mailbox_gets_no_more_links_than_its_allowance
            sessions_end_one_by_one_or_together
            an_owner_has_no_more_applications_than_allowed
            a_closed_application_keeps_no_key_no_owner_and_no_description
            a_suspended_owner_has_no_sessions_and_cannot_sign_in
            a_suspended_owner_changes_no_application
            an_application_of_another_owner_is_unknown
            a_link_to_an_account_goes_to_its_address
            a_deleted_owner_leaves_only_audit_records_without_the_address
            owners_are_found_by_address_and_application_in_pages
            an_owner_is_found_by_the_address_without_its_tag
            a_mailbox_without_an_account_is_invited_once_and_accepts_once
            an_application_is_taken_from_its_owner_only_on_demand_and_both_are_notified
            a_detached_application_works_without_an_owner
            a_created_application_can_have_an_invited_owner
            an_invited_address_that_stopped_mail_gets_none_until_it_accepts
            an_application_closed_after_use_counts_until_the_next_day
            open_and_closed_applications_count_together
            an_unused_application_can_be_replaced_at_once
            units_granted_after_the_closing_count
            a_new_account_of_a_mailbox_gets_no_second_quota
            closed_applications_are_deleted_on_the_next_day
            a_mail_is_claimed_as_it_was_queued_and_removed_once_sent
            a_notice_is_queued_with_one_audit_record_without_its_text
            of_concurrent_notices_with_one_id_one_is_queued_and_none_after_it_was_sent
            ids_of_notices_are_known_for_40_days
            a_notice_is_queued_with_its_change_if_the_owner_wants_it
            owners_who_chose_it_get_a_notice_of_a_new_sign_in
            a_choice_of_notices_is_stored_and_audited
            units_that_a_live_gateway_holds_are_not_used_and_those_of_others_are
            a_quota_is_used_up_with_the_first_refusal_and_later_notices_about_a_part_are_not_due
            a_quota_is_that_of_the_application_or_of_its_tier
            each_window_has_notices_of_its_own
            verified_webhooks_get_a_notice_once_beside_the_mail
            webhooks_are_rotated_and_removed_with_their_messages
            keys_that_expire_soon_are_due_until_they_have_expired_or_are_revoked
            hours_of_two_nodes_become_one_day_and_a_second_merge_changes_nothing
            a_late_hour_is_added_and_a_day_is_compact_once_it_ended
            the_key_of_a_day_is_that_of_the_first_gateway
            days_are_read_by_application_and_range_oldest_first
            evidence_is_kept_for_40_days_its_keys_for_two_and_unmerged_hours_for_three
            a_leaked_key_is_revoked_with_a_mail_to_its_owner_and_a_record_of_each_place
            a_place_is_known_for_its_time_and_a_report_never_extends_a_key
            of_concurrent_reports_of_a_place_one_changes_the_key
            keys_are_found_with_their_applications
            each_mail_is_claimed_by_one_reader
            a_claim_expires_and_its_late_result_changes_nothing
            recipients_take_turns_and_named_ones_are_left_out
            a_failed_mail_is_due_again_after_its_delay_and_behind_older_ones
        }

        #[test]
        fn reports_are_applied_by_the_rules_and_no_day_is_opened_again() {
            needs!($($package),*);
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            let (_kept, store) = runtime.block_on($fresh());
            $crate::conformance::reports_are_applied_by_the_rules_and_no_day_is_opened_again(&store, &runtime);
        }
    };
    ($fresh:path, $packages:tt: $($check:ident)*) => {
        $(
            #[tokio::test]
            async fn $check() {
                needs! $packages;
                let (_kept, store) = $fresh().await;
                $crate::conformance::$check(&store).await;
            }
        )*
    };
}
pub(super) use run_with;

const NOON: Wall = Wall::from_seconds(1_763_726_400); // 2025-11-21T12:00:00Z
const HOUR: std::time::Duration = std::time::Duration::from_hours(1);

pub fn a_key(text: &str) -> StoredKey {
    StoredKey {
        created_at: NOON,
        name: Some(format!("The key of {text}")),
        ..sample::key(text)
    }
}

pub fn an_id() -> ApplicationId {
    ApplicationId::mint().unwrap()
}

pub fn changing(application: ApplicationId, what: ChangeKind) -> StoreChange {
    StoreChange {
        at: NOON,
        who: "a test".into(),
        owner: None,
        application,
        what,
        notice: None,
    }
}

pub fn creating(application: ApplicationId) -> StoreChange {
    changing(
        application,
        sample::creation("free", a_key(&application.to_string())),
    )
}

pub async fn created(store: &Store) -> ApplicationId {
    store.change(creating(an_id())).await.unwrap().id
}

/// A node's request for units.
#[derive(Clone, Copy, Debug)]
pub struct LeaseRequest {
    pub application: ApplicationId,
    pub node: u64,
    pub day: Day,
    pub want: u32,
    pub quota: u32,
}

/// The grant to a node that had no units before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseReply {
    Granted { units: u32, total: u64 },
    Closed { newest: Day },
}

pub const fn given(units: u32, total: u64) -> LeaseReply {
    LeaseReply::Granted { units, total }
}

/// A request from a new node.
pub fn asking(application: ApplicationId, day: Day, want: u32, quota: u32) -> LeaseRequest {
    static NODES: AtomicU64 = AtomicU64::new(1);
    LeaseRequest {
        application,
        node: NODES.fetch_add(1, Ordering::Relaxed),
        day,
        want,
        quota,
    }
}

impl LeaseRequest {
    /// An exchange with only this request, on its day.
    pub fn exchange(self) -> LedgerExchange {
        let Self {
            application,
            node,
            day,
            want,
            quota,
        } = self;
        let totals = NodeReport {
            known: NodeTotals::default(),
            granted: want,
            quota,
        };
        LedgerExchange {
            node,
            today: day,
            reports: vec![LedgerReport::of_units(application, day, totals)],
        }
    }
}

/// Sends one request at a time, for tests.
pub trait SingleLease: Ledger {
    fn lease(&self, request: LeaseRequest) -> StoreFuture<'_, LeaseReply> {
        Box::pin(async move {
            let reply = self.exchange(request.exchange()).await?;
            match reply.outcomes[..] {
                [ReportOutcome::Applied { node, granted, .. }] => Ok(LeaseReply::Granted {
                    units: node.granted,
                    total: granted,
                }),
                [ReportOutcome::Closed] => Ok(LeaseReply::Closed {
                    newest: reply.today,
                }),
                [ReportOutcome::UnknownApplication] => {
                    Err(StoreError::UnknownApplication(request.application))
                }
                _ => panic!("{reply:?}"),
            }
        })
    }

    /// Returns units that a request was granted.
    fn give_back(&self, request: LeaseRequest, units: u32) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let nothing = LeaseRequest {
                want: 0,
                quota: 0,
                ..request
            };
            let reply = self.exchange(nothing.exchange()).await?;
            let [ReportOutcome::Applied { node, .. }] = reply.outcomes[..] else {
                return Ok(());
            };
            let mut exchange = nothing.exchange();
            let known = NodeTotals {
                returned: node.returned + units.min(node.held()),
                ..node
            };
            exchange.reports[0].totals.known = known;
            self.exchange(exchange).await.map(drop)
        })
    }
}

impl<T: Ledger + ?Sized> SingleLease for T {}

pub async fn units(store: &Store, request: LeaseRequest) -> u32 {
    match store.lease(request).await.unwrap() {
        LeaseReply::Granted { units, .. } => units,
        LeaseReply::Closed { newest } => panic!("closed by {newest}"),
    }
}
