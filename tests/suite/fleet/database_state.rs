//! The metrics of a gateway about its database.

use std::time::Duration;

use super::*;
use crate::{load_clients::Reply, program::BUILT_IN};

const EVERY: Duration = Duration::from_millis(100);
/// Enough polls for the interval between readings plus the delay of the server's statistics.
const POLLS: u32 = 900;

/// The value of a series.
pub fn value(side: SocketAddr, series: &str) -> u64 {
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
async fn the_metrics_show_a_missing_standby_rows_and_the_exchanges_of_the_ledger() {
    needs!("postgresql");
    let site = Site::new();
    let (_, key) = site.create_with(&["--tier", "free", "--minute", "1000", "--day", "99"]);
    let gateway = site.gateway();
    let mut connection = Wire::open(gateway.public).unwrap();
    // On the Free tier each request leases its unit.
    for _ in 0..20 {
        assert_eq!(connection.get(TARGET, &key).status_and_code().0, 200);
    }
    for (series, least) in [
        ("scoregate_store_standby_missing", 1),
        ("scoregate_store_exchanges_total", 20),
        ("scoregate_store_exchange_reports_total", 20),
        ("scoregate_store_live_rows{table=\"keys\"}", 1),
        ("scoregate_store_dead_rows{table=\"ledger_days\"}", 1),
        (
            "scoregate_store_duration_seconds_count{operation=\"lease\"}",
            20,
        ),
    ] {
        reaches(gateway.side, series, least).await;
    }
    gateway.program.stop().with(0);
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
