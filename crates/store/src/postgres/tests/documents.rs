//! Shared documents, with two gateways on one database.

use std::task::Poll;

use bytes::Bytes;

use super::*;
use crate::{AgreedRefresh, ClaimState, Publication, SharedDocumentState, SharedDocuments};

pub const MINUTE: Duration = Duration::from_mins(1);
pub const NAME: &str = "models";

pub type Shared = Arc<dyn SharedDocuments>;

pub fn documents(store: &Store, node: u64) -> Shared {
    store
        .shared_documents("https://backend.test".into(), node)
        .unwrap()
}

/// Two gateways, and the store of the first gateway.
pub async fn two_gateways() -> (Store, Shared, Shared) {
    let store = fresh().await;
    let one = documents(&store, 1);
    let two = documents(&another(&store).await, 2);
    (store, one, two)
}

async fn assert_no_content(store: &Store) {
    let stored = "SELECT name, number FROM {schema}.document_contents";
    assert_eq!(rows(store, stored).await, []);
}

/// Makes all claims and delays end now.
async fn let_claims_end(store: &Store) {
    execute(
        store,
        "UPDATE {schema}.documents SET held_until = 1 WHERE held_until IS NOT NULL",
    )
    .await;
}

pub fn a_document(number: u64, content: Option<&'static str>) -> Publication {
    Publication {
        number,
        content: content.map(|text| Bytes::from_static(text.as_bytes())),
        confirmed: NOON,
        due: NOON.plus(MINUTE),
        label: "label".into(),
    }
}

pub async fn claimed(documents: &Shared, after: u64) -> Option<u64> {
    documents
        .claim(NAME, after, MINUTE)
        .await
        .unwrap()
        .map(|(number, _)| number)
}

/// Publishes content, or confirms the published content, under a claim. Returns whether the publication was accepted.
pub async fn publish(documents: &Shared, number: u64, content: Option<&'static str>) -> bool {
    let document = a_document(number, content);
    documents.publish(NAME, document).await.unwrap()
}

/// Publishes content under a new claim.
pub async fn published(documents: &Shared, content: &'static str) -> u64 {
    let after = state(documents).await.number;
    let number = claimed(documents, after).await.unwrap();
    assert!(publish(documents, number, Some(content)).await);
    number
}

async fn release(documents: &Shared, number: u64, retry_after: Option<Duration>) {
    documents.release(NAME, number, retry_after).await.unwrap();
}

async fn withdraw(documents: &Shared) {
    documents.withdraw(vec![NAME.into()]).await.unwrap();
}

/// Agrees on a refresh at noon, which was revealed by the content with this number.
async fn agree(documents: &Shared, number: u64) {
    let refresh = AgreedRefresh {
        detected: NOON,
        expected: NOON,
    };
    let revealed = Some((NAME.into(), number));
    documents.agree(refresh, NOON, revealed).await.unwrap();
}

pub async fn state(documents: &Shared) -> SharedDocumentState {
    documents.state(NAME).await.unwrap()
}

pub async fn content(documents: &Shared, number: u64) -> Option<Bytes> {
    documents.content(NAME, number).await.unwrap()
}

#[tokio::test]
async fn a_document_that_was_never_claimed_has_number_zero_and_a_clock() {
    needs!("postgresql");
    let (_store, one, _) = two_gateways().await;
    let found = state(&one).await;
    assert_eq!(
        (found.number, found.claim, found.published, found.refresh),
        (0, ClaimState::Free, None, None)
    );
    let now = Clock::system().now().wall;
    assert!(found.clock.at.since(now).max(now.since(found.clock.at)) < MINUTE);
    assert!(found.clock.sent <= found.clock.received);
}

#[tokio::test]
async fn one_of_two_gateways_that_claim_at_once_gets_the_claim() {
    needs!("postgresql");
    let (_store, one, two) = two_gateways().await;
    let mut after = 0;
    for _ in 0..20 {
        let both = tokio::join!(claimed(&one, after), claimed(&two, after));
        let ((Some(number), None) | (None, Some(number))) = both else {
            panic!("{both:?}")
        };
        assert!(number > after);
        let held = state(&one).await;
        assert!(
            matches!(held.claim, ClaimState::Held(left) if left <= MINUTE && left > MINUTE / 2)
        );
        assert_eq!(held.number, number);
        release(&one, number, None).await;
        after = number;
    }
}

