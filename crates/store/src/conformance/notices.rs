//! Conformance checks of notices to owners.

use futures_util::future::join_all;

use super::{owner_sessions::a_mail, *};
use scoregate_base::limits::{CalendarLimits, CalendarQuota, LimitRule, Limits, Window};

const DAY: std::time::Duration = std::time::Duration::from_hours(24);

/// The tiers. By default, accounts get notices about applications in `pro`.
fn tiers() -> Vec<NoticeTier> {
    let tier = |name: &str, day, defaults| NoticeTier {
        name: name.into(),
        limits: Limits {
            minute: 60,
            day,
            guard: 60,
            grace: 0,
            calendar: CalendarLimits::NONE,
        },
        defaults,
    };
    vec![
        tier("free", 10, Vec::new()),
        tier("pro", 100, notice_kinds(|row| row.by_default)),
    ]
}

fn notice(kind: MailKind, id: &str) -> OwnerNotice {
    let mail = NewMail {
        kind,
        ..a_mail(&format!("{id}@example.org"), "")
    };
    OwnerNotice {
        mail,
        tiers: tiers(),
    }
}

/// An owner who has an application in this tier and no queued mail.
pub async fn application_in(store: &Store, email: &str, tier: &str) -> (OwnerId, ApplicationId) {
    let owner = signed_up(store, email).await.id;
    let id = application_of(store, owner, 1).await;
    make(store, id, to_tier(tier)).await;
    mails(store).await;
    (owner, id)
}

/// The recipients and message ids of the queued emails. The emails are removed as if they had been sent.
async fn mails(store: &Store) -> Vec<[String; 2]> {
    let sent = sent(store, MailLane::Mail).await.into_iter();
    sent.map(|mail| [mail.recipient, mail.message_id]).collect()
}

async fn choose(store: &Store, owner: OwnerId, kinds: &[MailKind]) {
    changed(store, owner, OwnerChangeKind::SetNotices(kinds.to_vec())).await;
}

async fn due(store: &Store, kind: MailKind, now: Wall, live: &[u64]) -> Vec<DueNotice> {
    let query = NoticeQuery {
        kind,
        now,
        until: now.plus(7 * DAY),
        live: live.to_vec(),
        tiers: tiers(),
    };
    store.due_notices(query).await.unwrap()
}

/// The used units and the quota in each due quota notice.
pub async fn quotas(store: &Store, kind: MailKind, live: &[u64]) -> Vec<(u64, u32)> {
    let subject = |due: DueNotice| match due.subject {
        NoticeSubject::Quota { used, limit, .. } => (used, limit.quota),
        NoticeSubject::Key { .. } => panic!("{due:?}"),
    };
    due(store, kind, NOON, live)
        .await
        .into_iter()
        .map(subject)
        .collect()
}

async fn record(
    store: &Store,
    node: u64,
    application: ApplicationId,
    outcome: RequestOutcome,
    requests: u64,
) {
    let total = total(application, NOON.day(), ("models", outcome), requests);
    store.record_requests(node, vec![total]).await.unwrap();
}

pub async fn of_concurrent_notices_with_one_id_one_is_queued_and_none_after_it_was_sent(
    store: &Store,
) {
    let notices = |at| {
        vec![NewMail {
            created_at: at,
            ..a_mail("one@a.example", "ann@example.org")
        }]
    };
    for queued in join_all((0..8).map(|_| store.queue_once(notices(NOON)))).await {
        queued.unwrap();
    }
    assert_eq!(mails(store).await, [["ann@example.org", "one@a.example"]]);
    store.queue_once(notices(NOON.plus(HOUR))).await.unwrap();
    let other_domain = vec![a_mail("one@b.example", "ann@example.org")];
    store.queue_once(other_domain).await.unwrap();
    assert_eq!(mails(store).await, [[""; 2]; 0]);
}

