//! Rows in exports, and rows of a replaced store that a restore keeps.

use super::*;
use crate::dump::TABLES;
use crate::{
    DAY_MINUTES, MailKind, MessageSubject, OwnerQuery, OwnerRefusal, RequestOutcome, RequestQuery,
    RequestStore as _, RequestTotal, StatusHistory, StatusMessage, StatusMinute, StatusStore as _,
    StoredOwner,
};

/// The lines of an export without the first and last one, which contain the time.
fn lines(directory: &TempDir) -> Vec<String> {
    let text = fs::read_to_string(exported(directory)).unwrap();
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines[1..lines.len() - 1].to_vec()
}

#[test]
fn exports_and_backups_contain_all_rows_of_every_exported_table() {
    let (directory, store) = fresh();
    wait(conformance::fill(&store));
    drop(store);
    edit(
        &directory,
        "INSERT INTO request_days SELECT '2025-11-19', application, endpoint, outcome, 3 FROM request_nodes WHERE node = 1",
    );
    let content = lines(&directory);
    for table in &TABLES {
        let opening = format!("{{\"{}\":", table.name);
        assert!(
            content.iter().any(|line| line.starts_with(&opening)),
            "{opening}"
        );
    }
    for from in [backed_up(&directory, "backup"), exported(&directory)] {
        let other = TempDir::new().unwrap();
        let imported = import(&other, &from, &RESTORE).unwrap();
        assert!(
            imported.aside.is_none() && imported.carried.gaps.len() == 1,
            "{imported:?}"
        );
        assert_eq!(
            fs::read_dir(other.path()).unwrap().count(),
            1,
            "the store alone"
        );
        let (added, same): (Vec<_>, Vec<_>) = lines(&other)
            .into_iter()
            .partition(|line| line.contains("import_store"));
        assert_eq!(same, content);
        assert!(
            added.len() == 1 && added[0].contains("the whole store, from"),
            "{added:?}"
        );
    }
}

#[test]
fn a_row_that_does_not_fit_its_table_is_refused_although_the_checksum_is_right() {
    let (directory, store) = fresh();
    wait(conformance::fill(&store));
    drop(store);
    let from = exported(&directory);
    let whole = fs::read_to_string(&from).unwrap();
    let (content, end) = whole.trim_end().rsplit_once('\n').unwrap();
    let counts = end.split(",\"sha256\"").next().unwrap();
    for (before, after, reason) in [
        (
            "\"https://example.org/?a=b&c\"}",
            "\"javascript:alert(1)\"}",
            "url is \"javascript",
        ),
        ("\"id\":\"app_", "\"id\":\"App_", "id is \"App_"),
        ("\"id\":\"own_", "\"id\":\"Own_", "id is \"Own_"),
        (
            "\"outcome\":\"ok\"",
            "\"outcome\":\"O K\"",
            "outcome is \"O K\"",
        ),
        (
            "\"endpoint\":\"index\"",
            "\"endpoint\":\"\"",
            "endpoint is \"\"",
        ),
        (
            "\"requests\":10",
            "\"requests\":18446744073709551615",
            "requests is 18",
        ),
        (
            "\"day\":\"2025-11-21\"",
            "\"day\":\"2025-99-99\"",
            "day is \"2025-99-99\"",
        ),
        (
            "\"granted\":20",
            "\"granted\":4294967296",
            "granted is 4294967296",
        ),
        ("\"granted\":20", "\"granted\":true", "granted is true"),
        (
            "\"state\":\"monitoring\"",
            "\"state\":\"unheard\"",
            "state is",
        ),
        ("\"is_fresh\":0,", "", "is_fresh is missing"),
        (
            "\"is_fresh\":0,",
            "\"is_fresh\":0,\"colour\":1,",
            "colour is unknown",
        ),
        (
            "{\"status_minutes\":",
            "{\"colours\":{},\"status_minutes\":",
            "it is not one row",
        ),
        (
            "{\"status_minutes\":",
            "{\"colours\":",
            "the table colours is unknown",
        ),
        ("\"shown\":\"", "\"shown\":null,\"name\":\"", "shown"),
    ] {
        let changed = content.replacen(before, after, 1) + "\n";
        assert_ne!(changed.trim_end(), content, "{before}");
        let digest = Digest::of(&changed);
        fs::write(
            &from,
            format!("{changed}{counts},\"sha256\":\"{digest}\"}}}}\n"),
        )
        .unwrap();
        let other = TempDir::new().unwrap();
        let refused = import(&other, &from, &RESTORE).unwrap_err().to_string();
        assert!(refused.contains(reason), "{refused}");
        assert_eq!(fs::read_dir(other.path()).unwrap().count(), 0, "{refused}");
    }
}