#[tokio::test]
async fn a_published_document_is_read_by_the_other_gateway_under_its_number_only() {
    needs!("postgresql");
    let (_store, one, two) = two_gateways().await;
    let first = published(&one, "first").await;
    let found = state(&two).await;
    let document = found.published.unwrap();
    assert_eq!((found.number, found.claim), (first, ClaimState::Free));
    assert_eq!(
        (document.number, document.confirmed, document.due),
        (first, NOON, NOON.plus(MINUTE))
    );
    assert_eq!(document.label, "label");
    assert_eq!(content(&two, first).await.unwrap(), "first");
    let second = published(&two, "second").await;
    assert_eq!(
        (content(&one, first).await, content(&one, second).await),
        (None, Some("second".into()))
    );
}

#[tokio::test]
async fn a_publication_repeated_after_a_lost_reply_is_true_and_changes_nothing() {
    needs!("postgresql");
    let (_store, one, two) = two_gateways().await;
    let number = published(&one, "first").await;
    let before = state(&two).await;
    assert!(publish(&one, number, Some("first")).await);
    assert_eq!(state(&two).await.published, before.published);
    let next = claimed(&two, before.number).await.unwrap();
    assert!(publish(&one, number, Some("first")).await);
    assert_eq!(
        (state(&one).await.number, content(&two, number).await),
        (next, Some("first".into()))
    );
}

#[tokio::test]
async fn a_claim_ends_at_its_deadline_by_the_clock_of_the_database() {
    needs!("postgresql");
    let (store, one, two) = two_gateways().await;
    let late = claimed(&one, 0).await.unwrap();
    assert_eq!(claimed(&two, late).await, None);
    let_claims_end(&store).await;
    assert_eq!(state(&two).await.claim, ClaimState::Free);
    assert_eq!(
        claimed(&two, late - 1).await,
        None,
        "there is a newer claim"
    );
    let next = claimed(&two, late).await.unwrap();
    assert!(!publish(&one, late, Some("late")).await);
    release(&one, late, Some(MINUTE)).await;
    let found = state(&one).await;
    assert_eq!((found.number, found.published), (next, None));
    assert!(
        matches!(found.claim, ClaimState::Held(_)),
        "{:?}",
        found.claim
    );
    assert_no_content(&store).await;
}

#[tokio::test]
async fn a_publication_after_the_deadline_counts_and_prevents_claims_based_on_the_state_before() {
    needs!("postgresql");
    let (store, one, two) = two_gateways().await;
    published(&one, "first").await;
    let late = claimed(&one, state(&one).await.number).await.unwrap();
    let_claims_end(&store).await;
    let before = state(&two).await;
    assert!(publish(&one, late, Some("late")).await);
    assert_eq!(
        claimed(&two, before.number).await,
        None,
        "it would confirm the previous document"
    );
    let found = state(&two).await;
    assert_eq!(
        (found.published.unwrap().number, content(&two, late).await),
        (late, Some("late".into()))
    );
    assert!(claimed(&two, found.number).await.is_some());
}

#[tokio::test]
async fn the_next_claim_after_a_failure_waits_for_the_end_of_the_delay() {
    needs!("postgresql");
    let (store, one, two) = two_gateways().await;
    let failed = claimed(&one, 0).await.unwrap();
    release(&one, failed, Some(MINUTE)).await;
    assert!(matches!(state(&two).await.claim, ClaimState::Failed(left) if left <= MINUTE));
    assert_eq!(claimed(&two, failed).await, None);
    let_claims_end(&store).await;
    assert_eq!(state(&two).await.claim, ClaimState::Free);
    let next = claimed(&two, failed).await.unwrap();
    release(&two, next, None).await;
    assert_eq!(state(&one).await.claim, ClaimState::Free);
    release(&one, next, Some(MINUTE)).await;
    assert_eq!(
        state(&one).await.claim,
        ClaimState::Free,
        "the claim has ended"
    );
}