pub async fn ids_of_notices_are_known_for_40_days(store: &Store) {
    for (days, is_queued) in [(0, true), (40, false), (41, true)] {
        open_day(store, Day::from_number(NOON.day().number() + days)).await;
        delete_outdated(store).await;
        let notice = a_mail("one@a.example", "ann@example.org");
        store.queue_once(vec![notice]).await.unwrap();
        assert_eq!(!mails(store).await.is_empty(), is_queued, "{days}");
    }
}

pub async fn a_notice_is_queued_with_its_change_if_the_owner_wants_it(store: &Store) {
    let (free, in_free) = application_in(store, "free@example.org", "free").await;
    let (pro, in_pro) = application_in(store, "pro@example.org", "pro").await;
    let change = async |application, what: ChangeKind, id: &str| {
        let change = StoreChange {
            notice: Some(notice(MailKind::KeyChanged, id)),
            ..changing(application, what)
        };
        drop(store.change(change).await);
        mails(store).await.concat()
    };
    let revoke = async |application, id| change(application, ChangeKind::RevokeAll, id).await;
    let nobody = [""; 0];
    assert_eq!(revoke(in_free, "1").await, nobody);
    assert_eq!(
        revoke(in_pro, "2").await,
        ["pro@example.org", "2@example.org"]
    );
    choose(store, free, &[MailKind::Quota100, MailKind::KeyChanged]).await;
    choose(store, pro, &[]).await;
    assert_eq!(
        revoke(in_free, "3").await,
        ["free@example.org", "3@example.org"]
    );
    assert_eq!(revoke(in_pro, "4").await, nobody);
    let unknown = ChangeKind::RevokeKey {
        digest: Digest::of("unknown"),
    };
    assert_eq!(
        change(in_free, unknown, "5").await,
        nobody,
        "a refused change"
    );
    assert_eq!(
        change(in_free, ChangeKind::Close, "6").await,
        ["free@example.org", "6@example.org"],
        "the former owner"
    );
    assert_eq!(revoke(created(store).await, "7").await, nobody, "no owner");
}

pub async fn owners_who_chose_it_get_a_notice_of_a_new_sign_in(store: &Store) {
    let with = |token: &str| SignIn {
        notice: Some(notice(MailKind::NewSignIn, token).mail),
        ..using(token, &format!("session {token}"))
    };
    let sign_in = async |token: &str| {
        assert!(send(store, token, "Ann@example.org").await);
        mails(store).await;
        let (owner, _) = signed_in(store, with(token)).await;
        (owner.id, mails(store).await.concat())
    };
    let (owner, first) = sign_in("first").await;
    assert_eq!(first, [""; 0], "the account is new");
    assert_eq!(sign_in("second").await.1, [""; 0], "nothing was chosen");
    choose(store, owner, &[MailKind::NewSignIn]).await;
    assert_eq!(
        sign_in("third").await.1,
        ["Ann@example.org", "third@example.org"]
    );
}

pub async fn a_choice_of_notices_is_stored_and_audited(store: &Store) {
    let owner = signed_up(store, "ann@example.org").await;
    assert_eq!(owner.notices, None);
    let chosen = vec![MailKind::Quota80, MailKind::NewSignIn];
    let after = changed(store, owner.id, OwnerChangeKind::SetNotices(chosen.clone())).await;
    assert_eq!(after.notices, Some(chosen));
    let none = changed(store, owner.id, OwnerChangeKind::SetNotices(Vec::new())).await;
    assert_eq!(none.notices, Some(Vec::new()));
    let query = AuditQuery {
        owner: Some(owner.id),
        limit: 2,
        ..AuditQuery::default()
    };
    let trail = store.audit(query).await.unwrap();
    let shown: Vec<_> = trail
        .into_iter()
        .map(|record| (record.what, record.detail))
        .collect();
    let record = |kinds: &str| {
        (
            "set_notices".to_owned(),
            format!("{}, notices {kinds}", owner.id),
        )
    };
    assert_eq!(shown, [record("none"), record("quota_80,new_sign_in")]);
}

