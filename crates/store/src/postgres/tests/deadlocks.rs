//! Transactions that the server aborts because of deadlocks.

use super::*;

/// The number of connections that wait for a lock on a table of this schema.
async fn waiting(client: &tokio_postgres::Client, schema: &SchemaName) -> usize {
    let found = "SELECT l.pid FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
        JOIN pg_namespace n ON n.oid = c.relnamespace WHERE NOT l.granted AND quote_ident(n.nspname) = '{schema}'";
    client
        .query(&schema.statement(found), &[])
        .await
        .unwrap()
        .len()
}

#[tokio::test]
async fn an_exchange_that_deadlocks_with_an_upgrade_of_the_tables_is_repeated() {
    needs!("postgresql");
    let store = fresh().await;
    let schema = store.engine().config.schema.clone();
    let application = created(&store).await;
    assert_eq!(granted(&store, asks(application, 10)).await, (10, 10));

    // An upgrade and an exchange lock the tables in different orders.
    let upgrade = store
        .engine()
        .connection
        .connect_apart("upgrade")
        .await
        .unwrap();
    let observer = store
        .engine()
        .connection
        .connect_apart("observe")
        .await
        .unwrap();
    let lock = async |table: &str| {
        let statement = schema.statement(&format!(
            "LOCK TABLE {{schema}}.{table} IN ACCESS EXCLUSIVE MODE"
        ));
        upgrade.client.batch_execute(&statement).await
    };
    // On a busy machine, the server may abort the upgrade instead.
    for known in [10, 30, 50, 70] {
        upgrade.client.batch_execute("BEGIN").await.unwrap();
        lock("ledger_nodes").await.unwrap();
        let totals = NodeTotals {
            granted: known,
            ..NodeTotals::default()
        };
        let exchanging = store.exchange(report(application, 1, totals, known + 20));
        let upgrading = async {
            while waiting(&observer.client, &schema).await == 0 {}
            // Waits for the exchange, which in turn waits for this lock and is aborted by the server.
            let has_waited = lock("ledger_days").await.is_ok();
            upgrade.client.batch_execute("ROLLBACK").await.unwrap();
            has_waited
        };
        let (reply, has_waited) = tokio::join!(exchanging, upgrading);
        let [ReportOutcome::Applied { node, granted, .. }] = reply.unwrap().outcomes[..] else {
            panic!()
        };
        assert_eq!((node.granted, granted), (known + 20, u64::from(known + 20)));
        if has_waited {
            return;
        }
    }
    panic!("the server never ended an exchange");
}
