//! Conformance checks of owners, their links and sessions.

use futures_util::future::join_all;

use super::*;

const MINUTES: std::time::Duration = std::time::Duration::from_mins(15);

pub(super) fn a_link(token: &str, email: &str) -> NewSignInLink {
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

pub(super) fn a_mail(message_id: &str, recipient: &str) -> NewMail {
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

pub(super) fn using(token: &str, session: &str) -> SignIn {
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

/// Sends a link; a mailbox gets three.
pub(crate) async fn send(store: &dyn Store, token: &str, email: &str) -> bool {
    store
        .send_link(a_link(token, email), a_mail(token, email))
        .await
        .unwrap()
}

async fn send_owned(store: &dyn Store, token: String) -> bool {
    send(store, &token, "cat@example.org").await
}

/// Signs up with a new address.
pub(crate) async fn signed_up(store: &dyn Store, email: &str) -> StoredOwner {
    assert!(send(store, email, email).await);
    match store.sign_in(using(email, email)).await.unwrap() {
        SignInOutcome::SignedIn {
            owner,
            is_new: true,
        } => owner,
        other @ (SignInOutcome::SignedIn { .. }
        | SignInOutcome::InvalidLink
        | SignInOutcome::TermsRequired
        | SignInOutcome::Suspended) => panic!("{other:?}"),
    }
}

pub(crate) async fn changed(
    store: &dyn Store,
    owner: OwnerId,
    what: OwnerChangeKind,
) -> StoredOwner {
    store
        .change_owner(OwnerChange {
            at: NOON,
            who: "a test".into(),
            owner,
            what,
        })
        .await
        .unwrap()
}

pub(crate) fn owned(owner: OwnerId, at_most: u32) -> StoreChange {
    let mut creating = creating(an_id());
    let ChangeKind::Create { owner: of, .. } = &mut creating.what else {
        unreachable!()
    };
    *of = Some(Ownership { owner, at_most });
    creating
}

pub(crate) async fn a_link_signs_up_its_address_once_and_only_with_the_terms(store: &dyn Store) {
    assert!(send(store, "token", "Ann@example.org").await);
    let usable = store.usable_link(Digest::of("token"), NOON).await.unwrap();
    assert_eq!(
        usable,
        Some(UsableLink {
            email: "Ann@example.org".into(),
            owner: None
        })
    );
    let without = SignIn {
        accepted_terms: None,
        ..using("token", "session")
    };
    assert_eq!(
        store.sign_in(without).await.unwrap(),
        SignInOutcome::TermsRequired
    );
    assert_eq!(
        store.session(Digest::of("session"), NOON).await.unwrap(),
        None
    );

    let sign_in = using("token", "session");
    let wanted = StoredOwner {
        id: sign_in.new_owner,
        email: "Ann@example.org".into(),
        created_at: NOON,
        terms_version: "2026-01".into(),
        terms_accepted_at: NOON,
        tier: None,
        own: OwnLimits::NONE,
        suspended_at: None,
        notices: None,
        applications: Vec::new(),
    };
    let signed_in = store.sign_in(sign_in).await.unwrap();
    assert_eq!(
        signed_in,
        SignInOutcome::SignedIn {
            owner: wanted.clone(),
            is_new: true
        }
    );
    let session = store
        .session(Digest::of("session"), NOON)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (session.owner, session.created_at, session.expires_at),
        (wanted, NOON, NOON.plus(HOUR))
    );
    let again = store
        .sign_in(using("token", "another session"))
        .await
        .unwrap();
    assert_eq!(again, SignInOutcome::InvalidLink, "a used link");
    assert_eq!(
        store.usable_link(Digest::of("token"), NOON).await.unwrap(),
        None
    );
}

pub(crate) async fn a_second_link_of_a_mailbox_signs_in_its_owner(store: &dyn Store) {
    let owner = signed_up(store, "ann@example.org").await;
    assert!(send(store, "second", "ANN@example.org").await);
    let usable = store
        .usable_link(Digest::of("second"), NOON)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (usable.email.as_str(), usable.owner),
        ("ann@example.org", Some(owner.id))
    );
    let without = SignIn {
        accepted_terms: None,
        ..using("second", "second")
    };
    let signed_in = store.sign_in(without).await.unwrap();
    assert_eq!(
        signed_in,
        SignInOutcome::SignedIn {
            owner: owner.clone(),
            is_new: false
        }
    );
    assert!(send(store, "third", "ann@example.org").await);
    let newer = SignIn {
        accepted_terms: Some("2027-01".into()),
        ..using("third", "third")
    };
    let SignInOutcome::SignedIn {
        owner: updated,
        is_new: false,
    } = store.sign_in(newer).await.unwrap()
    else {
        panic!("not signed in")
    };
    assert_eq!(
        (updated.id, updated.terms_version.as_str()),
        (owner.id, "2027-01")
    );
}

pub(crate) async fn each_new_account_queues_one_message_to_the_operator(store: &dyn Store) {
    for token in ["first", "second"] {
        assert!(send(store, token, "ann@example.org").await);
        let message =
            NewMail::to_operator("sign_up", token, &serde_json::json!({"owner": 1}), NOON);
        let sign_in = |terms| SignIn {
            accepted_terms: terms,
            sign_up: Some(message.clone()),
            ..using(token, token)
        };
        for terms in [None, Some("2026-01".to_owned()), Some("2026-01".to_owned())] {
            store.sign_in(sign_in(terms)).await.unwrap();
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

pub(crate) async fn a_link_used_at_once_makes_one_session(store: &dyn Store) {
    assert!(send(store, "token", "ann@example.org").await);
    assert!(send(store, "other", "ann@example.org").await);
    let uses = (0..8).map(|number| {
        let token = if number % 2 == 0 { "token" } else { "other" };
        store.sign_in(using(token, &number.to_string()))
    });
    let outcomes: Vec<SignInOutcome> = join_all(uses)
        .await
        .into_iter()
        .map(Result::unwrap)
        .collect();
    let signed_in: Vec<(OwnerId, bool)> = outcomes
        .iter()
        .filter_map(|outcome| match outcome {
            SignInOutcome::SignedIn { owner, is_new } => Some((owner.id, *is_new)),
            SignInOutcome::InvalidLink
            | SignInOutcome::TermsRequired
            | SignInOutcome::Suspended => None,
        })
        .collect();
    assert_eq!(signed_in.len(), 2, "one for each link: {outcomes:?}");
    assert_eq!(signed_in[0].0, signed_in[1].0, "one mailbox has one owner");
    assert_eq!(signed_in.iter().filter(|(_, is_new)| *is_new).count(), 1);
}

pub(crate) async fn links_and_sessions_expire(store: &dyn Store) {
    assert!(send(store, "token", "ann@example.org").await);
    let end = NOON.plus(MINUTES);
    assert_eq!(
        store.usable_link(Digest::of("token"), end).await.unwrap(),
        None
    );
    let late = SignIn {
        at: end,
        ..using("token", "session")
    };
    assert_eq!(
        store.sign_in(late).await.unwrap(),
        SignInOutcome::InvalidLink
    );
    assert!(matches!(
        store.sign_in(using("token", "session")).await.unwrap(),
        SignInOutcome::SignedIn { .. }
    ));
    let found = async |at| {
        store
            .session(Digest::of("session"), at)
            .await
            .unwrap()
            .is_some()
    };
    assert!(found(NOON.plus(HOUR / 2)).await && !found(NOON.plus(HOUR)).await);
    // They are deleted on the next day.
    let open_day = async |day| {
        store
            .exchange(LedgerExchange {
                node: 1,
                today: day,
                reports: Vec::new(),
            })
            .await
            .unwrap();
        while store.delete_outdated().await.unwrap() > 0 {}
    };
    open_day(NOON.day()).await;
    assert!(found(NOON).await);
    open_day(NOON.day().next()).await;
    assert!(!found(NOON).await);
}

pub(crate) async fn a_mailbox_gets_no_more_links_than_its_allowance(store: &dyn Store) {
    for number in 0..3 {
        assert!(send(store, &number.to_string(), "ann@example.org").await);
    }
    assert!(!send(store, "fourth", "Ann@example.org").await);
    assert_eq!(
        store.usable_link(Digest::of("fourth"), NOON).await.unwrap(),
        None
    );
    assert_eq!(
        store.mail_backlog().await.unwrap().mails,
        3,
        "no mail without a link"
    );
    let at_once =
        join_all((0..8).map(|number| send_owned(store, format!("at once {number}")))).await;
    assert_eq!(
        at_once.into_iter().filter(|is_sent| *is_sent).count(),
        3,
        "of another mailbox at the same time"
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
    assert!(
        store
            .send_link(later, a_mail("later", "ann@example.org"))
            .await
            .unwrap()
    );
}

pub(crate) async fn sessions_end_one_by_one_or_together(store: &dyn Store) {
    let owner = signed_up(store, "ann@example.org").await;
    let other = signed_up(store, "bob@example.org").await;
    for token in ["one", "two"] {
        assert!(send(store, token, "ann@example.org").await);
        store.sign_in(using(token, token)).await.unwrap();
    }
    let found = async |token| {
        store
            .session(Digest::of(token), NOON)
            .await
            .unwrap()
            .map(|found| found.owner.id)
    };
    store.end_session(Digest::of("one")).await.unwrap();
    assert_eq!(
        (found("one").await, found("two").await),
        (None, Some(owner.id))
    );
    store.end_sessions(owner.id).await.unwrap();
    assert_eq!(
        (found("two").await, found("ann@example.org").await),
        (None, None)
    );
    assert_eq!(found("bob@example.org").await, Some(other.id));
}

pub(crate) async fn an_owner_has_no_more_applications_than_allowed(store: &dyn Store) {
    let owner = signed_up(store, "ann@example.org").await.id;
    let refused = |outcome: Result<StoredApplication, StoreError>, why| {
        let is_expected = matches!(&outcome, Err(StoreError::Owner(refusal)) if *refusal == why);
        assert!(is_expected, "{outcome:?}");
    };
    let at_once = join_all((0..6).map(|_| store.change(owned(owner, 2)))).await;
    let mut created: Vec<ApplicationId> = at_once
        .iter()
        .filter_map(|made| made.as_ref().ok())
        .map(|made| made.id)
        .collect();
    created.sort();
    assert_eq!(created.len(), 2);
    assert_eq!(
        store.owner(owner).await.unwrap().unwrap().applications,
        created
    );
    assert_eq!(
        store
            .page(None, 10, NOON.day())
            .await
            .unwrap()
            .applications
            .len(),
        2,
        "half a creation stayed"
    );
    refused(
        store.change(owned(owner, 2)).await,
        OwnerRefusal::TooManyApplications(owner),
    );
    let unknown = OwnerId::mint().unwrap();
    refused(
        store.change(owned(unknown, 2)).await,
        OwnerRefusal::Unknown(unknown),
    );
    changed(store, owner, OwnerChangeKind::Suspend).await;
    refused(
        store.change(owned(owner, 9)).await,
        OwnerRefusal::Suspended(owner),
    );
}

pub(crate) async fn a_closed_application_keeps_no_key_no_owner_and_no_description(
    store: &dyn Store,
) {
    let owner = signed_up(store, "ann@example.org").await.id;
    let id = store.change(owned(owner, 1)).await.unwrap().id;
    let description = Description::from_fn(|_| Some("https://ann.example.org/Ann's@".into()));
    make(
        store,
        id,
        ChangeKind::Describe {
            name: "Ann".into(),
            description,
        },
    )
    .await;
    let closed = make(store, id, ChangeKind::Close).await;
    assert_eq!(
        (closed.name.as_str(), closed.description),
        ("closed", Description::default())
    );
    assert!(closed.keys.iter().all(|key| key.revoked_at == Some(NOON)));
    assert_eq!(store.owner(owner).await.unwrap().unwrap().applications, []);
    let trail = store
        .audit(AuditQuery {
            limit: 10,
            ..AuditQuery::default()
        })
        .await
        .unwrap();
    let words: Vec<&str> = trail.iter().map(|record| record.what.as_str()).collect();
    assert_eq!(words, ["close", "describe", "create", "create_account"]);
    assert!(
        trail
            .iter()
            .all(|record| !record.detail.contains("Ann") && !record.detail.contains(['@', '/']))
    );
    assert!(
        trail[2].detail.ends_with(&format!(", owner {owner}")),
        "{}",
        trail[2].detail
    );
    assert!(
        store.change(owned(owner, 1)).await.is_ok(),
        "it no longer counts"
    );
}

pub(crate) async fn a_suspended_owner_has_no_sessions_and_cannot_sign_in(store: &dyn Store) {
    let owner = signed_up(store, "ann@example.org").await.id;
    let suspended = changed(store, owner, OwnerChangeKind::Suspend).await;
    assert_eq!(suspended.suspended_at, Some(NOON));
    assert_eq!(
        store
            .session(Digest::of("ann@example.org"), NOON)
            .await
            .unwrap(),
        None
    );
    assert!(send(store, "second", "ann@example.org").await);
    assert_eq!(
        store.sign_in(using("second", "second")).await.unwrap(),
        SignInOutcome::Suspended
    );
    assert_eq!(
        store.sign_in(using("second", "second")).await.unwrap(),
        SignInOutcome::InvalidLink
    );
    assert_eq!(
        changed(store, owner, OwnerChangeKind::Resume)
            .await
            .suspended_at,
        None
    );
    assert!(send(store, "third", "ann@example.org").await);
    assert!(matches!(
        store.sign_in(using("third", "third")).await.unwrap(),
        SignInOutcome::SignedIn { is_new: false, .. }
    ));
    let tier = Some("pro".to_owned());
    assert_eq!(
        changed(store, owner, OwnerChangeKind::SetTier(tier.clone()))
            .await
            .tier,
        tier
    );
    assert_eq!(store.owner(owner).await.unwrap().unwrap().tier, tier);
    assert_eq!(
        changed(store, owner, OwnerChangeKind::SetTier(None))
            .await
            .tier,
        None
    );
    let trail = store
        .audit(AuditQuery {
            limit: 4,
            ..AuditQuery::default()
        })
        .await
        .unwrap();
    let words: Vec<&str> = trail.iter().map(|record| record.what.as_str()).collect();
    assert_eq!(
        words,
        [
            "set_account_tier",
            "set_account_tier",
            "resume_account",
            "suspend_account"
        ]
    );
    signed_up(store, "bob@example.org").await;
    let own = AuditQuery {
        owner: Some(owner),
        limit: 9,
        ..AuditQuery::default()
    };
    let own = store.audit(own).await.unwrap();
    let words: Vec<&str> = own.iter().map(|record| record.what.as_str()).collect();
    assert_eq!(
        words,
        [
            "set_account_tier",
            "set_account_tier",
            "resume_account",
            "suspend_account",
            "create_account"
        ]
    );
}

pub(crate) async fn a_link_to_an_account_goes_to_its_address(store: &dyn Store) {
    signed_up(store, "ann@example.org").await;
    let tagged = "ann+x@example.org";
    let link = NewSignInLink {
        mailbox: "ann@example.org".into(),
        ..a_link("tagged", tagged)
    };
    assert!(
        store
            .send_link(link, a_mail("tagged", tagged))
            .await
            .unwrap()
    );
    let usable = store
        .usable_link(Digest::of("tagged"), NOON)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(usable.email, "ann@example.org");
    let claim = MailClaim::new(MailLane::Mail, NOON, NOON.plus(MINUTES), 9);
    let claimed = store.claim_mail(claim).await.unwrap();
    assert!(
        claimed
            .iter()
            .all(|claimed| claimed.mail.recipient == "ann@example.org"),
        "{claimed:?}"
    );
    assert!(
        claimed
            .iter()
            .any(|claimed| claimed.mail.message_id == "tagged")
    );
}

pub(crate) async fn a_deleted_owner_leaves_only_audit_records_without_the_address(
    store: &dyn Store,
) {
    let owner = signed_up(store, "ann@example.org").await;
    let kept = signed_up(store, "bob@example.org").await;
    let id = store.change(owned(owner.id, 1)).await.unwrap().id;
    let deleting = || OwnerChange {
        at: NOON,
        who: "a test".into(),
        owner: owner.id,
        what: OwnerChangeKind::Delete { in_own_name: false },
    };
    let refused = store.change_owner(deleting()).await;
    let expected = OwnerRefusal::HasApplications(owner.id);
    assert!(
        matches!(&refused, Err(StoreError::Owner(refusal)) if *refusal == expected),
        "{refused:?}"
    );
    assert!(send(store, "unused", "ann@example.org").await);
    make(store, id, ChangeKind::Close).await;
    assert_eq!(store.change_owner(deleting()).await.unwrap().id, owner.id);
    assert_eq!(store.owner(owner.id).await.unwrap(), None);
    assert_eq!(
        store
            .session(Digest::of("ann@example.org"), NOON)
            .await
            .unwrap(),
        None
    );
    assert_eq!(
        store.usable_link(Digest::of("unused"), NOON).await.unwrap(),
        None
    );
    assert_eq!(
        store.mail_backlog().await.unwrap().mails,
        1,
        "only Bob's mail is left"
    );
    assert_eq!(
        store
            .owners(OwnerQuery {
                limit: 9,
                ..OwnerQuery::default()
            })
            .await
            .unwrap(),
        [kept]
    );
    let again = store.change_owner(deleting()).await;
    assert!(
        matches!(again, Err(StoreError::Owner(OwnerRefusal::Unknown(_)))),
        "{again:?}"
    );
    let trail = store
        .audit(AuditQuery {
            limit: 20,
            ..AuditQuery::default()
        })
        .await
        .unwrap();
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
    assert_eq!(signed_up_again(store).await, (true, Vec::new()));
}

/// Whether the deleted address is new, and its applications.
async fn signed_up_again(store: &dyn Store) -> (bool, Vec<ApplicationId>) {
    assert!(send(store, "again", "ann@example.org").await);
    match store.sign_in(using("again", "again")).await.unwrap() {
        SignInOutcome::SignedIn { owner, is_new } => (is_new, owner.applications),
        other @ (SignInOutcome::InvalidLink
        | SignInOutcome::TermsRequired
        | SignInOutcome::Suspended) => {
            panic!("{other:?}")
        }
    }
}

pub(crate) async fn owners_are_found_by_address_and_application_in_pages(store: &dyn Store) {
    let mut all = Vec::new();
    for name in ["Ann", "bob", "cat"] {
        all.push(signed_up(store, &format!("{name}@example.org")).await.id);
    }
    let bob = all[1];
    let application = store.change(owned(bob, 1)).await.unwrap().id;
    all.sort();
    let found = async |query: OwnerQuery| -> Vec<OwnerId> {
        store
            .owners(query)
            .await
            .unwrap()
            .iter()
            .map(|owner| owner.id)
            .collect()
    };
    let of = |email: &str| OwnerQuery {
        email: Some(email.into()),
        limit: 9,
        ..OwnerQuery::default()
    };
    assert_eq!(found(of("example.org")).await, all);
    assert_eq!(found(of("BOB@")).await, [bob]);
    assert_eq!(found(of("%")).await, []);
    assert_eq!(found(of("_ob@")).await, []);
    let by_application = OwnerQuery {
        application: Some(application),
        limit: 9,
        ..OwnerQuery::default()
    };
    assert_eq!(found(by_application).await, [bob]);
    let unknown = OwnerQuery {
        application: Some(an_id()),
        limit: 9,
        ..OwnerQuery::default()
    };
    assert_eq!(found(unknown).await, []);
    assert_eq!(
        found(OwnerQuery {
            limit: 2,
            ..OwnerQuery::default()
        })
        .await,
        all[..2]
    );
    let rest = OwnerQuery {
        after: Some(all[1]),
        limit: 2,
        ..OwnerQuery::default()
    };
    assert_eq!(found(rest).await, all[2..]);
}

pub(crate) async fn an_owner_is_found_by_the_address_without_its_tag(store: &dyn Store) {
    signed_up(store, "bob@example.org").await;
    for (email, mailbox) in [
        ("Ann+x@example.org", "ann@example.org"),
        ("o'%_+y@a.example", "o'%_@a.example"),
    ] {
        let link = NewSignInLink {
            mailbox: mailbox.into(),
            ..a_link(email, email)
        };
        assert!(store.send_link(link, a_mail(email, email)).await.unwrap());
        let SignInOutcome::SignedIn {
            owner,
            is_new: true,
        } = store.sign_in(using(email, email)).await.unwrap()
        else {
            panic!("not signed up")
        };
        for text in [email, mailbox, &mailbox.to_uppercase()] {
            let query = OwnerQuery {
                email: Some(text.into()),
                limit: 9,
                ..OwnerQuery::default()
            };
            let ids: Vec<OwnerId> = store
                .owners(query)
                .await
                .unwrap()
                .iter()
                .map(|owner| owner.id)
                .collect();
            assert_eq!(ids, [owner.id], "{text}");
        }
    }
}