pub async fn units_that_a_live_gateway_holds_are_not_used_and_those_of_others_are(store: &Store) {
    let (_, id) = application_in(store, "ann@example.org", "pro").await;
    let [live, dead] = [
        asking(id, NOON.day(), 50, 100),
        asking(id, NOON.day(), 40, 100),
    ];
    for request in [live, dead] {
        units(store, request).await;
    }
    record(store, live.node, id, RequestOutcome::Ok, 39).await;
    record(store, dead.node, id, RequestOutcome::Ok, 1).await;
    let nearly = async |live: &[u64]| quotas(store, MailKind::Quota80, live).await;
    assert_eq!(nearly(&[live.node]).await, [], "79 are used or lost");
    record(store, live.node, id, RequestOutcome::Ok, 40).await;
    assert_eq!(nearly(&[live.node]).await, [(80, 100)]);
    assert_eq!(nearly(&[live.node, dead.node]).await, []);
    assert_eq!(nearly(&[]).await, [(90, 100)]);
    assert_eq!(quotas(store, MailKind::Quota100, &[live.node]).await, []);
    let yesterday = before(1).start();
    assert_eq!(due(store, MailKind::Quota80, yesterday, &[]).await, []);
    store.give_back(dead, 39).await.unwrap();
    let reason = "the other gateway stopped and returned its units";
    assert_eq!(nearly(&[]).await, [], "{reason}");
}

pub async fn a_quota_is_used_up_with_the_first_refusal_and_later_notices_about_a_part_are_not_due(
    store: &Store,
) {
    let (owner, id) = application_in(store, "ann@example.org", "pro").await;
    let live = asking(id, NOON.day(), 100, 100);
    units(store, live).await;
    record(store, live.node, id, RequestOutcome::Ok, 81).await;
    record(store, live.node, id, RequestOutcome::RateLimited, 1).await;
    assert_eq!(quotas(store, MailKind::Quota100, &[live.node]).await, []);
    record(store, live.node, id, RequestOutcome::QuotaExceeded, 1).await;
    for kind in [MailKind::Quota100, MailKind::Quota80] {
        assert_eq!(quotas(store, kind, &[live.node]).await, [(81, 100)]);
    }
    let id = format!("quota_100.{id}.day.{}@example.org", NOON.day());
    let notice = a_mail(&id, "ann@example.org");
    store.queue_once(vec![notice]).await.unwrap();
    for kind in [MailKind::Quota100, MailKind::Quota80] {
        assert_eq!(quotas(store, kind, &[live.node]).await, []);
    }
    choose(store, owner, &[MailKind::KeyChanged]).await;
    assert_eq!(quotas(store, MailKind::Quota80, &[]).await, []);
}

pub async fn a_quota_is_that_of_the_application_or_of_its_tier(store: &Store) {
    let (_, id) = application_in(store, "ann@example.org", "pro").await;
    units(store, asking(id, NOON.day(), 40, 100)).await;
    assert_eq!(quotas(store, MailKind::Quota80, &[]).await, []);
    let own = OwnLimits::NONE.with(LimitSetting::Day, 50);
    make(store, id, limits_set(own, None)).await;
    assert_eq!(quotas(store, MailKind::Quota80, &[]).await, [(40, 50)]);
    make(store, id, to_tier("unknown")).await;
    assert_eq!(
        quotas(store, MailKind::Quota80, &[]).await,
        [],
        "nothing was chosen"
    );
}

/// Leases units of today that also count in these windows.
async fn lease_in(store: &Store, id: ApplicationId, node: u64, windows: &[CalendarQuota]) {
    let totals = NodeReport {
        granted: 80,
        quota: 1_000,
        ..NodeReport::default()
    };
    let report = LedgerReport {
        windows: windows.to_vec(),
        ..LedgerReport::of_units(id, NOON.day(), totals)
    };
    let exchange = LedgerExchange {
        node,
        today: NOON.day(),
        reports: vec![report],
    };
    store.exchange(exchange).await.unwrap();
}

