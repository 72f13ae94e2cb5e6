//! Conformance checks for assigning owners to applications that an operator created.

use futures_util::future::join_all;

use super::{
    owner_sessions::{a_mail, using},
    *,
};

const WEEK: std::time::Duration = std::time::Duration::from_hours(7 * 24);

/// Assigns an application to a mailbox. The token of the link and the ids of the emails start with `name`.
fn attaching(id: ApplicationId, email: &str, name: &str, moves: bool) -> StoreChange {
    let mail = |what: &str| a_mail(&format!("{name} {what}"), "");
    let attachment = Attachment {
        new_owner: OwnerId::mint().unwrap(),
        email: email.into(),
        mailbox: email.to_lowercase(),
        link: Digest::of(name),
        valid_for: WEEK,
        invitation: mail("invitation"),
        attached: mail("attached"),
        moves,
        detached: mail("detached"),
    };
    changing(id, ChangeKind::Attach(Box::new(attachment)))
}

pub async fn attach(store: &Store, id: ApplicationId, email: &str, name: &str) -> StoredOwner {
    let change = attaching(id, email, name, false);
    store.change(change).await.unwrap();
    owner_of(store, id).await.unwrap()
}

async fn detach(store: &Store, id: ApplicationId) -> Result<StoredApplication, StoreError> {
    let mail = Box::new(a_mail("detached", ""));
    store.change(changing(id, ChangeKind::Detach(mail))).await
}

async fn owner_of(store: &Store, id: ApplicationId) -> Option<StoredOwner> {
    let query = OwnerQuery {
        application: Some(id),
        limit: 1,
        ..OwnerQuery::default()
    };
    store.owners(query).await.unwrap().pop()
}

/// The emails that were queued since the last call: recipients and ids.
async fn mails(store: &Store) -> Vec<String> {
    let queued = sent(store, MailLane::Mail).await.into_iter();
    queued
        .map(|mail| format!("{}: {}", mail.recipient, mail.message_id))
        .collect()
}

pub async fn a_mailbox_without_an_account_is_invited_once_and_accepts_once(store: &Store) {
    let [one, two] = [created(store).await, created(store).await];
    // Anyone can request links.
    assert!(send(store, "ordinary", "ann@example.org").await);
    mails(store).await;
    let invited = attach(store, one, "Ann@example.org", "1").await;
    assert!(invited.is_invited() && invited.terms_accepted_at.is_none());
    assert_eq!(mails(store).await, ["Ann@example.org: 1 invitation"]);
    assert_eq!(
        attach(store, two, "ann@example.org", "2").await.id,
        invited.id
    );
    assert_eq!(mails(store).await, ["Ann@example.org: 2 attached"]);
    let again = store.change(attaching(two, "ann@example.org", "3", false));
    assert!(matches!(again.await, Err(StoreError::Exists(_))));
    assert_eq!(mails(store).await, [""; 0]);

    for (token, at) in [("2", NOON), ("3", NOON), ("1", NOON.plus(WEEK))] {
        let link = store.usable_link(Digest::of(token), at).await.unwrap();
        assert_eq!(link, None, "{token}");
    }
    let without_terms = SignIn {
        accepted_terms: None,
        ..using("1", "session")
    };
    let refused = store.sign_in(without_terms).await.unwrap();
    assert_eq!(refused, SignInOutcome::TermsRequired);
    let uses = (0..4).map(|session| store.sign_in(using("1", &session.to_string())));
    let accepted: Vec<_> = join_all(uses)
        .await
        .into_iter()
        .filter_map(|outcome| match outcome.unwrap() {
            SignInOutcome::SignedIn { owner, .. } => Some(owner),
            SignInOutcome::InvalidLink
            | SignInOutcome::TermsRequired
            | SignInOutcome::Suspended => None,
        })
        .collect();
    let [owner] = &accepted[..] else {
        panic!("a link is used once: {accepted:?}")
    };
    let mut both = vec![one, two];
    both.sort();
    assert_eq!((owner.id, &owner.applications), (invited.id, &both));
    assert_eq!(owner.terms_accepted_at, Some(NOON));
    // An owner who has an account is attached without a link.
    attach(store, created(store).await, "ann@example.org", "4").await;
    assert_eq!(mails(store).await, ["Ann@example.org: 4 attached"]);
    let trail = &trail_of(store, one).await[0];
    let expected = format!("owner {}", owner.id);
    assert_eq!((trail.what.as_str(), &trail.detail), ("attach", &expected));
}

