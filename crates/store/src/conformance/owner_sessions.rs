//! Conformance checks of owners and their links and sessions.

use futures_util::future::join_all;

use super::*;

const MINUTES: std::time::Duration = std::time::Duration::from_mins(15);

pub fn a_link(token: &str, email: &str) -> NewSignInLink {
    NewSignInLink {
        digest: Digest::of(token),
        email: email.into(),
        mailbox: email.to_lowercase(),
        created_at: NOON,
        expires_at: NOON.plus(MINUTES),
        allowance: LinkAllowance {
            since: Wall::default(),
            links: 3,
        },
    }
}

pub fn a_mail(message_id: &str, recipient: &str) -> NewMail {
    NewMail {
        kind: MailKind::SignIn,
        recipient: recipient.into(),
        subject: "Sign in".into(),
        text: "The link".into(),
        html: "<p>The link</p>".into(),
        webhook: String::new(),
        message_id: message_id.into(),
        created_at: NOON,
        expires_at: NOON.plus(MINUTES),
    }
}

pub fn using(token: &str, session: &str) -> SignIn {
    SignIn {
        at: NOON,
        link: Digest::of(token),
        session: Digest::of(session),
        expires_at: NOON.plus(HOUR),
        new_owner: OwnerId::mint().unwrap(),
        accepted_terms: Some("2026-01".into()),
        notice: None,
        sign_up: None,
    }
}

/// Sends a link. A mailbox can get three.
pub async fn send(store: &Store, token: &str, email: &str) -> bool {
    let mail = a_mail(token, email);
    store.send_link(a_link(token, email), mail).await.unwrap()
}

/// Signs up an owner with a new address.
pub async fn signed_up(store: &Store, email: &str) -> StoredOwner {
    assert!(send(store, email, email).await);
    let (owner, is_new) = signed_in(store, using(email, email)).await;
    assert!(is_new, "{owner:?}");
    owner
}

pub async fn changed(store: &Store, owner: OwnerId, what: OwnerChangeKind) -> StoredOwner {
    attempted(store, owner, what).await.unwrap()
}

pub fn owned(owner: OwnerId, at_most: u32) -> StoreChange {
    let mut creating = creating(an_id());
    let ChangeKind::Create { owner: of, .. } = &mut creating.what else {
        unreachable!()
    };
    *of = Some(Ownership::SignedUp { owner, at_most });
    creating
}

/// Uses a link without accepting terms.
fn without_terms(token: &str) -> SignIn {
    SignIn {
        accepted_terms: None,
        ..using(token, token)
    }
}

async fn usable(store: &Store, token: &str, at: Wall) -> Option<UsableLink> {
    store.usable_link(Digest::of(token), at).await.unwrap()
}

/// The owner of a session that has not expired.
async fn session(store: &Store, token: &str, at: Wall) -> Option<OwnerId> {
    let session = store.session(Digest::of(token), at).await.unwrap();
    session.map(|session| session.owner.id)
}

pub async fn a_link_signs_up_its_address_once_and_only_with_the_terms(store: &Store) {
    let email = "Ann@example.org".to_owned();
    assert!(send(store, "token", &email).await);
    let link = UsableLink {
        email: email.clone(),
        owner: None,
    };
    assert_eq!(usable(store, "token", NOON).await, Some(link));
    assert_eq!(
        store.sign_in(without_terms("token")).await.unwrap(),
        SignInOutcome::TermsRequired
    );
    assert_eq!(session(store, "token", NOON).await, None);

    let sign_in = using("token", "session");
    let wanted = StoredOwner {
        id: sign_in.new_owner,
        email,
        created_at: NOON,
        terms_version: Some("2026-01".into()),
        terms_accepted_at: Some(NOON),
        tier: None,
        own: OwnLimits::NONE,
        suspended_at: None,
        notices: None,
        applications: Vec::new(),
    };
    assert_eq!(signed_in(store, sign_in).await, (wanted.clone(), true));
    let session = store.session(Digest::of("session"), NOON).await.unwrap();
    let session = session.unwrap();
    assert_eq!(
        (session.owner, session.created_at, session.expires_at),
        (wanted, NOON, NOON.plus(HOUR))
    );
    let again = using("token", "another session");
    assert_eq!(
        store.sign_in(again).await.unwrap(),
        SignInOutcome::InvalidLink,
        "a used link"
    );
    assert_eq!(usable(store, "token", NOON).await, None);
}

