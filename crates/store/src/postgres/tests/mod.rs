//! The engine against a real server.

mod connections;
mod database_status;
mod deadlocks;
mod document_losses;
mod documents;
mod evidence;
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

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::connection::link::DatabaseLink;
use super::connection::schema_client::SchemaClient;
use super::ledger::day_ledger;
use super::*;
use crate::conformance;
use crate::sql::schema::STEPS;
use crate::{
    AuditQuery, ChangeFeed as _, ChangeKind, KeyStore as _, Ledger as _, LedgerExchange,
    LedgerExchangeReply, LedgerReport, LocalFile, OwnLimits, ReportOutcome, StatusMinute,
    StatusStore as _, StoreChange, StoredKey, minute_of, sample,
};
use postgres::{new_schema, shared_server};
use scoregate_base::clock::{Clock, Day, Wall};
use scoregate_base::keys::ApplicationId;
use scoregate_base::limits::{DayTotals, NodeReport, NodeTotals};

const NOON: Wall = Wall::from_seconds(1_763_726_400); // 2025-11-21T12:00:00Z

fn config() -> DatabaseConfig {
    DatabaseConfig {
        servers: vec![shared_server().url().parse().unwrap()],
        listen_servers: vec![shared_server().url().parse().unwrap()],
        password: None,
        tls: None,
        schema: SchemaName::parse(&new_schema()).unwrap(),
        timeout: Duration::from_secs(20),
    }
}

async fn create_tables(config: DatabaseConfig) -> TablesChange {
    PostgresStore::change_tables(config, Clock::system(), TablesWork::Create, None)
        .await
        .unwrap()
}

impl PostgresStore {
    /// With `ignores_clock` the day of each exchange is used alone.
    pub(crate) async fn open_with(
        config: DatabaseConfig,
        clock: Clock,
        ignores_clock: bool,
    ) -> Result<Self, crate::StoreError> {
        let store = Self::connecting(config, clock, SeenTimelines::default(), ignores_clock);
        store.check().await?;
        Ok(store)
    }
}

/// The timelines of a data directory.
fn kept_in(directory: &Path) -> SeenTimelines {
    SeenTimelines::kept_in(Arc::new(LocalFile::open(directory).unwrap())).unwrap()
}

/// A store with new tables, in which the tests set the day.
async fn fresh() -> PostgresStore {
    let config = config();
    create_tables(config.clone()).await;
    PostgresStore::open_with(config, Clock::system(), true)
        .await
        .unwrap()
}

/// There is nothing to keep: the server outlives the tests.
async fn fresh_store() -> ((), PostgresStore) {
    ((), fresh().await)
}

conformance::run_with!(fresh_store, "postgresql");

/// Creates an application.
fn creation() -> StoreChange {
    let application = ApplicationId::mint().unwrap();
    let key = StoredKey {
        created_at: NOON,
        ..sample::key(&application.to_string())
    };
    let what = sample::creation("pro", key);
    StoreChange {
        at: NOON,
        who: "a test".into(),
        owner: None,
        application,
        what,
        notice: None,
    }
}

async fn created(store: &PostgresStore) -> ApplicationId {
    store.change(creation()).await.unwrap().id
}

fn report(
    application: ApplicationId,
    node: u64,
    known: NodeTotals,
    granted: u32,
) -> LedgerExchange {
    let totals = NodeReport {
        known,
        granted,
        quota: 500,
    };
    let day = NOON.day();
    LedgerExchange {
        node,
        today: day,
        reports: vec![LedgerReport::of_units(application, day, totals)],
    }
}