pub async fn an_application_is_taken_from_its_owner_only_on_demand_and_both_are_notified(
    store: &Store,
) {
    let ann = signed_up(store, "ann@example.org").await.id;
    let bob = signed_up(store, "bob@example.org").await.id;
    let pool = LimitChanges::default().with(LimitSetting::OwnerDay, 100);
    changed(store, ann, OwnerChangeKind::SetLimits(pool)).await;
    let id = application_of(store, ann, 1).await;
    let limited = found(store, id).await.own;
    assert!(!limited.is_empty());
    mails(store).await;
    let refused = store.change(attaching(id, "bob@example.org", "1", false));
    assert_eq!(owner_refusal(refused.await), OwnerRefusal::Owned(id, ann));
    let new = store.change(attaching(id, "new@example.org", "1", false));
    assert_eq!(owner_refusal(new.await), OwnerRefusal::Owned(id, ann));
    assert_eq!(store.owners(all()).await.unwrap().len(), 2);
    assert_eq!(mails(store).await, [""; 0]);

    let moved = store.change(attaching(id, "bob@example.org", "2", true));
    assert!(moved.await.unwrap().own.is_empty(), "limits of the account");
    assert_eq!(owner_of(store, id).await.unwrap().id, bob);
    let both = ["ann@example.org: 2 detached", "bob@example.org: 2 attached"];
    assert_eq!(mails(store).await, both);
    let detail = format!("owner {bob}, before {ann}");
    assert_eq!(trail_of(store, id).await[0].detail, detail);
    let back = store.change(attaching(id, "ann@example.org", "3", true));
    assert_eq!(back.await.unwrap().own, limited);

    changed(store, bob, OwnerChangeKind::Suspend).await;
    let suspended = store.change(attaching(id, "bob@example.org", "4", true));
    assert_eq!(owner_refusal(suspended.await), OwnerRefusal::Suspended(bob));
}

fn all() -> OwnerQuery {
    OwnerQuery {
        limit: 9,
        ..OwnerQuery::default()
    }
}

pub async fn a_detached_application_works_without_an_owner(store: &Store) {
    let [one, two] = [created(store).await, created(store).await];
    let invited = attach(store, one, "ann@example.org", "1").await;
    attach(store, two, "ann@example.org", "2").await;
    mails(store).await;
    let detached = detach(store, one).await.unwrap();
    assert_eq!(detached, found(store, one).await);
    assert_eq!(detached.keys[0].revoked_at, None);
    assert_eq!(owner_of(store, one).await, None);
    assert_eq!(mails(store).await, ["ann@example.org: detached"]);
    let refused = detach(store, one).await;
    assert_eq!(owner_refusal(refused), OwnerRefusal::NotOwned(one));
    assert!(store.owner(invited.id).await.unwrap().is_some());
    // An address that was only invited leaves no data behind.
    detach(store, two).await.unwrap();
    assert_eq!(store.owners(all()).await.unwrap(), []);
    assert_eq!(mails(store).await, ["ann@example.org: detached"]);
    let link = store.usable_link(Digest::of("1"), NOON).await.unwrap();
    assert_eq!(link, None);
    assert_eq!(
        words(&trail_of(store, two).await),
        ["detach", "attach", "create"]
    );
}

pub async fn a_created_application_can_have_an_invited_owner(store: &Store) {
    let id = an_id();
    let ChangeKind::Attach(attachment) = attaching(id, "ann@example.org", "1", false).what else {
        unreachable!()
    };
    let mut creating = creating(id);
    let ChangeKind::Create { owner, .. } = &mut creating.what else {
        unreachable!()
    };
    *owner = Some(Ownership::Attached(attachment));
    store.change(creating).await.unwrap();
    let owner = owner_of(store, id).await.unwrap();
    assert_eq!(mails(store).await, ["ann@example.org: 1 invitation"]);
    let detail = &trail_of(store, id).await[0].detail;
    assert!(
        detail.ends_with(&format!(", owner {}", owner.id)),
        "{detail}"
    );
}

pub async fn an_invited_address_that_stopped_mail_gets_none_until_it_accepts(store: &Store) {
    let [one, two] = [created(store).await, created(store).await];
    let invited = attach(store, one, "ann@example.org", "1").await.id;
    changed(store, invited, OwnerChangeKind::SetNotices(Vec::new())).await;
    mails(store).await;
    let mut attaching = attaching(two, "ann@example.org", "2", false);
    let ChangeKind::Attach(attachment) = &mut attaching.what else {
        unreachable!()
    };
    // The earlier link is too old to count.
    attachment.valid_for = HOUR;
    attaching.at = NOON.plus(WEEK);
    store.change(attaching).await.unwrap();
    let leak = LeakReport {
        digest: first_key(one).digest,
        shown: "sg".into(),
        places: vec!["a place".into()],
        since: NOON,
        expires_at: None,
        mail: a_mail("leak", ""),
    };
    make(store, one, ChangeKind::ReportLeak(leak)).await;
    detach(store, two).await.unwrap();
    assert_eq!(mails(store).await, [""; 0]);
    let (owner, _) = signed_in(store, using("1", "session")).await;
    assert_eq!((owner.notices, owner.applications), (None, vec![one]));
}