pub async fn a_second_link_of_a_mailbox_signs_in_its_owner(store: &Store) {
    let owner = signed_up(store, "ann@example.org").await;
    assert!(send(store, "second", "ANN@example.org").await);
    let link = UsableLink {
        email: "ann@example.org".into(),
        owner: Some(owner.id),
    };
    assert_eq!(usable(store, "second", NOON).await, Some(link));
    assert_eq!(
        signed_in(store, without_terms("second")).await,
        (owner.clone(), false)
    );
    assert!(send(store, "third", "ann@example.org").await);
    let newer = SignIn {
        accepted_terms: Some("2027-01".into()),
        ..using("third", "third")
    };
    let (updated, is_new) = signed_in(store, newer).await;
    assert_eq!(
        (updated.id, updated.terms_version.as_deref(), is_new),
        (owner.id, Some("2027-01"), false)
    );
}

pub async fn each_new_account_queues_one_message_to_the_operator(store: &Store) {
    for token in ["first", "second"] {
        assert!(send(store, token, "ann@example.org").await);
        let message =
            NewMail::to_operator("sign_up", token, &serde_json::json!({"owner": 1}), NOON);
        for terms in [None, Some("2026-01".to_owned()), Some("2026-01".to_owned())] {
            let sign_in = SignIn {
                accepted_terms: terms,
                sign_up: Some(message.clone()),
                ..using(token, token)
            };
            store.sign_in(sign_in).await.unwrap();
        }
        let due = MailClaim::new(MailLane::Operator, NOON, NOON, 9);
        let queued = store.claim_mail(due).await.unwrap();
        let ids: Vec<_> = queued
            .iter()
            .map(|message| message.mail.message_id.as_str())
            .collect();
        assert_eq!(ids, ["sign_up.first@operator"], "{token}");
        assert_eq!(
            (queued[0].mail.recipient.as_str(), queued[0].mail.kind),
            (OPERATOR, MailKind::Webhook)
        );
    }
}

pub async fn a_link_used_at_once_makes_one_session(store: &Store) {
    assert!(send(store, "token", "ann@example.org").await);
    assert!(send(store, "other", "ann@example.org").await);
    let uses = (0..8).map(|number| {
        let token = if number % 2 == 0 { "token" } else { "other" };
        store.sign_in(using(token, &number.to_string()))
    });
    let signed_in: Vec<(OwnerId, bool)> = join_all(uses)
        .await
        .into_iter()
        .filter_map(|outcome| match outcome.unwrap() {
            SignInOutcome::SignedIn { owner, is_new } => Some((owner.id, is_new)),
            SignInOutcome::InvalidLink
            | SignInOutcome::TermsRequired
            | SignInOutcome::Suspended => None,
        })
        .collect();
    assert_eq!(signed_in.len(), 2, "one for each link: {signed_in:?}");
    assert_eq!(signed_in[0].0, signed_in[1].0, "one mailbox has one owner");
    assert_ne!(signed_in[0].1, signed_in[1].1, "it is new once");
}

pub async fn links_and_sessions_expire(store: &Store) {
    assert!(send(store, "token", "ann@example.org").await);
    let end = NOON.plus(MINUTES);
    assert_eq!(usable(store, "token", end).await, None);
    let late = SignIn {
        at: end,
        ..using("token", "token")
    };
    assert_eq!(
        store.sign_in(late).await.unwrap(),
        SignInOutcome::InvalidLink
    );
    signed_in(store, using("token", "token")).await;
    assert!(session(store, "token", NOON.plus(HOUR / 2)).await.is_some());
    assert_eq!(session(store, "token", NOON.plus(HOUR)).await, None);
    // Expired sessions are deleted on the next day.
    for (day, is_kept) in [(NOON.day(), true), (NOON.day().next(), false)] {
        open_day(store, day).await;
        delete_outdated(store).await;
        assert_eq!(session(store, "token", NOON).await.is_some(), is_kept);
    }
}