/// The scopes, limits, used units and quotas in due notices about quotas.
async fn windows_due(store: &Store, live: &[u64]) -> Vec<String> {
    let due = due(store, MailKind::Quota80, NOON, live).await;
    let shown = due.into_iter().map(|due| match due.subject {
        NoticeSubject::Quota { used, limit, scope } => {
            format!(
                "{scope} {} {used} {}",
                limit.window.rule.name(),
                limit.quota
            )
        }
        NoticeSubject::Key { .. } => panic!("{due:?}"),
    });
    let mut shown: Vec<String> = shown.collect();
    shown.sort();
    shown
}

pub async fn each_window_has_notices_of_its_own(store: &Store) {
    let (owner, id) = application_in(store, "ann@example.org", "pro").await;
    let own = OwnLimits::NONE
        .with(LimitSetting::Day, 1_000)
        .with(LimitSetting::Month, 100);
    make(store, id, limits_set(own, None)).await;
    let other = store.change(owned(owner, 2)).await.unwrap().id;
    let account = OwnLimits::NONE.with(LimitSetting::OwnerDay, 200);
    for application in [id, other] {
        make(
            store,
            application,
            ChangeKind::SetTier { tier: "pro".into() },
        )
        .await;
        make(store, application, ChangeKind::SetOwnerLimits(account)).await;
    }
    let window = |rule, anchor, quota| CalendarQuota {
        window: Window::around(NOON.day(), rule, anchor).unwrap(),
        quota,
    };
    let owner_day = window(LimitRule::OwnerDay, 1, 200);
    let month = window(LimitRule::Month, 1, 100);
    // The window of an earlier anchor still counts, but there are no notices about it.
    let before = window(LimitRule::Month, 2, 90);
    lease_in(store, id, 1, &[before]).await;
    lease_in(store, id, 1, &[month, owner_day]).await;
    let of_month = format!("{id} month 80 100");
    assert_eq!(
        windows_due(store, &[]).await,
        std::slice::from_ref(&of_month)
    );
    lease_in(store, other, 2, &[owner_day]).await;
    let of_other = format!("{other} day 80 100");
    let of_owner = format!("{owner} owner_day 160 200");
    let mut all = vec![
        of_month,
        of_other.clone(),
        // There is one entry for each application. Both have the same message id.
        of_owner.clone(),
        of_owner,
    ];
    all.sort();
    assert_eq!(windows_due(store, &[]).await, all);
    assert_eq!(
        windows_due(store, &[1]).await,
        [of_other],
        "a live gateway holds the units of the application"
    );
    let mail = a_mail(
        &format!("quota_80.{owner}.owner_day.{}@example.org", NOON.day()),
        "ann@example.org",
    );
    store.queue_once(vec![mail]).await.unwrap();
    assert_eq!(windows_due(store, &[]).await.len(), 2);
}

pub async fn keys_that_expire_soon_are_due_until_they_have_expired_or_are_revoked(store: &Store) {
    let (_, id) = application_in(store, "ann@example.org", "pro").await;
    let key = first_key(id);
    let expires_at = NOON.plus(8 * DAY);
    let change = ChangeKind::SetExpiry {
        digests: vec![key.digest],
        at: Some(expires_at),
    };
    make(store, id, change).await;
    let keys = async |now| due(store, MailKind::KeyExpires, now, &[]).await;
    let expected = DueNotice {
        application: id,
        recipient: "ann@example.org".into(),
        subject: NoticeSubject::Key {
            shown: key.shown.clone(),
            expires_at,
        },
    };
    assert_eq!(keys(NOON).await, []);
    assert_eq!(keys(NOON.plus(DAY)).await, std::slice::from_ref(&expected));
    assert_eq!(keys(NOON.plus(7 * DAY + 23 * HOUR)).await, [expected]);
    assert_eq!(keys(expires_at).await, []);
    make(store, id, ChangeKind::RevokeAll).await;
    assert_eq!(keys(NOON.plus(DAY)).await, []);
}
