//! Steps that several checks share: changes, days, owners with applications, mail, and the audit trail.

use std::fmt::Debug;

use super::*;

/// Makes a change that is not refused.
pub async fn make(store: &Store, id: ApplicationId, what: ChangeKind) -> StoredApplication {
    store.change(changing(id, what)).await.unwrap()
}

/// An existing application.
pub async fn found(store: &Store, id: ApplicationId) -> StoredApplication {
    let found = store.application(id, NOON.day()).await.unwrap();
    found.unwrap()
}

/// The applications of a store that has fewer than a hundred.
pub async fn applications(store: &Store) -> Vec<StoredApplication> {
    let page = store.page(None, 99, NOON.day()).await.unwrap();
    assert!(page.skipped.is_empty() && page.next.is_none(), "{page:?}");
    page.applications
}

/// A key that is created `hours` later than `a_key`.
pub fn a_later_key(text: &str, hours: u32) -> StoredKey {
    StoredKey {
        created_at: NOON.plus(hours * HOUR),
        ..a_key(text)
    }
}

/// The key that an application was created with.
pub fn first_key(id: ApplicationId) -> StoredKey {
    a_key(&id.to_string())
}

pub fn to_tier(tier: &str) -> ChangeKind {
    ChangeKind::SetTier { tier: tier.into() }
}

pub fn rotation(key: StoredKey, retire_others_at: Wall) -> ChangeKind {
    ChangeKind::Rotate {
        key,
        retire_others_at,
        allowance: None,
    }
}

pub fn addition(key: StoredKey) -> ChangeKind {
    ChangeKind::AddKey {
        key,
        allowance: None,
    }
}

/// Opens a day.
pub async fn open_day(store: &Store, day: Day) {
    let exchange = LedgerExchange {
        node: 1,
        today: day,
        reports: Vec::new(),
    };
    store.exchange(exchange).await.unwrap();
}

/// Deletes and merges outdated records. Returns the number of changed records.
pub async fn delete_outdated(store: &Store) -> u64 {
    let mut deleted = 0;
    loop {
        match store.delete_outdated().await.unwrap() {
            0 => return deleted,
            more => deleted += more,
        }
    }
}

/// The day that is `days` days before the day of `NOON`.
pub fn before(days: u32) -> Day {
    Day::from_number(NOON.day().number() - days)
}

/// A new application of an owner who may have `at_most` applications.
pub async fn application_of(store: &Store, owner: OwnerId, at_most: u32) -> ApplicationId {
    store.change(owned(owner, at_most)).await.unwrap().id
}

/// Makes a change to an owner, which may be refused.
pub async fn attempted(
    store: &Store,
    owner: OwnerId,
    what: OwnerChangeKind,
) -> Result<StoredOwner, StoreError> {
    let change = OwnerChange {
        at: NOON,
        who: "a test".into(),
        owner,
        what,
    };
    store.change_owner(change).await
}

/// The `OwnerRefusal` with which an operation failed.
pub fn owner_refusal<T: Debug>(outcome: Result<T, StoreError>) -> OwnerRefusal {
    match outcome {
        Err(StoreError::Owner(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

/// Signs in with a link. Returns the owner, and whether the account is new.
pub async fn signed_in(store: &Store, sign_in: SignIn) -> (StoredOwner, bool) {
    match store.sign_in(sign_in).await.unwrap() {
        SignInOutcome::SignedIn { owner, is_new } => (owner, is_new),
        other @ (SignInOutcome::InvalidLink
        | SignInOutcome::TermsRequired
        | SignInOutcome::Suspended) => panic!("{other:?}"),
    }
}

/// The number of queued emails, not counting messages to webhooks.
pub async fn queued(store: &Store) -> u64 {
    store.mail_backlog().await.unwrap().mails
}

/// The queued messages, ordered by recipient. They are removed as if they had been sent.
pub async fn sent(store: &Store, lane: MailLane) -> Vec<NewMail> {
    let until = NOON.plus(HOUR);
    let claim = MailClaim::new(lane, until, until, 99);
    let claimed = store.claim_mail(claim).await.unwrap();
    let attempt = |claimed: &ClaimedMail| MailAttempt {
        message_id: claimed.mail.message_id.clone(),
        attempt: claimed.attempt,
        outcome: MailOutcome::Remove,
    };
    let attempts = claimed.iter().map(attempt).collect();
    store.record_attempts(attempts).await.unwrap();
    let mut mails: Vec<NewMail> = claimed.into_iter().map(|claimed| claimed.mail).collect();
    mails.sort_by_key(|mail| (mail.recipient.clone(), mail.message_id.clone()));
    mails
}

/// The audit trail, newest record first.
pub async fn trail(store: &Store) -> Vec<AuditRecord> {
    let query = AuditQuery {
        limit: 99,
        ..AuditQuery::default()
    };
    store.audit(query).await.unwrap()
}

/// The audit trail of an application, newest record first.
pub async fn trail_of(store: &Store, id: ApplicationId) -> Vec<AuditRecord> {
    let query = AuditQuery {
        application: Some(id),
        limit: 99,
        ..AuditQuery::default()
    };
    store.audit(query).await.unwrap()
}

/// The kinds of the recorded changes.
pub fn words(trail: &[AuditRecord]) -> Vec<&str> {
    trail.iter().map(|record| record.what.as_str()).collect()
}