pub async fn a_mailbox_gets_no_more_links_than_its_allowance(store: &Store) {
    for number in 0..3 {
        assert!(send(store, &number.to_string(), "ann@example.org").await);
    }
    assert!(!send(store, "fourth", "Ann@example.org").await);
    assert_eq!(usable(store, "fourth", NOON).await, None);
    assert_eq!(queued(store).await, 3, "no mail without a link");
    let sends =
        (10..18).map(async |token: u32| send(store, &token.to_string(), "cat@example.org").await);
    let at_once = join_all(sends).await;
    assert_eq!(
        at_once.into_iter().filter(|is_sent| *is_sent).count(),
        3,
        "concurrent requests for another mailbox"
    );
    assert!(send(store, "other", "bob@example.org").await);
    let allowance = LinkAllowance {
        since: NOON.plus(HOUR),
        links: 3,
    };
    let later = NewSignInLink {
        allowance,
        ..a_link("later", "ann@example.org")
    };
    let mail = a_mail("later", "ann@example.org");
    assert!(store.send_link(later, mail).await.unwrap());
}

pub async fn sessions_end_one_by_one_or_together(store: &Store) {
    let owner = signed_up(store, "ann@example.org").await.id;
    let other = signed_up(store, "bob@example.org").await.id;
    for token in ["one", "two"] {
        assert!(send(store, token, "ann@example.org").await);
        signed_in(store, using(token, token)).await;
    }
    store.end_session(Digest::of("one")).await.unwrap();
    assert_eq!(session(store, "one", NOON).await, None);
    assert_eq!(session(store, "two", NOON).await, Some(owner));
    store.end_sessions(owner).await.unwrap();
    assert_eq!(session(store, "two", NOON).await, None);
    assert_eq!(session(store, "ann@example.org", NOON).await, None);
    assert_eq!(session(store, "bob@example.org", NOON).await, Some(other));
}

pub async fn an_owner_has_no_more_applications_than_allowed(store: &Store) {
    let owner = signed_up(store, "ann@example.org").await.id;
    let at_once = join_all((0..6).map(|_| store.change(owned(owner, 2)))).await;
    let mut created: Vec<ApplicationId> = at_once
        .iter()
        .filter_map(|made| made.as_ref().ok())
        .map(|made| made.id)
        .collect();
    created.sort();
    assert_eq!(created.len(), 2);
    let stored = store.owner(owner).await.unwrap().unwrap();
    assert_eq!(stored.applications, created);
    assert_eq!(applications(store).await.len(), 2, "half a creation stayed");
    let unknown = OwnerId::mint().unwrap();
    for (owner, at_most, is_suspended, refusal) in [
        (owner, 2, false, OwnerRefusal::TooManyApplications(owner)),
        (unknown, 2, false, OwnerRefusal::Unknown(unknown)),
        (owner, 9, true, OwnerRefusal::Suspended(owner)),
    ] {
        if is_suspended {
            changed(store, owner, OwnerChangeKind::Suspend).await;
        }
        let refused = store.change(owned(owner, at_most)).await;
        assert_eq!(owner_refusal(refused), refusal);
    }
}

pub async fn a_closed_application_keeps_no_key_no_owner_and_no_description(store: &Store) {
    let owner = signed_up(store, "ann@example.org").await.id;
    let id = application_of(store, owner, 1).await;
    let description = Description::from_fn(|_| Some("https://ann.example.org/Ann's@".into()));
    let describe = ChangeKind::Describe {
        name: "Ann".into(),
        description,
    };
    make(store, id, describe).await;
    let closed = make(store, id, ChangeKind::Close).await;
    assert_eq!(
        (closed.name.as_str(), closed.description),
        ("closed", Description::default())
    );
    assert!(closed.keys.iter().all(|key| key.revoked_at == Some(NOON)));
    assert_eq!(store.owner(owner).await.unwrap().unwrap().applications, []);
    let trail = trail(store).await;
    assert_eq!(
        words(&trail),
        ["close", "describe", "create", "create_account"]
    );
    assert!(
        trail
            .iter()
            .all(|record| !record.detail.contains("Ann") && !record.detail.contains(['@', '/']))
    );
    let detail = &trail[2].detail;
    assert!(detail.ends_with(&format!(", owner {owner}")), "{detail}");
    // The closed application no longer counts.
    application_of(store, owner, 1).await;
}