fn owners(directory: &TempDir) -> Vec<StoredOwner> {
    let limit = 9;
    let query = OwnerQuery {
        limit,
        ..OwnerQuery::default()
    };
    wait(opened(directory).owners(query)).unwrap()
}

#[test]
fn owners_of_a_backup_keep_their_applications_and_later_suspensions_and_choices() {
    let (directory, store) = fresh();
    let owner = wait(conformance::signed_up(&store, "Ann@example.org")).id;
    wait(store.change(conformance::owned(owner, 1))).unwrap();
    wait(conformance::signed_up(&store, "bob@example.org"));
    let backup = backed_up(&directory, "older.db");
    for what in [
        OwnerChangeKind::Suspend,
        OwnerChangeKind::SetNotices(vec![MailKind::Quota80]),
    ] {
        wait(conformance::changed(&store, owner, what));
    }
    drop(store);
    let before = owners(&directory);
    import(&directory, &backup, &RESTORE).unwrap();
    assert_eq!(owners(&directory), before);
    let suspended = before.iter().find(|found| found.id == owner).unwrap();
    assert!(suspended.suspended_at.is_some() && suspended.applications.len() == 1);
}

#[test]
fn sessions_links_and_queued_mail_of_a_backup_are_not_restored() {
    let (directory, store) = fresh();
    wait(conformance::signed_up(&store, "ann@example.org"));
    assert!(wait(conformance::send(&store, "unused", "bob@example.org")));
    drop(store);
    let backup = backed_up(&directory, "backup.db");
    let counts = || -> String {
        let counts = "SELECT (SELECT count(*) FROM owner_sessions) || ' ' || (SELECT count(*) FROM mail_queue)
                             || ' ' || count(*) || ' ' || count(used_at) FROM sign_in_links";
        let store = Connection::open(file(&directory)).unwrap();
        store.query_row(counts, [], |row| row.get(0)).unwrap()
    };
    assert_eq!(counts(), "1 2 2 1");
    import(&directory, &backup, &RESTORE).unwrap();
    assert_eq!(counts(), "0 0 2 2");
}

fn answered(
    store: &Embedded,
    application: ApplicationId,
    node: u64,
    outcome: RequestOutcome,
    requests: u64,
) {
    let total = RequestTotal {
        day: TODAY,
        application,
        endpoint: "models".into(),
        outcome,
        requests,
    };
    wait(store.record_requests(node, vec![total])).unwrap();
}

/// Requests of an application with the outcomes `ok` and `server_error`.
fn requests(directory: &TempDir, application: ApplicationId) -> (u64, u64) {
    let query = RequestQuery {
        application,
        first: TODAY,
        last: TODAY,
    };
    let sum = wait(opened(directory).requests(query)).unwrap().sum();
    assert_eq!(sum.total(), sum.ok + sum.server_error);
    (sum.ok, sum.server_error)
}

#[test]
fn requests_since_a_backup_are_kept_when_the_backup_is_imported() {
    let (directory, store) = fresh();
    let [one, other] = [(); 2].map(|()| wait(created(&store)));
    answered(&store, one, 1, RequestOutcome::Ok, 5);
    answered(&store, other, 1, RequestOutcome::Ok, 3);
    let backup = backed_up(&directory, "older.db");
    answered(&store, one, 1, RequestOutcome::Ok, 6);
    answered(&store, one, 2, RequestOutcome::Ok, 4);
    answered(&store, one, 2, RequestOutcome::ServerError, 1);
    drop(store);
    import(&directory, &backup, &RESTORE).unwrap();
    assert_eq!(requests(&directory, one), (10, 1));
    assert_eq!(requests(&directory, other), (3, 0));
}

