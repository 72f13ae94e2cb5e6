//! The metrics of a gateway about its database.

use std::time::Duration;

use super::*;
use crate::load_clients::Reply;
use crate::program::BUILT_IN;

const EVERY: Duration = Duration::from_millis(100);
/// More than the interval between readings, and the delay with which the server reports its statistics.
const POLLS: u32 = 900;

/// The value of a series.
pub(super) fn value(side: SocketAddr, series: &str) -> u64 {
    let Reply::Response { body, .. } = Wire::open(side).unwrap().get("/metrics", "") else {
        panic!("no metrics")
    };
    let line = body
        .lines()
        .find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {series} in {body}"))
        .parse()
        .unwrap()
}

/// Waits until a series has at least this value.
async fn reaches(side: SocketAddr, series: &str, least: u64) {
    let clock = Clock::system();
    for _ in 0..POLLS {
        if value(side, series) >= least {
            return;
        }
        clock.sleep(EVERY).await;
    }
    panic!("{series} is {}", value(side, series));
}

#[tokio::test]
async fn the_metrics_show_a_missing_standby_dead_rows_and_the_exchanges_of_the_ledger() {
    needs!("postgresql");
    let server = PostgresServer::start(&["fsync=off", "autovacuum=off"]);
    let site = Site {
        url: server.url(),
        schema: new_schema(),
    };
    run_with(&["store", "init"], &site.environment()).with(0);
    let (_, key) = site.create_with(&["--tier", "free", "--minute", "1000", "--day", "99"]);
    let (client, connection) = tokio_postgres::connect(&server.url(), tokio_postgres::NoTls)
        .await
        .unwrap();
    let driver = tokio::spawn(connection);
    // No standby has this name, so commits would wait for ever. There are none before the setting is gone.
    for statement in [
        "ALTER SYSTEM SET synchronous_standby_names = 'nobody'",
        "SELECT pg_reload_conf()",
    ] {
        client.batch_execute(statement).await.unwrap();
    }
    let shown = async || {
        client
            .query_one("SHOW synchronous_standby_names", &[])
            .await
            .unwrap()
    };
    while shown().await.get::<_, &str>(0) != "nobody" {}

    let data_dir = TempDir::new().unwrap();
    let program = Program::serve(data_dir.path(), &site.environment());
    let (public, admin) = program.ports();
    reaches(admin, "scoregate_store_live_rows{table=\"keys\"}", 1).await;
    assert_eq!(value(admin, "scoregate_store_standby_missing"), 0);
    for statement in [
        "ALTER SYSTEM RESET synchronous_standby_names",
        "SELECT pg_reload_conf()",
    ] {
        client.batch_execute(statement).await.unwrap();
    }

    let mut connection = Wire::open(public).unwrap();
    // On this tier each request leases its unit.
    let replies: Vec<_> = (0..20)
        .map(|_| connection.get(TARGET, &key).status_and_code())
        .collect();
    assert!(
        replies.iter().all(|(status, _)| *status == 200),
        "{replies:?}"
    );
    reaches(admin, "scoregate_store_standby_missing", 1).await;
    reaches(admin, "scoregate_store_exchanges_total", 20).await;
    reaches(admin, "scoregate_store_exchange_reports_total", 20).await;
    for table in ["ledger_days", "ledger_nodes", "minute_pools"] {
        reaches(
            admin,
            &format!("scoregate_store_dead_rows{{table=\"{table}\"}}"),
            1,
        )
        .await;
        assert_eq!(
            value(
                admin,
                &format!("scoregate_store_live_rows{{table=\"{table}\"}}")
            ),
            1
        );
    }
    assert_eq!(
        value(admin, "scoregate_store_failures_total{operation=\"lease\"}"),
        0
    );
    assert!(
        value(
            admin,
            "scoregate_store_duration_seconds_count{operation=\"lease\"}"
        ) >= 20
    );
    program.stop().with(0);
    driver.abort();
}

#[test]
fn only_a_gateway_with_a_store_of_its_own_reports_the_time_of_the_last_backup() {
    needs!("postgresql");
    let scrape = |environment: &[(&str, &str)]| {
        let gateway = Site::start(environment);
        let Reply::Response { body, .. } = Wire::open(gateway.side).unwrap().get("/metrics", "")
        else {
            panic!("no metrics")
        };
        gateway.program.stop().with(0);
        body.contains("\nscoregate_last_backup_timestamp_seconds ")
    };
    let reports = (scrape(&BUILT_IN), scrape(&Site::new().environment()));
    assert_eq!(
        reports,
        (true, false),
        "the backup of a database is not made by the gateway"
    );
}