pub async fn a_suspended_owner_has_no_sessions_and_cannot_sign_in(store: &Store) {
    let owner = signed_up(store, "ann@example.org").await.id;
    let suspended = changed(store, owner, OwnerChangeKind::Suspend).await;
    assert_eq!(suspended.suspended_at, Some(NOON));
    assert_eq!(session(store, "ann@example.org", NOON).await, None);
    assert!(send(store, "second", "ann@example.org").await);
    for refusal in [SignInOutcome::Suspended, SignInOutcome::InvalidLink] {
        let refused = store.sign_in(using("second", "second")).await;
        assert_eq!(refused.unwrap(), refusal);
    }
    let resumed = changed(store, owner, OwnerChangeKind::Resume).await;
    assert_eq!(resumed.suspended_at, None);
    assert!(send(store, "third", "ann@example.org").await);
    let (_, is_new) = signed_in(store, using("third", "third")).await;
    assert!(!is_new);
    for tier in [Some("pro".to_owned()), None] {
        let changed = changed(store, owner, OwnerChangeKind::SetTier(tier.clone())).await;
        assert_eq!(changed.tier, tier);
        assert_eq!(store.owner(owner).await.unwrap(), Some(changed));
    }
    signed_up(store, "bob@example.org").await;
    let own = AuditQuery {
        owner: Some(owner),
        limit: 9,
        ..AuditQuery::default()
    };
    assert_eq!(
        words(&store.audit(own).await.unwrap()),
        [
            "set_account_tier",
            "set_account_tier",
            "resume_account",
            "suspend_account",
            "create_account"
        ]
    );
}

/// Sends a link to an address that belongs to a mailbox.
pub async fn send_to(store: &Store, email: &str, mailbox: &str) {
    let link = NewSignInLink {
        mailbox: mailbox.into(),
        ..a_link(email, email)
    };
    let mail = a_mail(email, email);
    assert!(store.send_link(link, mail).await.unwrap());
}

pub async fn a_link_to_an_account_goes_to_its_address(store: &Store) {
    signed_up(store, "ann@example.org").await;
    send_to(store, "ann+x@example.org", "ann@example.org").await;
    let usable = usable(store, "ann+x@example.org", NOON).await.unwrap();
    assert_eq!(usable.email, "ann@example.org");
    let mails = sent(store, MailLane::Mail).await;
    let ids = mails.iter().map(|mail| mail.message_id.as_str());
    assert!(
        ids.eq(["ann+x@example.org", "ann@example.org"]),
        "{mails:?}"
    );
    assert!(mails.iter().all(|mail| mail.recipient == "ann@example.org"));
}

pub async fn a_deleted_owner_leaves_only_audit_records_without_the_address(store: &Store) {
    let owner = signed_up(store, "ann@example.org").await.id;
    let kept = signed_up(store, "bob@example.org").await.id;
    let id = application_of(store, owner, 1).await;
    let deletion = || OwnerChangeKind::Delete { in_own_name: false };
    let refused = attempted(store, owner, deletion()).await;
    assert_eq!(owner_refusal(refused), OwnerRefusal::HasApplications(owner));
    assert!(send(store, "unused", "ann@example.org").await);
    make(store, id, ChangeKind::Close).await;
    assert_eq!(changed(store, owner, deletion()).await.id, owner);
    assert_eq!(store.owner(owner).await.unwrap(), None);
    assert_eq!(session(store, "ann@example.org", NOON).await, None);
    assert_eq!(usable(store, "unused", NOON).await, None);
    assert_eq!(queued(store).await, 1, "only Bob's mail is left");
    assert_eq!(found_owners(store, first(9)).await, [kept]);
    let again = attempted(store, owner, deletion()).await;
    assert_eq!(owner_refusal(again), OwnerRefusal::Unknown(owner));
    let trail = trail(store).await;
    assert!(
        trail
            .iter()
            .any(|record| record.what == "delete_account" && record.application.is_empty())
    );
    assert!(
        trail
            .iter()
            .all(|record| !record.detail.contains('@') && !record.who.contains('@'))
    );
    assert_eq!(signed_up(store, "ann@example.org").await.applications, []);
}