#[tokio::test]
async fn a_confirmation_keeps_the_content_and_is_refused_once_the_content_is_missing() {
    needs!("postgresql");
    let (store, one, two) = two_gateways().await;
    let number = claimed(&one, 0).await.unwrap();
    assert!(
        !publish(&one, number, None).await,
        "there is nothing to confirm"
    );
    assert!(publish(&one, number, Some("first")).await);
    let confirming = claimed(&two, number).await.unwrap();
    let later = NOON.plus(MINUTE);
    let confirmed = Publication {
        confirmed: later,
        label: "newer".into(),
        ..a_document(confirming, None)
    };
    assert!(two.publish(NAME, confirmed.clone()).await.unwrap());
    let found = state(&one).await;
    let document = found.published.unwrap();
    assert_eq!(
        (found.number, document.number, document.confirmed),
        (confirming, number, later)
    );
    assert_eq!(
        (document.label.as_str(), content(&one, number).await),
        ("newer", Some("first".into()))
    );

    // Only older content and the content of another document remain.
    execute(
        &store,
        "INSERT INTO {schema}.document_contents SELECT scope, 'other', number, content FROM {schema}.document_contents;
         UPDATE {schema}.document_contents SET number = 1 WHERE name = 'models'",
    )
    .await;
    assert_eq!(content(&one, number).await, None);
    let again = claimed(&two, confirming).await.unwrap();
    assert!(
        !two.publish(
            NAME,
            Publication {
                number: again,
                ..confirmed
            }
        )
        .await
        .unwrap()
    );
    assert!(
        matches!(state(&one).await.claim, ClaimState::Held(_)),
        "the claim continues"
    );
    assert!(publish(&two, again, Some("second")).await);
    assert_eq!(content(&one, again).await.unwrap(), "second");
}

#[tokio::test]
async fn a_withdrawn_document_is_gone_and_a_claim_in_flight_publishes_nothing() {
    needs!("postgresql");
    let (store, one, two) = two_gateways().await;
    let number = published(&one, "first").await;
    let flying = claimed(&one, number).await.unwrap();
    two.withdraw(vec![NAME.into(), "unknown".into()])
        .await
        .unwrap();
    let found = state(&one).await;
    assert_eq!((found.claim, found.published), (ClaimState::Free, None));
    assert!(found.number > flying);
    assert_eq!(content(&one, number).await, None);
    assert!(!publish(&one, flying, Some("late")).await);
    assert!(!publish(&one, flying, None).await);
    agree(&one, number).await;
    assert_eq!(state(&two).await.published, None);
    assert_no_content(&store).await;
    published(&two, "second").await;
}

#[tokio::test]
async fn the_document_that_reveals_a_refresh_is_confirmed_at_it_and_its_confirmation_only_moves_forward()
 {
    needs!("postgresql");
    let (_store, one, two) = two_gateways().await;
    let number = published(&one, "first").await;
    let dates = async || {
        state(&one)
            .await
            .published
            .map(|found| (found.confirmed, found.due))
            .unwrap()
    };
    let revealed = async |minutes: u32, number| {
        let detected = NOON.plus(MINUTE * minutes);
        let refresh = AgreedRefresh {
            detected,
            expected: detected.plus(MINUTE),
        };
        two.agree(refresh, detected, Some((NAME.into(), number)))
            .await
            .unwrap();
    };
    revealed(1, number + 1).await;
    assert_eq!(dates().await, (NOON, NOON.plus(MINUTE)), "another content");
    revealed(8, number).await;
    assert_eq!(
        dates().await,
        (NOON.plus(MINUTE * 8), NOON.plus(MINUTE * 9))
    );
    agree(&two, number).await;
    assert_eq!(
        dates().await,
        (NOON.plus(MINUTE * 8), NOON.plus(MINUTE * 9)),
        "by the stored refresh"
    );
}

