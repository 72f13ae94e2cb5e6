//! Conformance checks of closed applications, which count against the limit of their mailbox until the day ends.

use super::*;

const NEXT_NOON: Wall = Wall::from_seconds(1_763_726_400 + 86_400);

/// A new application of an owner, created at this time.
async fn created_at(
    store: &Store,
    at: Wall,
    owner: OwnerId,
    at_most: u32,
) -> Result<ApplicationId, StoreError> {
    let creation = StoreChange {
        at,
        ..owned(owner, at_most)
    };
    store.change(creation).await.map(|created| created.id)
}

/// A new application of an owner, with one unit granted today.
async fn used_application(store: &Store, owner: OwnerId, at_most: u32) -> ApplicationId {
    let id = created_at(store, NOON, owner, at_most).await.unwrap();
    assert_eq!(units(store, asking(id, NOON.day(), 1, 10)).await, 1);
    id
}

async fn close(store: &Store, id: ApplicationId) {
    make(store, id, ChangeKind::Close).await;
}

async fn closed_after_use(store: &Store, owner: OwnerId, at_most: u32) {
    close(store, used_application(store, owner, at_most).await).await;
}

async fn delete(store: &Store, owner: OwnerId) {
    changed(store, owner, OwnerChangeKind::Delete { in_own_name: true }).await;
}

/// Asserts that a new application is refused today.
async fn assert_used_today(store: &Store, owner: OwnerId, at_most: u32) {
    let refused = created_at(store, NOON, owner, at_most).await;
    assert_eq!(owner_refusal(refused), OwnerRefusal::QuotaUsedToday(owner));
}

pub async fn an_application_closed_after_use_counts_until_the_next_day(store: &Store) {
    let owner = signed_up(store, "ann@example.org").await.id;
    closed_after_use(store, owner, 1).await;
    assert_used_today(store, owner, 1).await;
    assert_eq!(applications(store).await.len(), 1, "half a creation stayed");
    created_at(store, NEXT_NOON, owner, 1).await.unwrap();
    let too_many = created_at(store, NEXT_NOON, owner, 1).await;
    assert_eq!(
        owner_refusal(too_many),
        OwnerRefusal::TooManyApplications(owner)
    );
}

pub async fn open_and_closed_applications_count_together(store: &Store) {
    let owner = signed_up(store, "ann@example.org").await.id;
    let other = signed_up(store, "bob@example.org").await.id;
    closed_after_use(store, owner, 2).await;
    used_application(store, owner, 2).await;
    assert_used_today(store, owner, 2).await;
    created_at(store, NOON, other, 1)
        .await
        .expect("others have separate limits");
    created_at(store, NEXT_NOON, owner, 2).await.unwrap();
}

pub async fn an_unused_application_can_be_replaced_at_once(store: &Store) {
    let owner = signed_up(store, "ann@example.org").await.id;
    close(store, created_at(store, NOON, owner, 1).await.unwrap()).await;
    let id = created_at(store, NOON, owner, 1).await.unwrap();
    // Returned units do not count as used.
    let leased = asking(id, NOON.day(), 4, 10);
    assert_eq!(units(store, leased).await, 4);
    close(store, id).await;
    assert_used_today(store, owner, 1).await;
    store.give_back(leased, 4).await.unwrap();
    created_at(store, NOON, owner, 1).await.unwrap();
}

pub async fn units_granted_after_the_closing_count(store: &Store) {
    let owner = signed_up(store, "ann@example.org").await.id;
    let id = created_at(store, NOON, owner, 1).await.unwrap();
    close(store, id).await;
    // Another gateway has not yet read the revocation of the keys.
    assert_eq!(units(store, asking(id, NOON.day(), 3, 10)).await, 3);
    assert_used_today(store, owner, 1).await;
}

pub async fn a_new_account_of_a_mailbox_gets_no_second_quota(store: &Store) {
    let first = signed_up(store, "Ann@example.org").await.id;
    closed_after_use(store, first, 1).await;
    delete(store, first).await;
    // The address is another spelling of the same mailbox.
    let second = signed_up(store, "ann@example.org").await.id;
    assert_ne!(first, second);
    assert_used_today(store, second, 1).await;
    delete(store, second).await;
    let third = signed_up(store, "ANN@example.org").await.id;
    assert_used_today(store, third, 1).await;
    created_at(store, NEXT_NOON, third, 1).await.unwrap();
}

pub async fn closed_applications_are_deleted_on_the_next_day(store: &Store) {
    let owner = signed_up(store, "ann@example.org").await.id;
    closed_after_use(store, owner, 1).await;
    open_day(store, NOON.day()).await;
    assert_eq!(delete_outdated(store).await, 0);
    assert_used_today(store, owner, 1).await;
    // The deleted records are the application and the owner's link and session.
    open_day(store, NEXT_NOON.day()).await;
    assert_eq!(delete_outdated(store).await, 3);
    created_at(store, NOON, owner, 1)
        .await
        .expect("nothing is left of the day before");
}
