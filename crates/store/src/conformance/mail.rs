//! Conformance checks of the mail queue.

use futures_util::future::join_all;

use super::{owner_sessions::a_mail, *};

const MINUTE: std::time::Duration = std::time::Duration::from_mins(1);

fn claim(now: Wall, limit: usize) -> MailClaim {
    MailClaim::new(MailLane::Mail, now, now.plus(5 * MINUTE), limit)
}

async fn claimed(store: &Store, now: Wall, limit: usize) -> Vec<(String, u32)> {
    let mails = store.claim_mail(claim(now, limit)).await.unwrap();
    mails
        .into_iter()
        .map(|claimed| (claimed.mail.message_id, claimed.attempt))
        .collect()
}

async fn record(store: &Store, message_id: &str, attempt: u32, outcome: MailOutcome) {
    let attempt = MailAttempt {
        message_id: message_id.into(),
        attempt,
        outcome,
    };
    store.record_attempts(vec![attempt]).await.unwrap();
}

fn one(message_id: &str, attempt: u32) -> Vec<(String, u32)> {
    vec![(message_id.into(), attempt)]
}

async fn queue(store: &Store, mail: NewMail) {
    store.queue_mail(vec![mail]).await.unwrap();
}

pub async fn a_mail_is_claimed_as_it_was_queued_and_removed_once_sent(store: &Store) {
    assert_eq!(store.mail_backlog().await.unwrap(), MailBacklog::default());
    store.queue_mail(Vec::new()).await.unwrap();
    let mail = NewMail {
        kind: MailKind::Notice,
        subject: "Über \"Grenzen\"; --".into(),
        text: "one\n\ntwo".into(),
        ..a_mail("<id>@example.org", "Ann+x@example.org")
    };
    let other = NewMail {
        subject: "Another".into(),
        ..mail.clone()
    };
    queue(store, mail.clone()).await;
    queue(store, other).await;
    let expected = MailBacklog {
        mails: 1,
        oldest: Some(NOON),
        last_error: None,
    };
    assert_eq!(store.mail_backlog().await.unwrap(), expected);
    let found = store.claim_mail(claim(NOON, 9)).await.unwrap();
    assert_eq!(
        found,
        [ClaimedMail {
            mail: mail.clone(),
            attempt: 1
        }]
    );
    record(store, &mail.message_id, 1, MailOutcome::Remove).await;
    assert_eq!(store.mail_backlog().await.unwrap(), MailBacklog::default());
}

pub async fn a_notice_is_queued_with_one_audit_record_without_its_text(store: &Store) {
    let mails: Vec<NewMail> = ["ann@example.org", "bob@example.org"]
        .map(|to| a_mail(&format!("1.{to}"), to))
        .into();
    let notice = NewNotice {
        at: NOON,
        who: "cli:root".into(),
        recipients: 700,
        mails: mails.clone(),
    };
    store.queue_notice(notice).await.unwrap();
    assert_eq!(sent(store, MailLane::Mail).await, mails);
    let trail = trail(store).await;
    let [record] = trail.as_slice() else {
        panic!("{trail:?}")
    };
    let words = (
        record.who.as_str(),
        record.what.as_str(),
        record.application.as_str(),
    );
    assert_eq!(words, ("cli:root", "contact_accounts", ""));
    assert_eq!(
        (record.at, record.detail.as_str()),
        (NOON, "recipients: 700")
    );
}

pub async fn each_mail_is_claimed_by_one_reader(store: &Store) {
    let mails = (0..40)
        .map(|number| a_mail(&format!("{number:02}"), "ann@example.org"))
        .collect();
    store.queue_mail(mails).await.unwrap();
    let readers = join_all((0..8).map(|_| claimed(store, NOON, 4))).await;
    let mut met: Vec<String> = readers.into_iter().flatten().map(|(id, _)| id).collect();
    while let found @ [_, ..] = claimed(store, NOON, 4).await.as_slice() {
        met.extend(found.iter().map(|(id, _)| id.clone()));
    }
    met.sort();
    let all: Vec<String> = (0..40).map(|number| format!("{number:02}")).collect();
    assert_eq!(met, all, "each once");
}

pub async fn a_claim_expires_and_its_late_result_changes_nothing(store: &Store) {
    queue(store, a_mail("id", "ann@example.org")).await;
    assert_eq!(claimed(store, NOON, 9).await, one("id", 1));
    let later = NOON.plus(5 * MINUTE);
    assert_eq!(claimed(store, NOON.plus(4 * MINUTE), 9).await, []);
    assert_eq!(claimed(store, later, 9).await, one("id", 2));
    record(store, "id", 1, MailOutcome::Remove).await;
    let retry = MailOutcome::Retry {
        at: NOON,
        reason: "too late".into(),
    };
    record(store, "id", 1, retry).await;
    assert_eq!(claimed(store, later, 9).await, []);
    assert_eq!(store.mail_backlog().await.unwrap().last_error, None);
    record(store, "id", 2, MailOutcome::Remove).await;
    assert_eq!(queued(store).await, 0);
}

pub async fn a_failed_mail_is_due_again_after_its_delay_and_behind_older_ones(store: &Store) {
    queue(store, a_mail("first", "ann@example.org")).await;
    assert_eq!(claimed(store, NOON, 9).await, one("first", 1));
    let at = NOON.plus(2 * MINUTE);
    let reason = "450 busy".to_owned();
    record(store, "first", 1, MailOutcome::Retry { at, reason }).await;
    assert_eq!(
        store.mail_backlog().await.unwrap().last_error.as_deref(),
        Some("450 busy")
    );
    assert_eq!(claimed(store, NOON.plus(MINUTE), 9).await, []);
    let second = NewMail {
        created_at: NOON.plus(MINUTE),
        ..a_mail("second", "bob@example.org")
    };
    queue(store, second).await;
    assert_eq!(
        claimed(store, at, 1).await,
        one("second", 1),
        "this email has been due for longer"
    );
    assert_eq!(claimed(store, at, 1).await, one("first", 2));
}

pub async fn recipients_take_turns_and_named_ones_are_left_out(store: &Store) {
    let message = |id: &str, recipient: &str, minutes: u32| NewMail {
        kind: MailKind::Webhook,
        created_at: NOON.plus(minutes * MINUTE),
        ..a_mail(id, recipient)
    };
    let mut flood: Vec<_> = (10..99)
        .map(|number| message(&format!("flood.{number}"), "hook_1", 0))
        .collect();
    flood.push(message("second", "hook_2", 1));
    flood.push(message("third", "hook_12", 2));
    flood.push(message("operator", OPERATOR, 0));
    store.queue_mail(flood).await.unwrap();
    let now = NOON.plus(3 * MINUTE);
    let claimed = async |limit, each, except: &[&str]| {
        let claim = MailClaim {
            each,
            except: except.iter().map(ToString::to_string).collect(),
            ..MailClaim::new(MailLane::Owners, now, now.plus(MINUTE), limit)
        };
        let claimed = store.claim_mail(claim).await.unwrap();
        let ids = claimed.into_iter().map(|claimed| claimed.mail.message_id);
        ids.collect::<Vec<_>>()
    };
    assert_eq!(
        claimed(2, 2, &["hook_2"]).await,
        ["flood.10", "third"],
        "each recipient's first email before any second one"
    );
    assert_eq!(
        claimed(9, 2, &[]).await,
        ["flood.11", "flood.12", "second"],
        "at most two for each recipient"
    );
    assert!(claimed(9, 9, &["hook_1"]).await.is_empty());
}