#[tokio::test]
async fn gateways_agree_on_the_first_detection_of_a_refresh_and_on_the_next_refresh() {
    needs!("postgresql");
    let (store, one, two) = two_gateways().await;
    assert_eq!(one.refresh().await.unwrap().0, None);
    let at = |minutes: u32| AgreedRefresh {
        detected: NOON.plus(MINUTE * minutes),
        expected: NOON.plus(MINUTE * (minutes + 60)),
    };
    let since = |minutes: u32| NOON.plus(MINUTE * minutes);
    assert_eq!(one.agree(at(10), since(5), None).await.unwrap(), at(10));
    for (same, reason) in [(11, "later"), (10, "at once"), (9, "earlier")] {
        assert_eq!(
            two.agree(at(same), since(5), None).await.unwrap(),
            at(10),
            "detected {reason}"
        );
    }
    assert_eq!(two.agree(at(70), since(65), None).await.unwrap(), at(70));
    assert_eq!(one.refresh().await.unwrap().0, Some(at(70)));
    assert_eq!(state(&one).await.refresh, Some(at(70)));
    let elsewhere = store
        .shared_documents("https://other.test".into(), 1)
        .unwrap();
    assert_eq!(elsewhere.refresh().await.unwrap().0, None);
    published(&one, "first").await;
    assert_eq!(
        elsewhere.state(NAME).await.unwrap().published,
        None,
        "backends share nothing"
    );
}

#[tokio::test]
async fn all_who_wait_get_a_hint_of_each_event_also_between_two_waits_and_after_a_lost_connection()
{
    needs!("postgresql");
    let (store, one, two) = two_gateways().await;
    // The first hint is sent when listening starts, because earlier notifications were not received.
    one.published().await.unwrap();
    for event in 0..4 {
        let mut waits = [one.published(), one.published()];
        for wait in &mut waits {
            assert!(
                matches!(futures_util::poll!(wait.as_mut()), Poll::Pending),
                "no hint is left over"
            );
        }
        let unpolled = one.published();
        match event {
            0 => assert_ne!(published(&two, "content").await, 0),
            1 => {
                let number = claimed(&two, state(&two).await.number).await.unwrap();
                release(&two, number, None).await;
            }
            2 => withdraw(&two).await,
            _ => agree(&two, 0).await,
        }
        unpolled.await.unwrap();
        for wait in waits {
            wait.await.unwrap();
        }
    }
    let wait = one.published();
    execute(&store, END_LISTENER).await;
    wait.await.unwrap();
}

#[tokio::test]
async fn the_runtime_role_shares_documents_and_cannot_change_their_tables() {
    needs!("postgresql");
    let runtime = runtime_role(&config()).await;
    let store = open_by_clock(&runtime).await;
    let one = documents(&store, 1);
    one.published().await.unwrap();
    let number = published(&one, "first").await;
    assert_eq!(content(&one, number).await.unwrap(), "first");
    let confirming = claimed(&one, number).await.unwrap();
    assert!(publish(&one, confirming, None).await);
    agree(&one, number).await;
    one.refresh().await.unwrap();
    let failing = claimed(&one, confirming).await.unwrap();
    release(&one, failing, Some(MINUTE)).await;
    withdraw(&one).await;
    store.delete_outdated().await.unwrap();
    for refused in [
        "TRUNCATE {schema}.document_contents",
        "DROP TABLE {schema}.document_contents",
        "ALTER TABLE {schema}.documents ADD COLUMN note text",
        "ALTER TABLE {schema}.document_contents SET LOGGED",
        "DROP TABLE {schema}.backend_refreshes",
    ] {
        assert!(attempt(&store, refused).await.is_err(), "{refused}");
    }
}

#[tokio::test]
async fn a_schema_with_the_longest_name_notifies_of_documents_and_changes() {
    needs!("postgresql");
    let schema = format!("{:x<63}", new_schema());
    let config = DatabaseConfig {
        schema: SchemaName::parse(&schema).unwrap(),
        ..config()
    };
    create_tables(config.clone()).await;
    let store = open_by_clock(&config).await;
    let one = documents(&store, 1);
    one.published().await.unwrap();
    let wait = one.published();
    published(&one, "first").await;
    wait.await.unwrap();
    created(&store).await;
    store.changed().await;
}