async fn granted(store: &PostgresStore, exchange: LedgerExchange) -> (u32, u64) {
    match store.exchange(exchange).await.unwrap().outcomes[..] {
        [ReportOutcome::Applied { node, granted, .. }] => (node.granted, granted),
        ref other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_store_without_tables_is_refused_and_several_programs_create_them_at_once() {
    needs!("postgresql");
    let config = config();
    let missing = PostgresStore::open(config.clone(), Clock::system())
        .await
        .err()
        .unwrap();
    assert!(
        missing.to_string().contains("scoregate store init"),
        "{missing}"
    );
    let all = futures_util::future::join_all((0..6).map(|_| create_tables(config.clone()))).await;
    let created = all
        .iter()
        .filter(|change| matches!(change, TablesChange::Created(_)))
        .count();
    assert_eq!(created, 1, "{all:?}");
    PostgresStore::open(config, Clock::system()).await.unwrap();
}

#[tokio::test]
async fn a_repeated_report_that_waits_for_the_first_is_granted_once() {
    needs!("postgresql");
    let store = fresh().await;
    let other = PostgresStore::open_with((*store.config).clone(), Clock::system(), true)
        .await
        .unwrap();
    let id = created(&store).await;
    let repeated = report(id, 1, NodeTotals::default(), 100);
    for _ in 0..20 {
        let (one, two) = tokio::join!(
            granted(&store, repeated.clone()),
            granted(&other, repeated.clone())
        );
        assert_eq!((one, two), ((100, 100), (100, 100)));
    }
}

#[tokio::test]
async fn many_nodes_at_once_never_get_more_than_the_quota() {
    needs!("postgresql");
    let store = fresh().await;
    let id = created(&store).await;
    let asks = (0..300).map(|node| granted(&store, report(id, node, NodeTotals::default(), 3)));
    let all = futures_util::future::join_all(asks).await;
    assert_eq!(all.iter().map(|(units, _)| units).sum::<u32>(), 500);
}

#[test]
fn the_statements_follow_the_rules() {
    needs!("postgresql");
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let store = runtime.block_on(fresh());
    let totals = || (0u32..20, 0u32..20);
    let reports = prop::collection::vec((0u64..3, totals(), 0u32..25, 0u32..900), 1..12);
    let config = Config {
        cases: 60,
        failure_persistence: None,
        ..Config::default()
    };
    let held = TestRunner::new(config).run(&reports, |reports| {
        runtime.block_on(async {
            let application = created(&store).await;
            let mut day = DayTotals::default();
            let mut nodes = [NodeTotals::default(); 3];
            for (node, (granted, returned), want, quota) in reports {
                // A node returns only what it was granted.
                let returned = returned.min(granted);
                let known = NodeTotals { granted, returned };
                let totals = NodeReport {
                    known,
                    granted: want,
                    quota,
                };
                let row = &mut nodes[usize::try_from(node).unwrap()];
                (day, *row) = day.apply(*row, &totals);
                let reports = vec![LedgerReport::of_units(application, NOON.day(), totals)];
                let exchange = LedgerExchange {
                    node,
                    today: NOON.day(),
                    reports,
                };
                let outcomes = store.exchange(exchange).await.unwrap().outcomes;
                let applied = ReportOutcome::Applied {
                    node: *row,
                    granted: day.granted,
                    has_outdated_terms: false,
                };
                prop_assert_eq!(outcomes, [applied]);
            }
            Ok(())
        })
    });
    held.unwrap();
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
    let at = |clock: Day, day: Day| {
        let mut exchange = report(id, 1, NodeTotals::default(), 5);
        (exchange.today, exchange.reports[0].day) = (clock, day);
        store.exchange(exchange)
    };
    let is_open =
        |reply: &LedgerExchangeReply| matches!(reply.outcomes[..], [ReportOutcome::Applied { .. }]);
    for (clock, day, expected) in [
        (today, today, true),
        (today, tomorrow, true),
        (today, later, false),
        (today, yesterday, false),
        (tomorrow, today, false),
        (today, tomorrow, true),
        (today, today, false),
    ] {
        let reply = at(clock, day).await.unwrap();
        assert_eq!(is_open(&reply), expected, "{day} at {clock}");
    }
    assert_eq!(store.day().await.unwrap(), Some(tomorrow));
}

#[tokio::test]
async fn an_exchange_reports_unknown_applications_and_keeps_the_order_of_its_reports() {
    needs!("postgresql");
    let store = fresh().await;
    let one = created(&store).await;
    let two = created(&store).await;
    let unknown = ApplicationId::mint().unwrap();
    let mut exchange = report(two, 1, NodeTotals::default(), 5);
    exchange
        .reports
        .extend(report(unknown, 1, NodeTotals::default(), 5).reports);
    exchange
        .reports
        .extend(report(one, 1, NodeTotals::default(), 7).reports);
    let outcomes = store.exchange(exchange).await.unwrap().outcomes;
    let units: Vec<Option<u32>> = outcomes
        .iter()
        .map(|outcome| match outcome {
            ReportOutcome::Applied { node, .. } => Some(node.granted),
            ReportOutcome::Closed | ReportOutcome::UnknownApplication => None,
        })
        .collect();
    assert_eq!(units, [Some(5), None, Some(7)]);
    assert_eq!(outcomes[1], ReportOutcome::UnknownApplication);
}

#[tokio::test]
async fn the_runtime_role_changes_neither_the_tables_nor_the_audit_trail() {
    needs!("postgresql");
    let config = config();
    let role = format!("runtime_of_{}", config.schema.statement("{schema}"));
    let owner = DatabaseLink::new(Arc::new(config.clone()), Clock::system());
    let as_owner = async |statement: String| {
        owner
            .run("prepare a test", async |client| {
                client.batch_execute(&statement).await
            })
            .await
    };
    as_owner(format!("CREATE ROLE {role} LOGIN")).await.unwrap();
    let granted = RoleName::parse(&role).unwrap();
    let work = TablesWork::Create;
    PostgresStore::change_tables(config.clone(), Clock::system(), work, Some(granted))
        .await
        .unwrap();

    let mut runtime = config.clone();
    runtime.servers[0].user(&role);
    let store = PostgresStore::open(runtime.clone(), Clock::system())
        .await
        .unwrap();
    let id = created(&store).await;
    assert_eq!(
        granted_by_clock(&store, id).await,
        100,
        "it can do what a server does"
    );
    store.audit(AuditQuery::default()).await.unwrap();
    conformance::messages_posted_at_once_get_numbers_of_their_own(&store).await;
    conformance::hours_of_two_nodes_become_one_day_and_a_second_merge_changes_nothing(&store).await;
    conformance::the_key_of_a_day_is_that_of_the_first_gateway(&store).await;
    let minute = minute_of(Clock::system().now().wall);
    store
        .record_minutes(vec![StatusMinute {
            minute,
            is_ready: true,
            is_fresh: true,
        }])
        .await
        .unwrap();
    store.delete_outdated().await.unwrap();
    assert_eq!(
        store
            .status_history(minute, minute + 1)
            .await
            .unwrap()
            .days
            .len(),
        1
    );
    let link = DatabaseLink::new(Arc::new(runtime), Clock::system());
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
        let statement = config.schema.statement(refused);
        let done = link
            .run("try", async |client| client.batch_execute(&statement).await)
            .await;
        assert!(done.is_err(), "{statement}");
    }
}

async fn granted_by_clock(store: &PostgresStore, id: ApplicationId) -> u32 {
    let mut exchange = report(id, 1, NodeTotals::default(), 100);
    let today = Clock::system().now().wall.day();
    (exchange.today, exchange.reports[0].day) = (today, today);
    granted(store, exchange).await.0
}

#[tokio::test]
async fn a_report_counts_what_is_stored_and_names_a_missing_standby() {
    needs!("postgresql");
    let config = config();
    let missing = PostgresStore::inspect(config.clone(), Clock::system())
        .await
        .unwrap_err();
    assert!(
        missing.to_string().contains("scoregate store init"),
        "{missing}"
    );
    create_tables(config.clone()).await;
    let store = PostgresStore::open(config.clone(), Clock::system())
        .await
        .unwrap();
    let empty = PostgresStore::inspect(config.clone(), Clock::system())
        .await
        .unwrap();
    assert_eq!(
        (empty.applications, empty.keys, empty.day, empty.granted),
        (0, 0, None, 0)
    );
    let id = created(&store).await;
    created(&store).await;
    granted_by_clock(&store, id).await;
    let found = PostgresStore::inspect(config, Clock::system())
        .await
        .unwrap();
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
    let of = |day: Day, by: i32| Day::from_number(day.number().checked_add_signed(by).unwrap());
    for (clock_of_gateway, current) in [
        (of(today, 1), today),
        (of(today, -1), of(today, -1)),
        (today, today),
    ] {
        let config = config();
        create_tables(config.clone()).await;
        let store = PostgresStore::open(config, Clock::system()).await.unwrap();
        let mut exchange = report(created(&store).await, 1, NodeTotals::default(), 1);
        (exchange.today, exchange.reports[0].day) = (clock_of_gateway, current);
        let reply = store.exchange(exchange).await.unwrap();
        assert_eq!(
            (reply.today, store.day().await.unwrap()),
            (current, Some(current))
        );
    }
}

#[tokio::test]
async fn a_change_made_elsewhere_is_notified_also_after_a_lost_connection() {
    needs!("postgresql");
    let config = config();
    create_tables(config.clone()).await;
    let store = PostgresStore::open(config.clone(), Clock::system())
        .await
        .unwrap();
    let other = PostgresStore::open(config.clone(), Clock::system())
        .await
        .unwrap();
    // Once when it begins to listen: earlier changes were not notified.
    store.changed().await.unwrap();
    created(&other).await;
    store.changed().await.unwrap();

    let listeners = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN {schema}_changes;%'";
    let statement = config.schema.statement(listeners);
    let link = DatabaseLink::new(Arc::new(config), Clock::system());
    let ended = link
        .run("end the listener", async |client| {
            client.query(&statement, &[]).await
        })
        .await;
    assert_eq!(ended.unwrap().len(), 1);
    store.changed().await.unwrap();
    created(&other).await;
    store.changed().await.unwrap();
}
