//! A database without the features that managed services and other engines with PostgreSQL's protocol may lack.

use tokio::sync::OnceCell;

use super::hidden_history::execute;
use super::*;
use crate::{DocumentSharing as _, StoreHealth as _};

const PREPARE: &str =
    "CREATE ROLE tenant LOGIN; GRANT CREATE ON DATABASE without_features TO tenant";

/// A schema in a database of the shared server without these features.
async fn without_features() -> DatabaseConfig {
    static READY: OnceCell<()> = OnceCell::const_new();
    let mut config = config();
    let owner = config.clone();
    config.server.dbname("without_features");
    let prepare = async || {
        execute(&owner, "CREATE DATABASE without_features").await;
        execute(&config, postgres::REMOVE_FEATURES).await;
        execute(&config, PREPARE).await;
    };
    READY.get_or_init(prepare).await;
    config.server.user("tenant");
    config
}

async fn fresh_store() -> ((), PostgresStore) {
    let config = without_features().await;
    create_tables(config.clone()).await;
    (
        (),
        PostgresStore::open_with(config, Clock::system(), true)
            .await
            .unwrap(),
    )
}

conformance::run_with!(fresh_store, "postgresql");

#[tokio::test]
async fn a_report_names_each_missing_feature() {
    needs!("postgresql");
    let missing = async |config: DatabaseConfig| {
        create_tables(config.clone()).await;
        let found = PostgresStore::inspect(config, Clock::system())
            .await
            .unwrap();
        (
            found.hidden_timeline,
            found.missing_features.into_keys().collect::<Vec<_>>(),
        )
    };
    let (reason, names) = missing(without_features().await).await;
    assert!(
        reason
            .as_ref()
            .is_some_and(|reason| reason.contains("does not exist")),
        "{reason:?}"
    );
    assert_eq!(
        names,
        ["notifications", "statistics of tables", "unlogged tables"]
    );
    assert_eq!(missing(config()).await, (None, Vec::new()));
}

#[tokio::test]
async fn the_state_of_a_database_without_statistics_has_no_rows() {
    needs!("postgresql");
    let ((), store) = fresh_store().await;
    let status = store.database_status().await.unwrap().unwrap();
    assert_eq!((status.is_synchronous, status.tables), (false, Vec::new()));
}

#[tokio::test]
async fn without_unlogged_tables_several_programs_create_the_tables_of_a_schema_concurrently() {
    needs!("postgresql");
    for prepare in ["SELECT", "CREATE SCHEMA {schema}"] {
        let config = without_features().await;
        execute(&config, prepare).await;
        let all =
            futures_util::future::join_all((0..6).map(|_| create_tables(config.clone()))).await;
        let created = all
            .iter()
            .filter(|change| matches!(change, TablesChange::Created(_)))
            .count();
        assert_eq!(created, 1, "{all:?}");
        PostgresStore::open(config, Clock::system()).await.unwrap();
    }
}

#[tokio::test]
async fn without_notifications_there_is_a_hint_about_documents_every_second() {
    needs!("postgresql");
    let config = without_features().await;
    create_tables(config.clone()).await;
    let (clock, manual) = Clock::manual(NOON);
    let store = Arc::new(PostgresStore::open_with(config, clock, true).await.unwrap());
    let documents = Arc::clone(&store)
        .shared_documents("scope".into(), 1)
        .unwrap();
    // Once when it begins to listen.
    documents.published().await.unwrap();
    let mut hint = documents.published();
    assert!(futures_util::poll!(&mut hint).is_pending());
    let mut waited = Duration::ZERO;
    while futures_util::poll!(&mut hint).is_pending() {
        manual.advance(Duration::from_millis(250));
        waited += Duration::from_millis(250);
        tokio::task::yield_now().await;
    }
    assert!(waited >= Duration::from_secs(1), "{waited:?}");
}
