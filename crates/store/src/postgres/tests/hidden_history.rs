//! A database that denies access to the control functions, as some managed services do.

use tokio::sync::OnceCell;

use super::*;

const SETTINGS: [&str; 1] = ["fsync=off"];
const PREPARE: &str = "
REVOKE EXECUTE ON FUNCTION pg_control_system(), pg_control_checkpoint(), pg_current_wal_lsn(), pg_walfile_name(pg_lsn)
FROM PUBLIC;
CREATE ROLE managed LOGIN;
GRANT CREATE ON DATABASE {database} TO managed";

/// A schema in a database of the shared server, for a role that cannot execute these functions.
async fn managed() -> DatabaseConfig {
    static READY: OnceCell<()> = OnceCell::const_new();
    let mut config = config();
    let owner = config.clone();
    config.servers[0].dbname("managed");
    let create = async || {
        prepare(&owner, "CREATE DATABASE managed").await;
        prepare(&config, &PREPARE.replace("{database}", "managed")).await;
    };
    READY.get_or_init(create).await;
    config.servers[0].user("managed");
    config
}

#[tokio::test]
async fn a_hidden_timeline_is_accepted_only_where_none_was_checked() {
    needs!("postgresql");
    let directory = tempfile::tempdir().unwrap();
    let config = managed().await;
    create_tables(config.clone()).await;
    unopened(&config, directory.path()).check().await.unwrap();
    let reason = inspected(&config).await.hidden_timeline;
    assert!(
        reason
            .as_ref()
            .is_some_and(|reason| reason.contains("permission denied")),
        "{reason:?}"
    );

    let mut disclosed = config.clone();
    disclosed.servers[0].user(postgres::OWNER);
    unopened(&disclosed, directory.path())
        .check()
        .await
        .unwrap();
    let refused = unopened(&config, directory.path()).check().await;
    let Err(OpenFailure {
        kind: ConnectionFault::Refused,
        error,
    }) = refused
    else {
        panic!("{refused:?}")
    };
    let text = error.to_string();
    for words in [
        "does not disclose its timeline (permission denied",
        "were checked before",
        "DELETE FROM promises WHERE kind = 'timeline'",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let file = rusqlite::Connection::open(directory.path().join(LocalFile::NAME)).unwrap();
    file.execute("DELETE FROM promises WHERE kind = 'timeline'", [])
        .unwrap();
    unopened(&config, directory.path()).check().await.unwrap();
}

#[tokio::test]
async fn a_right_that_is_withdrawn_while_the_program_runs_does_not_weaken_the_check() {
    needs!("postgresql");
    let mut server = PostgresServer::start(&SETTINGS);
    let mut config = config_on(&server);
    let owner = config.clone();
    prepare(
        &owner,
        "CREATE ROLE managed LOGIN; GRANT CREATE ON DATABASE postgres TO managed",
    )
    .await;
    config.servers[0].user("managed");
    create_tables(config.clone()).await;
    let store = Store::in_database(config, Clock::system(), SeenTimelines::default());
    store.check().await.unwrap();
    prepare(
        &owner,
        "REVOKE EXECUTE ON FUNCTION pg_current_wal_lsn() FROM PUBLIC",
    )
    .await;
    server.stop();
    server.restart(&SETTINGS);
    // The first call notices that the connection is closed.
    drop(store.position().await);
    let error = store.position().await.unwrap_err().to_string();
    assert!(error.contains("were checked before"), "{error}");
}

#[tokio::test]
async fn the_feed_of_a_server_with_a_hidden_timeline_has_another_source_after_each_restart() {
    needs!("postgresql");
    let mut server = PostgresServer::start(&SETTINGS);
    let mut config = config_on(&server);
    prepare(&config, &PREPARE.replace("{database}", "postgres")).await;
    config.servers[0].user("managed");
    create_tables(config.clone()).await;
    let store = open_by_clock(&config).await;
    let before = store.position().await.unwrap();
    assert_eq!(store.position().await.unwrap(), before);
    server.stop();
    server.restart(&SETTINGS);
    drop(store.position().await);
    let changed = store.changed_after(before.clone(), 1).await.unwrap();
    assert!(changed.requires_reload(&before), "{changed:?}");
    assert_eq!(changed.reached.data_set(), before.data_set());
}
