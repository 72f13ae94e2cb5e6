//! After a failover, the former primary is not used, even after a restart of the gateway.

use std::path::Path;

use super::*;
use crate::maintenance;

const SETTINGS: [&str; 1] = ["fsync=off"];

/// A store that uses this data directory and these servers, in this order.
fn store(config: &DatabaseConfig, servers: &[&PostgresServer], directory: &Path) -> Store {
    let urls: Vec<String> = servers.iter().map(|server| server.url()).collect();
    let host = |url: &String| url.split(['@', '/']).nth(3).unwrap().to_owned();
    let all = urls.iter().map(host).collect::<Vec<_>>().join(",");
    let address = DatabaseAddress::parse(&urls[0].replace(&host(&urls[0]), &all)).unwrap();
    let servers = address.servers(false, config.timeout);
    let config = DatabaseConfig {
        servers,
        ..config.clone()
    };
    unopened(&config, directory)
}

fn reason(failure: Result<(), OpenFailure>) -> String {
    match failure {
        Err(OpenFailure {
            kind: ConnectionFault::Refused,
            error,
        }) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_primary_before_a_failover_is_not_used_after_it_returned() {
    needs!("postgresql");
    let directory = tempfile::tempdir().unwrap();
    let mut old = PostgresServer::start(&SETTINGS);
    let config = prepared_on(&old).await;
    store(&config, &[&old], directory.path())
        .check()
        .await
        .unwrap();
    old.stop();
    let new = old.promoted_copy(&SETTINGS);
    old.restart(&SETTINGS);
    // Until the new server has been used, nothing shows that there was a failover.
    let early = store(&config, &[&old, &new], directory.path());
    early.check().await.unwrap();
    store(&config, &[&new], directory.path())
        .check()
        .await
        .unwrap();

    let refused = reason(store(&config, &[&old], directory.path()).check().await);
    assert!(
        refused.contains("on timeline 1, and one on timeline 2 was used"),
        "{refused}"
    );
    assert!(
        refused.contains("Rebuild it as a standby") && refused.contains("store restore"),
        "{refused}"
    );
    let both = store(&config, &[&old, &new], directory.path());
    let id = created(&both).await;
    assert_eq!(granted_by_clock(&both, id).await, 100);
    let count = async |server: &PostgresServer| {
        let config = DatabaseConfig {
            servers: vec![server.url().parse().unwrap()],
            ..config.clone()
        };
        inspected(&config).await.applications
    };
    assert_eq!((count(&old).await, count(&new).await), (0, 1));
}

#[tokio::test]
async fn a_server_that_is_read_only_is_not_used() {
    needs!("postgresql");
    let directory = tempfile::tempdir().unwrap();
    let mut server = PostgresServer::start(&SETTINGS);
    let config = prepared_on(&server).await;
    server.stop();
    server.restart(&["fsync=off", "default_transaction_read_only=on"]);
    let failure = store(&config, &[&server], directory.path())
        .check()
        .await
        .unwrap_err();
    // A read-only server cannot serve any gateway, so it counts as unreachable.
    let OpenFailure {
        kind: ConnectionFault::Unreachable,
        error,
    } = failure
    else {
        panic!("{failure:?}")
    };
    assert!(
        error.to_string().contains("does not allow writes"),
        "{error}"
    );
}

#[tokio::test]
async fn a_store_that_was_not_opened_reports_unusable_tables_and_refuses_another_data_set() {
    needs!("postgresql");
    let directory = tempfile::tempdir().unwrap();
    let config = config();
    let missing = Store::in_database(config.clone(), Clock::system(), SeenTimelines::default());
    let Err(OpenFailure {
        kind: ConnectionFault::Unusable,
        error,
    }) = missing.check().await
    else {
        panic!("there are no tables")
    };
    assert!(
        error.to_string().contains("scoregate store init"),
        "{error}"
    );
    let error = missing.position().await.unwrap_err();
    assert!(
        error.to_string().contains("scoregate store init"),
        "{error}"
    );
    create_tables(config.clone()).await;
    let site = missing.position().await.unwrap();
    let other = unopened(&config, directory.path());
    other.accept_only("another");
    let error = other.day().await.unwrap_err().to_string();
    assert!(
        error.contains(site.data_set())
            && error.contains("the local copy of the keys belongs to another"),
        "{error}"
    );
    let error = other.exchange(asks(an_id(), 1)).await.unwrap_err();
    assert!(error.to_string().contains("belongs to another"), "{error}");
}

/// Replaces a table with a copy that has another OID, as a restore from a dump does.
const REPLACE: &str = "
CREATE TABLE {schema}.restored AS TABLE {schema}.calendar;
DROP TABLE {schema}.calendar;
ALTER TABLE {schema}.restored RENAME TO calendar";

#[tokio::test]
async fn tables_that_a_dump_replaced_are_not_used_on_open_connections_until_they_are_taken_over() {
    needs!("postgresql");
    let store = fresh().await;
    let id = created(&store).await;
    let before = store.position().await.unwrap();
    let report = || asks(id, 5);
    store.exchange(report()).await.unwrap();
    prepare(&store.engine().config, REPLACE).await;
    for attempt in 0..2 {
        let errors = [
            store.exchange(report()).await.unwrap_err(),
            store.position().await.unwrap_err(),
        ];
        for error in errors {
            let names_remedy = error.to_string().contains("`scoregate store restore`");
            assert_eq!(names_remedy, attempt > 0, "{error}");
        }
    }
    let options = maintenance::ImportOptions {
        accept_lost_revocations: true,
        ..Default::default()
    };
    let command = command(&store.engine().config);
    command.restore(None, &options).await.unwrap();
    let changed = store.changed_after(before.clone(), 1).await.unwrap();
    assert!(changed.requires_reload(&before), "{changed:?}");
    assert_eq!(changed.reached.data_set(), before.data_set());
    let reply = store.exchange(report()).await.unwrap();
    assert_eq!(reply.outcomes, [ReportOutcome::Closed]);
}
