//! Transactions that the server ends because they wait for each other.

use super::*;

/// The number of connections that wait for a lock on a table of this schema.
async fn waiting(client: &tokio_postgres::Client, schema: &SchemaName) -> usize {
    let found = "SELECT l.pid FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
        JOIN pg_namespace n ON n.oid = c.relnamespace WHERE NOT l.granted AND quote_ident(n.nspname) = '{schema}'";
    client.query(&schema.statement(found), &[]).await.unwrap().len()
}

#[tokio::test]
async fn an_exchange_that_deadlocks_with_an_upgrade_of_the_tables_is_repeated() {
    needs!("postgresql");
    let config = config();
    create_tables(config.clone()).await;
    let schema = config.schema.clone();
    let store = Arc::new(PostgresStore::open_with(config.clone(), Clock::system(), true).await.unwrap());
    let application = created(&store).await;
    assert_eq!(granted(&store, report(application, 1, NodeTotals::default(), 10)).await, (10, 10));

    // An upgrade changes the tables in another order than exchanges lock them.
    let upgrade = DatabaseLink::new(Arc::new(config.clone()), Clock::system());
    let upgrade = upgrade.connect_apart("upgrade").await.unwrap();
    let observer =
        DatabaseLink::new(Arc::new(config), Clock::system()).connect_apart("observe").await.unwrap();
    let lock = async |table: &str| {
        let statement = schema.statement(&format!("LOCK TABLE {{schema}}.{table} IN ACCESS EXCLUSIVE MODE"));
        upgrade.client.batch_execute(&statement).await
    };
    upgrade.client.batch_execute("BEGIN").await.unwrap();
    lock("ledger_nodes").await.unwrap();
    let known = NodeTotals { granted: 10, ..NodeTotals::default() };
    let exchanging = store.exchange(report(application, 1, known, 30));
    let upgrading = async {
        while waiting(&observer.client, &schema).await == 0 {}
        // Waits for the exchange, which waits for it and is ended by the server.
        lock("ledger_days").await.unwrap();
        upgrade.client.batch_execute("COMMIT").await.unwrap();
    };
    let (reply, ()) = tokio::join!(exchanging, upgrading);
    let [ReportOutcome::Applied { node, granted, .. }] = reply.unwrap().outcomes[..] else { panic!() };
    assert_eq!((node.granted, granted), (30, 30));
}
