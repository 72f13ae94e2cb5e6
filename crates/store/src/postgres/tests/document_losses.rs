//! Shared documents after a failover, a crash or a deletion.

use std::process::Command;

use super::documents::{
    MINUTE, NAME, a_document, claimed, content, count, documents, execute, published, state,
    two_gateways,
};
use super::postgres::PostgresServer;
use super::*;
use crate::AgreedRefresh;

#[tokio::test]
async fn a_failover_loses_contents_and_keeps_states_and_refreshes() {
    needs!("postgresql");
    let settings = ["fsync=off"];
    let mut old = PostgresServer::start(&settings);
    let config = DatabaseConfig {
        servers: vec![old.url().parse().unwrap()],
        ..config()
    };
    create_tables(config.clone()).await;
    let open = async |server: &PostgresServer| {
        let config = DatabaseConfig {
            servers: vec![server.url().parse().unwrap()],
            ..config.clone()
        };
        documents(
            &Arc::new(PostgresStore::open(config, Clock::system()).await.unwrap()),
            1,
        )
    };
    let before = open(&old).await;
    let number = published(&before, "first").await;
    let refresh = AgreedRefresh {
        detected: NOON,
        expected: NOON.plus(MINUTE),
    };
    before.agree(refresh, NOON, None).await.unwrap();
    let known = state(&before).await;
    old.stop();
    let new = old.promoted_copy(&settings);
    let after = open(&new).await;
    let found = state(&after).await;
    assert_eq!(
        (found.number, found.published, found.refresh),
        (number, known.published, Some(refresh))
    );
    assert_eq!(content(&after, number).await, None);
    let next = claimed(&after, number).await.unwrap();
    assert!(!after.publish(NAME, a_document(next, None)).await.unwrap());
    assert!(
        after
            .publish(NAME, a_document(next, Some("second")))
            .await
            .unwrap()
    );
    assert_eq!(content(&after, next).await.unwrap(), "second");
}

#[tokio::test]
async fn a_crash_of_the_server_loses_contents_and_keeps_states_and_refreshes() {
    needs!("postgresql");
    let mut server = PostgresServer::start(&[]);
    let config = DatabaseConfig {
        servers: vec![server.url().parse().unwrap()],
        ..config()
    };
    create_tables(config.clone()).await;
    let store = Arc::new(PostgresStore::open(config, Clock::system()).await.unwrap());
    let documents = documents(&store, 1);
    let number = published(&documents, "first").await;
    let refresh = AgreedRefresh {
        detected: NOON,
        expected: NOON.plus(MINUTE),
    };
    documents.agree(refresh, NOON, None).await.unwrap();
    postgres::run(
        Command::new("sh")
            .arg("-c")
            .arg(format!("kill -QUIT {}", server.child.id())),
    );
    server.child.wait().unwrap();
    server.restart(&[]);
    // A connection to the server before it may fail once.
    drop((
        documents.state(NAME).await,
        documents.content(NAME, number).await,
    ));
    let found = state(&documents).await;
    assert_eq!(
        (found.number, found.published.unwrap().number, found.refresh),
        (number, number, Some(refresh))
    );
    assert_eq!(content(&documents, number).await, None);
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
        "after a failover the database knows older numbers"
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
    for (table, left) in [
        ("documents", 2),
        ("document_contents", 2),
        ("backend_refreshes", 2),
    ] {
        assert_eq!(count(&store, table).await, left, "{table}");
    }
}
