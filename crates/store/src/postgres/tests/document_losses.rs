//! Shared documents after a failover, a crash or a deletion.

use std::process::Command;

use super::{
    documents::{
        MINUTE, NAME, Shared, claimed, content, documents, publish, published, state, two_gateways,
    },
    *,
};
use crate::AgreedRefresh;

/// After `event`, the contents of the documents on the server are lost, but their states and the refresh are kept. Then a gateway
/// publishes again.
async fn lose_contents(
    server: &mut PostgresServer,
    event: impl AsyncFnOnce(&mut PostgresServer, &DatabaseConfig, Shared) -> Shared,
) {
    let config = prepared_on(server).await;
    let before = documents(&open_by_clock(&config).await, 1);
    let number = published(&before, "first").await;
    let refresh = AgreedRefresh {
        detected: NOON,
        expected: NOON.plus(MINUTE),
    };
    before.agree(refresh, NOON, None).await.unwrap();
    let known = state(&before).await;
    let after = event(server, &config, before).await;
    let found = state(&after).await;
    assert_eq!(
        (found.number, found.published, found.refresh),
        (number, known.published, Some(refresh))
    );
    assert_eq!(content(&after, number).await, None);
    let next = claimed(&after, number).await.unwrap();
    assert!(!publish(&after, next, None).await);
    assert!(publish(&after, next, Some("second")).await);
    assert_eq!(content(&after, next).await.unwrap(), "second");
}

#[tokio::test]
async fn a_failover_loses_contents_and_keeps_states_and_refreshes() {
    needs!("postgresql");
    let settings = ["fsync=off"];
    let mut standby = None;
    let fail_over = async |old: &mut PostgresServer, config: &DatabaseConfig, _: Shared| {
        old.stop();
        let new = standby.insert(old.promoted_copy(&settings));
        let config = DatabaseConfig {
            schema: config.schema.clone(),
            ..config_on(new)
        };
        documents(&open_by_clock(&config).await, 1)
    };
    lose_contents(&mut PostgresServer::start(&settings), fail_over).await;
}

#[tokio::test]
async fn a_crash_of_the_server_loses_contents_and_keeps_states_and_refreshes() {
    needs!("postgresql");
    let crash = async |server: &mut PostgresServer, _: &DatabaseConfig, documents: Shared| {
        let kill = format!("kill -QUIT {}", server.child.id());
        postgres::run(Command::new("sh").arg("-c").arg(kill));
        server.child.wait().unwrap();
        server.restart(&[]);
        // A connection to the previous server may fail once.
        drop(documents.state(NAME).await);
        drop(documents.content(NAME, 1).await);
        documents
    };
    lose_contents(&mut PostgresServer::start(&[]), crash).await;
}

#[tokio::test]
async fn numbers_grow_also_after_outdated_documents_were_deleted() {
    needs!("postgresql");
    let (store, one, _) = two_gateways().await;
    let number = published(&one, "first").await;
    execute(
        &store,
        "UPDATE {schema}.documents SET claim = 1, confirmed = 1",
    )
    .await;
    assert_eq!(store.delete_outdated().await.unwrap(), 1);
    assert_eq!(state(&one).await.number, 0);
    assert!(
        published(&one, "second").await > number,
        "a gateway may have the content with the old number"
    );
    let after = state(&one).await.number + 1_000_000_000;
    assert!(
        claimed(&one, after).await.unwrap() > after,
        "after a failover the database may have older numbers"
    );
}

#[tokio::test]
async fn documents_are_deleted_a_week_after_they_were_claimed_or_confirmed_and_refreshes_with_the_last_one()
 {
    needs!("postgresql");
    let (store, ..) = two_gateways().await;
    execute(
        &store,
        "INSERT INTO {schema}.documents (scope, name, claim, published, confirmed)
         SELECT scope, name, n.at - claimed * 86400000000::int8, 1, n.at - confirmed * 86400000000::int8
         FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::int8 AS at) n,
              (VALUES ('kept', 'confirmed', 8, 6), ('kept', 'claimed', 6, 8), ('kept', 'outdated', 8, 8),
                      ('gone', 'outdated', 8, NULL)) v (scope, name, claimed, confirmed);
         INSERT INTO {schema}.document_contents SELECT scope, name, 1, '' FROM {schema}.documents;
         INSERT INTO {schema}.backend_refreshes VALUES ('kept', 1, 1), ('gone', 1, 1);
         INSERT INTO {schema}.backend_refreshes
         SELECT 'new', (extract(epoch FROM clock_timestamp()) * 1000000)::int8, 1",
    )
    .await;
    assert_eq!(store.delete_outdated().await.unwrap(), 3);
    assert_eq!(store.delete_outdated().await.unwrap(), 0);
    for table in ["documents", "document_contents", "backend_refreshes"] {
        let query = format!("SELECT '', count(*) FROM {{schema}}.{table}");
        assert_eq!(rows(&store, &query).await, [(String::new(), 2)], "{table}");
    }
}
