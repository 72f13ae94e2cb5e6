//! Tests of the database status that metrics show. They use separate servers, because they need different settings from
//! other tests.

use super::*;
use crate::{DatabaseStatus, ExchangeCounts, HotTable, TableRows};

const EVERY: Duration = Duration::from_millis(50);
const POLLS: u32 = 400;

/// A store with new tables, and the same store as a runtime role sees it.
async fn stores(server: &PostgresServer) -> [Store; 2] {
    let config = config_on(server);
    let runtime = runtime_role(&config).await;
    [open(&config).await, open(&runtime).await]
}

async fn status(store: &Store) -> DatabaseStatus {
    store.database_status().await.unwrap().unwrap()
}

fn rows(status: &DatabaseStatus, table: HotTable) -> TableRows {
    *status
        .tables
        .iter()
        .find(|rows| rows.table == table)
        .unwrap()
}

/// Waits until the database reaches a state. The server reports its statistics with a delay.
async fn reaches(store: &Store, is_reached: impl Fn(&DatabaseStatus) -> bool) {
    let clock = Clock::system();
    for _ in 0..POLLS {
        if is_reached(&status(store).await) {
            return;
        }
        clock.sleep(EVERY).await;
    }
    panic!("{:?}", status(store).await);
}

/// Runs exchanges on the same connection as `execute`. Each exchange requests one unit more than the previous one.
async fn exchange(store: &Store, id: ApplicationId, units: std::ops::RangeInclusive<u32>) {
    for granted in units {
        let exchange = report(id, 1, NodeTotals::default(), granted);
        let work =
            async |client: SchemaClient<'_>| day_ledger::exchange(client, &exchange, true).await;
        Box::pin(store.engine().connection.run("test", work))
            .await
            .unwrap();
    }
    execute(store, "SELECT pg_stat_force_next_flush()").await;
}

#[tokio::test]
async fn the_state_of_the_database_names_a_missing_standby_by_the_settings_of_the_role() {
    needs!("postgresql");
    let server = PostgresServer::start(&["fsync=off"]);
    let [owner, runtime] = stores(&server).await;
    assert!(!status(&owner).await.is_synchronous && !status(&runtime).await.is_synchronous);
    execute(
        &owner,
        "ALTER SYSTEM SET synchronous_standby_names = 'another_machine'",
    )
    .await;
    execute(&owner, "SELECT pg_reload_conf()").await;
    reaches(&owner, |status| status.is_synchronous).await;
    reaches(&runtime, |status| status.is_synchronous).await;
    execute(&runtime, "SET synchronous_commit = local").await;
    assert!(
        !status(&runtime).await.is_synchronous,
        "its commits wait for the server's own disk only"
    );
}

#[tokio::test]
async fn a_runtime_role_reads_the_dead_rows_that_exchanges_leave_until_a_vacuum() {
    needs!("postgresql");
    let server = PostgresServer::start(&["fsync=off", "autovacuum=off"]);
    let [owner, runtime] = stores(&server).await;
    let found = status(&runtime).await;
    assert_eq!(found.tables.len(), HotTable::ALL.len(), "{found:?}");
    let id = created(&owner).await;
    exchange(&owner, id, 1..=20).await;
    for table in [HotTable::LedgerDays, HotTable::LedgerNodes] {
        // At most one dead row for each exchange, because a full page is pruned.
        reaches(&runtime, |status| {
            (1..=20).contains(&rows(status, table).dead)
        })
        .await;
        assert_eq!(rows(&status(&runtime).await, table).live, 1);
    }
    let pools = rows(&status(&runtime).await, HotTable::MinutePools);
    assert_eq!(
        (pools.live, pools.dead),
        (0, 0),
        "no minute was part of an exchange"
    );
    execute(&owner, "VACUUM {schema}.ledger_days").await;
    reaches(&runtime, |status| {
        rows(status, HotTable::LedgerDays).dead == 0
    })
    .await;
    assert_ne!(rows(&status(&runtime).await, HotTable::LedgerNodes).dead, 0);
}

#[tokio::test]
async fn committed_exchanges_and_their_reports_are_counted() {
    needs!("postgresql");
    let store = fresh().await;
    let counts = |transactions, reports| ExchangeCounts {
        transactions,
        reports,
    };
    assert_eq!(store.exchange_counts(), counts(0, 0));
    let mut two = asks(created(&store).await, 5);
    two.reports.extend(asks(created(&store).await, 5).reports);
    store.exchange(two).await.unwrap();
    assert_eq!(store.exchange_counts(), counts(1, 2));
    open_day(&store).await;
    assert_eq!(store.exchange_counts(), counts(2, 3));
    let failing = asks(created(&store).await, 5);
    execute(&store, "DROP TABLE {schema}.ledger_nodes").await;
    store.exchange(failing).await.unwrap_err();
    assert_eq!(store.exchange_counts(), counts(2, 3));
}
