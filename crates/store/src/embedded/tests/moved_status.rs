//! The status page in exports, and across a replacement of the store.

use std::fs;

use tempfile::TempDir;

use super::*;
use crate::embedded::maintenance;
use crate::{
    DAY_MINUTES, IncidentState, MessageSubject, NewStatusMessage, StatusHistory, StatusMessage,
    StatusMinute, StatusStore as _,
};

const FIRST: u64 = 20_413 * DAY_MINUTES;

fn minutes(store: &Embedded, minutes: std::ops::Range<u64>, is_ready: bool, is_fresh: bool) {
    let minute = |minute| StatusMinute {
        minute: FIRST + minute,
        is_ready,
        is_fresh,
    };
    wait(store.record_minutes(minutes.map(minute).collect())).unwrap();
}

fn post(store: &Embedded, subject: MessageSubject, message: &str) -> StatusMessage {
    let state = Some(IncidentState::Monitoring);
    let new = NewStatusMessage {
        at: NOW,
        who: "a test".into(),
        subject,
        state,
        message: message.into(),
    };
    wait(store.post_status(new)).unwrap()
}

fn content(directory: &TempDir) -> (StatusHistory, Vec<StatusMessage>) {
    let store = Embedded::open(directory.path()).unwrap();
    let history = wait(store.status_history(FIRST, FIRST + DAY_MINUTES)).unwrap();
    (history, wait(store.status_messages(10)).unwrap())
}

fn import(directory: &TempDir, from: &Path) -> Result<(), String> {
    maintenance::import(directory.path(), from, &RESTORE, NOW)
        .map(drop)
        .map_err(|error| error.to_string())
}

#[test]
fn the_status_page_is_exported_and_read_back() {
    let (directory, store) = fresh();
    minutes(&store, 0..60, true, true);
    minutes(&store, 60..65, true, false);
    minutes(&store, 66..68, false, false);
    let first = post(
        &store,
        MessageSubject::New("Late \"scores\"".into()),
        "One.\nTwo.",
    );
    post(&store, MessageSubject::Known(first.id), "Three.");
    drop(store);
    let path = directory.path().join("lines");
    let mut out = fs::File::create(&path).unwrap();
    let counts = maintenance::export(&file(&directory), &mut out, NOW).unwrap();
    let tables = ["status_minutes", "status_messages"].map(|table| counts.of_table(table));
    assert_eq!(tables, [67, 2]);

    let other = TempDir::new().unwrap();
    import(&other, &path).unwrap();
    assert_eq!(content(&other), content(&directory));
    assert_eq!(content(&other).0.days[0].ready, 65);
}

#[test]
fn the_status_page_keeps_what_came_after_an_imported_backup() {
    let (directory, store) = fresh();
    wait(created(&store));
    minutes(&store, 0..9, true, false);
    let first = post(&store, MessageSubject::New("Late scores".into()), "One.");
    let backup = directory.path().join("older.db");
    maintenance::back_up(directory.path(), &backup, false).unwrap();
    minutes(&store, 8..12, true, true);
    post(&store, MessageSubject::Known(first.id), "Two.");
    post(&store, MessageSubject::New("Another".into()), "Three.");
    drop(store);
    let before = content(&directory);
    import(&directory, &backup).unwrap();
    assert_eq!(content(&directory), before);
    assert_eq!(
        (
            before.0.days[0].ready,
            before.0.days[0].fresh,
            before.1.len()
        ),
        (12, 4, 3)
    );
}

#[test]
fn a_message_is_not_added_to_another_incident_with_its_number() {
    let (old, store) = fresh();
    wait(created(&store));
    let first = post(
        &store,
        MessageSubject::New("Of the old store".into()),
        "One.",
    );
    post(&store, MessageSubject::Known(first.id), "Two.");
    drop(store);
    let (new, store) = fresh();
    wait(created(&store));
    let kept = post(
        &store,
        MessageSubject::New("Of the new store".into()),
        "One.",
    );
    drop(store);
    let backup = new.path().join("backup.db");
    maintenance::back_up(new.path(), &backup, false).unwrap();
    import(&old, &backup).unwrap();
    assert_eq!(content(&old).1, [kept]);
}
