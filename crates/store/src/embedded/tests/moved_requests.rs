//! Requests in exports, and across a replacement of the store.

use std::fs;

use tempfile::TempDir;

use super::*;
use crate::embedded::maintenance;
use crate::{RequestOutcome, RequestQuery, RequestStore as _, RequestTotal};

fn import(directory: &TempDir, from: &Path) -> Result<(), String> {
    maintenance::import(directory.path(), from, &RESTORE, NOW)
        .map(drop)
        .map_err(|error| error.to_string())
}

fn answered(
    store: &Embedded,
    application: ApplicationId,
    node: u64,
    outcome: RequestOutcome,
    requests: u64,
) {
    let endpoint = "models".into();
    let total = RequestTotal {
        day: TODAY,
        application,
        endpoint,
        outcome,
        requests,
    };
    wait(store.record_requests(node, vec![total])).unwrap();
}

/// Requests of an application with the outcomes `ok` and `server_error`.
fn requests(directory: &TempDir, application: ApplicationId) -> (u64, u64) {
    let store = Embedded::open(directory.path()).unwrap();
    let query = RequestQuery {
        application,
        first: TODAY,
        last: TODAY,
    };
    let sum = wait(store.requests(query)).unwrap().sum();
    assert_eq!(sum.total(), sum.ok + sum.server_error);
    (sum.ok, sum.server_error)
}

#[test]
fn requests_of_all_processes_are_exported_and_read_back() {
    let (directory, store) = fresh();
    let one = wait(created(&store));
    let other = wait(created(&store));
    for (node, application, outcome, requests) in [
        (1, one, RequestOutcome::Ok, 5),
        (2, one, RequestOutcome::Ok, 7),
        (1, one, RequestOutcome::ServerError, 2),
        (1, other, RequestOutcome::Ok, 1),
    ] {
        answered(&store, application, node, outcome, requests);
    }
    drop(store);
    let path = directory.path().join("lines");
    let mut out = fs::File::create(&path).unwrap();
    let counts = maintenance::export(&file(&directory), &mut out, NOW).unwrap();
    assert_eq!(counts.of_table("request_nodes"), 4);
    let text = fs::read_to_string(&path).unwrap();
    let copy = TempDir::new().unwrap();
    import(&copy, &path).unwrap();
    assert_eq!(
        (requests(&copy, one), requests(&copy, other)),
        ((12, 2), (1, 0))
    );

    for (from, to) in [
        ("\"ok\"", "\"O K\""),
        ("\"models\"", "\"\""),
        ("requests\":7", "requests\":18446744073709551615"),
    ] {
        fs::write(&path, text.replacen(from, to, 1)).unwrap();
        let refused = import(&TempDir::new().unwrap(), &path).unwrap_err();
        assert!(
            ["outcome is \"O K\"", "endpoint is \"\"", "requests is 18"]
                .iter()
                .any(|reason| refused.contains(reason)),
            "{refused}"
        );
    }
}

#[test]
fn requests_since_a_backup_are_kept_when_the_backup_is_imported() {
    let (directory, store) = fresh();
    let one = wait(created(&store));
    let other = wait(created(&store));
    answered(&store, one, 1, RequestOutcome::Ok, 5);
    answered(&store, other, 1, RequestOutcome::Ok, 3);
    let backup = directory.path().join("older.db");
    maintenance::back_up(directory.path(), &backup, false).unwrap();
    answered(&store, one, 1, RequestOutcome::Ok, 6);
    answered(&store, one, 2, RequestOutcome::Ok, 4);
    answered(&store, one, 2, RequestOutcome::ServerError, 1);
    drop(store);
    import(&directory, &backup).unwrap();
    assert_eq!(
        (requests(&directory, one), requests(&directory, other)),
        ((10, 1), (3, 0))
    );
}
