//! Rows in exports, and rows of a replaced store that a restore transfers.

use super::*;
use crate::{
    MailKind, MessageSubject, OwnerQuery, OwnerRefusal, RequestQuery, StatusMessage, StatusMinute,
    StoredApplication, dump::TABLES, minute_of,
};

/// The lines of an export, except the first and the last one, which contain the time.
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
        "INSERT INTO request_days SELECT '2025-11-19', application, endpoint, outcome, 3 FROM request_nodes WHERE node = 1;
        INSERT INTO usage_terms SELECT '2025-11-19', id, NULL, tier FROM applications",
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
        assert_eq!(files_in(&other), 1, "the store alone");
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
fn the_exported_columns_and_keys_are_those_of_the_tables() {
    let (directory, store) = fresh();
    drop(store);
    let tables = Connection::open(file(&directory)).unwrap();
    let mut columns = tables
        .prepare("SELECT name, pk FROM pragma_table_info(?1)")
        .unwrap();
    for table in &TABLES {
        let found: Vec<(String, usize)> = columns
            .query_map([table.name], |row| {
                Ok((row.get(0)?, row.get::<_, u32>(1)? as usize))
            })
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let exported = table.columns();
        let exported = exported.iter().enumerate().map(|(index, column)| {
            let is_key = index < table.key;
            (column.name.to_owned(), if is_key { index + 1 } else { 0 })
        });
        assert_eq!(found, exported.collect::<Vec<_>>(), "{}", table.name);
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
        assert_eq!(files_in(&other), 0, "{refused}");
    }
}

/// The lines of a table that a restore transfers.
fn kept_lines(directory: &TempDir, table: &str) -> Vec<String> {
    let opening = format!("{{\"{table}\":");
    let mut lines = lines(directory);
    lines.retain(|line| line.starts_with(&opening));
    lines
}

/// The requests of each application.
fn kept_requests(directory: &TempDir) -> Vec<String> {
    let store = opened(directory);
    let sum = |found: StoredApplication| {
        let query = RequestQuery {
            application: found.id,
            first: TODAY,
            last: TODAY,
        };
        format!("{:?}", wait(store.requests(query)).unwrap().sum())
    };
    wait(applications(&store)).into_iter().map(sum).collect()
}

#[test]
fn accounts_requests_and_the_status_page_keep_what_came_after_an_imported_backup() {
    let (directory, store) = fresh();
    wait(conformance::fill(&store));
    let backup = backed_up(&directory, "older.db");
    let state = || {
        let [owners, minutes, messages] = ["owners", "status_minutes", "status_messages"]
            .map(|table| kept_lines(&directory, table));
        [owners, minutes, messages, kept_requests(&directory)]
    };
    let older = state();
    wait(change_everything(&store));
    drop(store);
    let newer = state();
    for (older, newer) in older.iter().zip(&newer) {
        assert_ne!(older, newer, "the test would prove nothing");
    }
    import(&directory, &backup, &RESTORE).unwrap();
    assert_eq!(state(), newer);
}

/// Suspends the owners, changes their selection of notices, and adds requests, minutes and messages.
async fn change_everything(store: &Store) {
    let query = OwnerQuery {
        limit: 9,
        ..OwnerQuery::default()
    };
    for owner in store.owners(query).await.unwrap() {
        let chosen = OwnerChangeKind::SetNotices(vec![MailKind::Quota100]);
        for what in [OwnerChangeKind::Suspend, chosen] {
            conformance::changed(store, owner.id, what).await;
        }
    }
    for application in applications(store).await {
        for node in 2..4 {
            let requests = conformance::answered(application.id, 50);
            store.record_requests(node, requests).await.unwrap();
        }
    }
    let now = minute_of(NOW);
    let minutes = (now - 5..now + 5).map(|minute| StatusMinute {
        minute,
        is_ready: true,
        is_fresh: true,
    });
    store.record_minutes(minutes.collect()).await.unwrap();
    for subject in [
        MessageSubject::Known(1),
        MessageSubject::New("Another".into()),
    ] {
        conformance::posted(store, subject).await;
    }
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

fn post(store: &Store, title: &str) -> StatusMessage {
    let subject = MessageSubject::New(title.into());
    wait(conformance::posted(store, subject))
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
    let messages = wait(opened(&old).status_messages(10)).unwrap();
    assert_eq!(messages, [kept]);
}

const MAILBOX: &str = "ann@example.org";

/// A store with an owner who closed a used application.
fn closed_after_use() -> (TempDir, Store, OwnerId) {
    let (directory, store) = fresh();
    let owner = wait(conformance::signed_up(&store, MAILBOX)).id;
    let id = wait(application_of(&store, owner, 1));
    leased(&store, id, 1, 10);
    wait(make(&store, id, ChangeKind::Close));
    (directory, store, owner)
}

#[test]
fn a_backup_contains_closed_applications() {
    let (directory, _store, owner) = closed_after_use();
    let restored = restored(&backed_up(&directory, "backup.db"));
    let refused = wait(opened(&restored).change(conformance::owned(owner, 1)));
    assert_eq!(owner_refusal(refused), OwnerRefusal::QuotaUsedToday(owner));
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
    assert!(checked(&restored).is_sound());
}
