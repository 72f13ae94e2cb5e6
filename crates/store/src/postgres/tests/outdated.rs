//! Outdated records are deleted in batches.

use super::*;
use scoregate_base::limits::GraceClaim;

#[tokio::test]
async fn ledger_days_are_deleted_after_35_days_in_batches() {
    needs!("postgresql");
    let store = fresh().await;
    open_day(&store).await;
    execute(
        &store,
        "INSERT INTO {schema}.ledger_days (day, application, granted)
         SELECT date '2025-11-21' - 35 - d, 'app_' || n, 1 FROM generate_series(0, 1) d, generate_series(1, 800) n;
         INSERT INTO {schema}.ledger_nodes SELECT day, application, 7, 1, 0, 0, 0 FROM {schema}.ledger_days
         WHERE day < '2025-11-01';
         INSERT INTO {schema}.ledger_days (day, application) VALUES (date '2025-11-21' - 34, 'app_1')",
    )
    .await;
    let mut batches = Vec::new();
    while batches.last() != Some(&0) {
        batches.push(store.delete_outdated().await.unwrap());
    }
    assert_eq!(batches, [2_000, 1_200, 0]);
    let days = rows(
        &store,
        "SELECT day::text, count(*) FROM {schema}.ledger_days GROUP BY 1 ORDER BY 1",
    )
    .await;
    assert_eq!(
        days,
        [("2025-10-18".to_owned(), 1), ("2025-11-21".to_owned(), 1)]
    );
    let nodes = rows(
        &store,
        "SELECT day::text, count(*) FROM {schema}.ledger_nodes GROUP BY 1",
    )
    .await;
    assert_eq!(nodes, [("2025-11-21".to_owned(), 1)]);
}

#[tokio::test]
async fn minute_pools_are_deleted_after_an_hour_without_use() {
    needs!("postgresql");
    let store = fresh().await;
    execute(
        &store,
        "INSERT INTO {schema}.minute_pools
         SELECT name, (extract(epoch FROM clock_timestamp()) * 1000000)::int8 - minutes * 60000000::int8, '{}'
         FROM (VALUES ('idle', 61), ('used', 59)) v (name, minutes)",
    )
    .await;
    assert_eq!(store.delete_outdated().await.unwrap(), 1);
    let query = "SELECT application, count(*) FROM {schema}.minute_pools GROUP BY 1";
    assert_eq!(rows(&store, query).await, [("used".to_owned(), 1)]);
}

#[tokio::test]
async fn an_outdated_record_that_another_gateway_deletes_is_skipped() {
    needs!("postgresql");
    let store = fresh().await;
    let other = another(&store).await;
    open_day(&store).await;
    execute(
        &store,
        "INSERT INTO {schema}.ledger_days (day, application, granted)
         SELECT date '2025-11-21' - 35, 'app_' || n, 1 FROM generate_series(1, 5) n;
         INSERT INTO {schema}.ledger_nodes SELECT day, application, 7, 1, 0, 0, 0 FROM {schema}.ledger_days
         WHERE day < '2025-11-01';
         INSERT INTO {schema}.status_minutes VALUES (1, true, true), (2, true, true), (3, true, true)",
    )
    .await;
    execute(
        &other,
        "BEGIN; DELETE FROM {schema}.ledger_days WHERE application = 'app_3';
         DELETE FROM {schema}.ledger_nodes WHERE application IN ('app_1', 'app_2');
         DELETE FROM {schema}.status_minutes WHERE minute = 2",
    )
    .await;
    assert_eq!(store.delete_outdated().await.unwrap(), 4 + 3 + 1);
    execute(&other, "ROLLBACK").await;
    assert_eq!(store.delete_outdated().await.unwrap(), 1 + 2 + 1);
}

#[tokio::test]
async fn a_change_does_not_wait_for_reports_of_gateways() {
    needs!("postgresql");
    let store = fresh().await;
    let other = another(&store).await;
    execute(&other, "BEGIN; SELECT FROM {schema}.site FOR KEY SHARE").await;
    created(&store).await;
}

#[tokio::test]
async fn claims_of_grace_that_change_nothing_and_merges_with_nothing_due_do_not_wait_for_changes() {
    needs!("postgresql");
    let store = fresh().await;
    let other = another(&store).await;
    open_day(&store).await;
    let claim = |node| GraceClaim {
        day: NOON.day(),
        gateways: 1,
        held: None,
        token: node,
        life: 0,
        node,
    };
    let held = store.claim_grace(claim(1)).await.unwrap();
    assert!(held.is_some());
    execute(&other, "BEGIN; SELECT FROM {schema}.site FOR UPDATE").await;
    assert_eq!(store.claim_grace(claim(1)).await.unwrap(), held);
    assert_eq!(
        store.claim_grace(claim(2)).await.unwrap(),
        None,
        "another gateway has the only share"
    );
    assert_eq!(store.delete_outdated().await.unwrap(), 0);
}

#[tokio::test]
async fn nodes_are_deleted_a_day_after_they_were_seen_last() {
    needs!("postgresql");
    let store = fresh().await;
    execute(
        &store,
        "INSERT INTO {schema}.nodes SELECT hours, 'gateway', '1.0.0', 0,
             (extract(epoch FROM clock_timestamp()) * 1000)::int8 - hours * 3600000::int8, 0, 0
         FROM (VALUES (23), (25)) v (hours)",
    )
    .await;
    let list = store.nodes().await.unwrap();
    assert_eq!(
        (list.nodes.len(), list.live(Wall::default()).count()),
        (2, 0)
    );
    assert_eq!(store.delete_outdated().await.unwrap(), 1);
    let left = store.nodes().await.unwrap().nodes;
    assert_eq!((left.len(), left[0].node), (1, 23));
}

#[tokio::test]
async fn requests_are_not_merged_while_a_gateway_reports() {
    needs!("postgresql");
    let store = fresh().await;
    let other = another(&store).await;
    open_day(&store).await;
    let row = "(date '2025-11-21' - 3, 'app_1', 'models', 'ok', 1, 7)";
    let insert = format!("INSERT INTO {{schema}}.request_nodes VALUES {row}");
    execute(&store, &insert).await;
    execute(&other, "BEGIN; SELECT FROM {schema}.site FOR KEY SHARE").await;
    assert_eq!(store.delete_outdated().await.unwrap(), 0);
    execute(&other, "COMMIT").await;
    assert_eq!(store.delete_outdated().await.unwrap(), 1);
    let query = "SELECT application || ' ' || endpoint || ' ' || outcome, requests FROM {schema}.request_days";
    assert_eq!(
        rows(&store, query).await,
        [("app_1 models ok".to_owned(), 7)]
    );
}
