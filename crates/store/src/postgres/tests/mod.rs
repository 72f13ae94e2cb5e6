//! Tests the engine against a real server.

mod connections;
mod database_status;
mod deadlocks;
mod document_losses;
mod documents;
mod evidence;
mod fixtures;
mod hidden_history;
mod minutes;
mod missing_features;
mod outdated;
#[path = "../../../../../tests/servers/postgres.rs"]
mod postgres;
#[path = "../../../../../tests/servers/postgres_restarts.rs"]
mod postgres_restarts;
mod promoted_copy;
mod silent_hosts;
mod terms;
mod timelines;
mod transfer;
mod upgrade;
mod whole;

use std::{path::Path, sync::Arc, time::Duration};

use super::{connection::link::DatabaseLink, ledger::day_ledger, *};
use crate::{
    Ledger as _, LedgerExchange, LedgerReport, LocalFile, ReportOutcome, RoleName, SchemaName,
    StatusMinute, Store, StoreError, StoreResult,
    conformance::{self, an_id, created, creating, make, to_tier},
    maintenance::{DatabaseCommand, DatabaseExport},
    minute_of,
    sample::limits_set,
    statements::{SchemaClient, schema::STEPS},
};
use fixtures::*;
use postgres::{PostgresServer, new_schema, shared_server};
use scoregate_base::{
    clock::{Clock, Day, Wall},
    keys::ApplicationId,
    limits::{LimitSetting, NodeReport, NodeTotals, OwnLimits},
};

const NOON: Wall = Wall::from_seconds(1_763_726_400); // 2025-11-21T12:00:00Z

/// Nothing needs to be kept alive, because the server outlives the tests.
async fn fresh_store() -> ((), Store) {
    ((), fresh().await)
}

conformance::run_with!(fresh_store, "postgresql");

#[tokio::test]
async fn a_store_without_tables_is_refused_and_several_programs_create_them_at_once() {
    needs!("postgresql");
    let config = config();
    let missing = refusal(&config).await;
    assert!(missing.contains("scoregate store init"), "{missing}");
    let all = futures_util::future::join_all((0..6).map(|_| create_tables(config.clone()))).await;
    let created = all
        .iter()
        .filter(|change| matches!(change, TablesChange::Created(_)))
        .count();
    assert_eq!(created, 1, "{all:?}");
    open_by_clock(&config).await;
}

#[tokio::test]
async fn a_repeated_report_that_waits_for_the_first_is_granted_once() {
    needs!("postgresql");
    let store = fresh().await;
    let other = another(&store).await;
    let repeated = asks(created(&store).await, 100);
    for _ in 0..20 {
        let (one, two) = tokio::join!(
            granted(&store, repeated.clone()),
            granted(&other, repeated.clone())
        );
        assert_eq!((one, two), ((100, 100), (100, 100)));
    }
}

#[tokio::test]
async fn the_day_moves_forward_only_and_tomorrow_is_open_already() {
    needs!("postgresql");
    let store = fresh().await;
    let id = created(&store).await;
    let today = NOON.day();
    let [yesterday, tomorrow, later] =
        [today.number() - 1, today.number() + 1, today.number() + 2].map(Day::from_number);
    assert_eq!(store.day().await.unwrap(), None);
    for (clock, day, expected) in [
        (today, today, true),
        (today, tomorrow, true),
        (today, later, false),
        (today, yesterday, false),
        (tomorrow, today, false),
        (today, tomorrow, true),
        (today, today, false),
    ] {
        let reply = store.exchange(on_day(asks(id, 5), clock, day)).await;
        let is_open = matches!(reply.unwrap().outcomes[..], [ReportOutcome::Applied { .. }]);
        assert_eq!(is_open, expected, "{day} at {clock}");
    }
    assert_eq!(store.day().await.unwrap(), Some(tomorrow));
}

