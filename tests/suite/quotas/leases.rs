//! The cost of the ledger: number of writes, requests that wait for it, and midnight.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use scoregate_base::{
    keys::Digest,
    limits::{LimitChanges, LimitSetting},
};

use crate::{
    balances::own, client::Connection, full_runs::is_full_size, program::sql, world::World,
};

const MODELS: &str = "/api/v1/models?period=24h";

async fn ledger_calls(world: &World) -> u32 {
    world
        .counted("scoregate_store_duration_seconds_count{operation=\"lease\"}")
        .await
}

async fn waits(world: &World) -> u32 {
    world.counted("scoregate_lease_waits_total").await
}

#[tokio::test]
async fn leases_a_pro_quota_is_granted_in_full_with_few_ledger_calls_and_one_waiting_request() {
    let units = if is_full_size() { 10_000 } else { 2_000 };
    let world = World::new().await;
    let customer = world.customer_with("pro", own(1_000_000, units)).await;
    let account = world
        .running
        .gateway()
        .key_directory
        .find(&Digest::of(&customer.key))
        .unwrap()
        .account;
    let mut connection = Connection::open(world.address()).await;
    for request in 0..units {
        let response = connection.send(world.get(MODELS).key(&customer.key)).await;
        assert_eq!(response.status, 200, "request {request}");
        // A lease in advance may take until half of the previous lease is spent. The test waits for it without
        // advancing the clock.
        while account.is_leasing() {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(
        world.get_as(&customer, MODELS).await.code(),
        "quota_exceeded"
    );
    let calls = ledger_calls(&world).await;
    let waited = waits(&world).await;
    assert!(calls <= 300, "{calls} ledger calls for {units} requests");
    assert_eq!(waited, 1);
}

#[tokio::test]
async fn leases_a_free_request_waits_for_one_durable_write_only() {
    let world = World::new().await;
    let customer = world.customer_with("free", own(1_000, 10)).await;
    for request in 1..=10 {
        assert_eq!(world.get_as(&customer, MODELS).await.status, 200);
        assert_eq!(
            (ledger_calls(&world).await, waits(&world).await),
            (request, request)
        );
    }
    // A used-up daily quota is detected without the ledger.
    assert_eq!(
        world.get_as(&customer, MODELS).await.code(),
        "quota_exceeded"
    );
    assert_eq!(ledger_calls(&world).await, 10);
}

#[tokio::test]
async fn leases_of_tomorrow_are_taken_before_midnight_for_applications_in_use() {
    let world = World::new().await;
    let customers = [("pro", 10_000), ("free", 10)]
        .map(|(tier, day)| world.customer_with(tier, own(1_000_000, day)));
    let customers = join_all(customers).await;
    let unused = world.customer("pro").await;
    for customer in &customers {
        assert_eq!(world.get_as(customer, MODELS).await.status, 200);
    }
    let leased = "scoregate_quota_units_total{use=\"leased\"}";
    let before = world.counted(leased).await;
    // The leases are due half a minute before midnight: eight units of the large quota, one unit of the small quota.
    world.pass(Duration::from_secs(43_170));
    world.reaches(leased, before + 9).await;
    let waited = waits(&world).await;
    world.pass(Duration::from_secs(30));
    for (customer, left) in customers.iter().zip([9_999, 9]) {
        let response = world.get_as(customer, MODELS).await;
        assert_eq!(
            (response.status, response.number("x-ratelimit-remaining")),
            (200, left)
        );
    }
    assert_eq!(
        waits(&world).await,
        waited,
        "no request waited for the ledger"
    );
    assert_eq!(world.get_as(&unused, MODELS).await.status, 200);
    assert_eq!(waits(&world).await, waited + 1);
}

#[tokio::test]
async fn units_leased_before_midnight_are_charged_once_if_limits_change_before_the_first_request() {
    let world = World::new().await;
    let customer = world.customer_with("pro", own(1_000_000, 10_000)).await;
    assert_eq!(world.get_as(&customer, MODELS).await.status, 200);
    let leased = "scoregate_quota_units_total{use=\"leased\"}";
    let before = world.counted(leased).await;
    world.pass(Duration::from_secs(43_170));
    world.reaches(leased, before + 8).await;
    world.pass(Duration::from_secs(30));
    let calls = ledger_calls(&world).await;
    let minute = LimitChanges::default().with(LimitSetting::Minute, 2_000_000);
    world
        .running
        .registrar
        .set_limits("test", customer.id, minute, None)
        .await
        .unwrap();
    // The units that were leased under the other limits are returned.
    world.pass(Duration::from_secs(1));
    world
        .reaches(
            "scoregate_store_duration_seconds_count{operation=\"lease\"}",
            calls + 1,
        )
        .await;
    for _ in 0..3 {
        assert_eq!(world.get_as(&customer, MODELS).await.status, 200);
    }
    let directory = Arc::clone(&world.directory);
    assert!(world.running.stop().await.all_finished);
    let granted = sql(
        directory.path(),
        "SELECT granted FROM ledger_days WHERE day = '2026-11-22'",
    );
    assert_eq!(granted, "3\n");
}