const FIRST: u64 = 20_413 * DAY_MINUTES;

fn minutes(store: &Embedded, minutes: std::ops::Range<u64>, is_fresh: bool) {
    let minute = |minute| StatusMinute {
        minute: FIRST + minute,
        is_ready: true,
        is_fresh,
    };
    wait(store.record_minutes(minutes.map(minute).collect())).unwrap();
}

fn post(store: &Embedded, title: &str) -> StatusMessage {
    wait(conformance::posted(
        store,
        MessageSubject::New(title.into()),
    ))
}

fn status_page(directory: &TempDir) -> (StatusHistory, Vec<StatusMessage>) {
    let store = opened(directory);
    let history = wait(store.status_history(FIRST, FIRST + DAY_MINUTES)).unwrap();
    (history, wait(store.status_messages(10)).unwrap())
}

#[test]
fn the_status_page_keeps_what_came_after_an_imported_backup() {
    let (directory, store) = fresh();
    wait(created(&store));
    minutes(&store, 0..9, false);
    let first = post(&store, "Late scores");
    let backup = backed_up(&directory, "older.db");
    minutes(&store, 8..12, true);
    wait(conformance::posted(&store, MessageSubject::Known(first.id)));
    let another = post(&store, "Another");
    wait(conformance::posted(
        &store,
        MessageSubject::Known(another.id),
    ));
    drop(store);
    let before = status_page(&directory);
    import(&directory, &backup, &RESTORE).unwrap();
    assert_eq!(status_page(&directory), before);
    let day = &before.0.days[0];
    assert_eq!((day.ready, day.fresh, before.1.len()), (12, 4, 4));
}

#[test]
fn a_message_is_not_added_to_another_incident_with_its_number() {
    let (old, store) = fresh();
    wait(created(&store));
    let first = post(&store, "Of the old store");
    wait(conformance::posted(&store, MessageSubject::Known(first.id)));
    drop(store);
    let (new, store) = fresh();
    wait(created(&store));
    let kept = post(&store, "Of the new store");
    drop(store);
    import(&old, &backed_up(&new, "backup.db"), &RESTORE).unwrap();
    assert_eq!(status_page(&old).1, [kept]);
}

const MAILBOX: &str = "ann@example.org";

/// A store with an owner who closed a used application.
fn closed_after_use() -> (TempDir, Embedded, OwnerId) {
    let (directory, store) = fresh();
    let owner = wait(conformance::signed_up(&store, MAILBOX)).id;
    let id = wait(store.change(conformance::owned(owner, 1))).unwrap().id;
    wait(store.lease(asking(id, TODAY, 1, 10))).unwrap();
    wait(make(&store, id, ChangeKind::Close));
    (directory, store, owner)
}

#[test]
fn a_backup_contains_closed_applications() {
    let (directory, _store, owner) = closed_after_use();
    let restored = restored(&backed_up(&directory, "backup.db"));
    let refused = wait(opened(&restored).change(conformance::owned(owner, 1))).unwrap_err();
    assert!(
        matches!(refused, StoreError::Owner(OwnerRefusal::QuotaUsedToday(of)) if of == owner),
        "{refused}"
    );
}

#[test]
fn an_export_contains_neither_address_nor_digest_of_a_deleted_account() {
    let (directory, store, owner) = closed_after_use();
    let what = OwnerChangeKind::Delete { in_own_name: true };
    wait(conformance::changed(&store, owner, what));
    drop(store);
    let lines = exported(&directory);
    let text = fs::read_to_string(&lines).unwrap();
    assert!(
        text.contains(&owner.to_string()),
        "the audit trail is exported"
    );
    let digest = Digest::of(MAILBOX).to_string();
    assert!(!text.contains(MAILBOX) && !text.contains(&digest), "{text}");
    let restored = restored(&lines);
    assert!(maintenance::check(restored.path(), NOW).unwrap().is_sound());
}