#[tokio::test]
async fn the_runtime_role_changes_neither_the_tables_nor_the_audit_trail() {
    needs!("postgresql");
    let runtime = runtime_role(&config()).await;
    let store = open_by_clock(&runtime).await;
    let id = created(&store).await;
    assert_eq!(
        granted_by_clock(&store, id).await,
        100,
        "the role has all privileges that a server needs"
    );
    conformance::trail(&store).await;
    conformance::messages_posted_at_once_get_numbers_of_their_own(&store).await;
    conformance::hours_of_two_nodes_become_one_day_and_a_second_merge_changes_nothing(&store).await;
    conformance::the_key_of_a_day_is_that_of_the_first_gateway(&store).await;
    let minute = minute_of(Clock::system().now().wall);
    let ready = StatusMinute {
        minute,
        is_ready: true,
        is_fresh: true,
    };
    store.record_minutes(vec![ready]).await.unwrap();
    store.delete_outdated().await.unwrap();
    let history = store.status_history(minute, minute + 1).await.unwrap();
    assert_eq!(history.days.len(), 1);
    for refused in [
        "DROP TABLE {schema}.keys",
        "ALTER TABLE {schema}.keys ADD COLUMN note text",
        "CREATE TABLE {schema}.more (id text)",
        "UPDATE {schema}.audit SET who = 'nobody'",
        "DELETE FROM {schema}.audit",
        "TRUNCATE {schema}.audit",
        "UPDATE {schema}.status_messages SET message = 'nothing'",
        "DELETE FROM {schema}.status_messages",
        "DELETE FROM {schema}.site",
    ] {
        assert!(attempt(&store, refused).await.is_err(), "{refused}");
    }
}

#[tokio::test]
async fn a_report_counts_what_is_stored_and_names_a_missing_standby() {
    needs!("postgresql");
    let config = config();
    let missing = command(&config).inspect().await;
    let missing = missing.unwrap_err().to_string();
    assert!(missing.contains("scoregate store init"), "{missing}");
    create_tables(config.clone()).await;
    let store = open_by_clock(&config).await;
    let empty = inspected(&config).await;
    assert_eq!(
        (empty.applications, empty.keys, empty.day, empty.granted),
        (0, 0, None, 0)
    );
    let id = created(&store).await;
    created(&store).await;
    granted_by_clock(&store, id).await;
    let found = inspected(&config).await;
    assert_eq!(
        (
            found.applications,
            found.keys,
            found.keys_in_force,
            found.audit
        ),
        (2, 2, 2, 2)
    );
    assert_eq!(
        (found.day.is_some(), found.granted, found.is_synchronous),
        (true, 100, false)
    );
}

#[tokio::test]
async fn a_day_opens_once_the_server_and_the_gateway_have_reached_it() {
    needs!("postgresql");
    let today = Clock::system().now().wall.day();
    let of = |by: i32| Day::from_number(today.number().checked_add_signed(by).unwrap());
    for (clock_of_gateway, current) in [(of(1), today), (of(-1), of(-1)), (today, today)] {
        let store = open_by_clock(&prepared().await).await;
        let exchange = asks(created(&store).await, 1);
        let exchange = on_day(exchange, clock_of_gateway, current);
        assert_eq!(store.exchange(exchange).await.unwrap().today, current);
        assert_eq!(store.day().await.unwrap(), Some(current));
    }
}

/// Closes the connection on which a gateway listens for changes.
const END_LISTENER: &str = "
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN {schema}_changes;%'";

#[tokio::test]
async fn a_change_made_elsewhere_is_notified_also_after_a_lost_connection() {
    needs!("postgresql");
    let store = fresh().await;
    let other = another(&store).await;
    // The first hint follows the start of listening, because no notifications were received for earlier changes.
    store.changed().await;
    created(&other).await;
    store.changed().await;
    execute(&other, END_LISTENER).await;
    store.changed().await;
    created(&other).await;
    store.changed().await;
}
