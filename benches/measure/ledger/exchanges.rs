//! Exchanges of the ledger with PostgreSQL: the statements that gateways send, with a local commit and with a
//! synchronous standby, on one connection and many.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use scoregate_base::{
    clock::Clock,
    keys::ApplicationId,
    limits::{MinuteReport, NodeReport},
};
use scoregate_store::{
    DatabaseConfig, Ledger as _, LedgerExchange, LedgerReport, ReportOutcome, SeenTimelines, Store,
};
use tokio_postgres::Client;

use super::{count_as_float, creating, database::Database, percentiles};

/// Connections, and the reports that wait concurrently on each.
struct Load {
    connections: usize,
    on_each: usize,
    is_one_application: bool,
}

const LOADS: [Load; 5] = [
    Load {
        connections: 1,
        on_each: 1,
        is_one_application: false,
    },
    Load {
        connections: 1,
        on_each: 64,
        is_one_application: false,
    },
    Load {
        connections: 16,
        on_each: 1,
        is_one_application: false,
    },
    Load {
        connections: 16,
        on_each: 16,
        is_one_application: false,
    },
    Load {
        connections: 16,
        on_each: 1,
        is_one_application: true,
    },
];

/// An application at one gateway: it reports its totals again and again.
pub struct LeasingApplication {
    pub id: ApplicationId,
    pub node: u64,
    pub granted: u32,
}

impl LeasingApplication {
    /// The next report: it leases `units`, and renews tokens of the minute if there are minutes.
    pub fn next(&mut self, units: u32, has_minutes: bool) -> LedgerExchange {
        self.granted += units;
        let today = Clock::system().now().wall.day();
        let totals = NodeReport {
            granted: self.granted,
            quota: u32::MAX,
            ..NodeReport::default()
        };
        let minute = MinuteReport {
            held: 100,
            returned: 0,
            wanted: 0,
            unused_for: Duration::ZERO,
            limit: 100_000,
        };
        let report = LedgerReport::of_units(self.id, today, totals);
        let report = LedgerReport {
            minute: has_minutes.then_some(minute),
            ..report
        };
        LedgerExchange {
            node: self.node,
            today,
            reports: vec![report],
        }
    }

    /// Exchanges the next report.
    pub async fn exchange(&mut self, store: &Store, units: u32, has_minutes: bool) {
        let reply = store.exchange(self.next(units, has_minutes)).await.unwrap();
        assert!(
            matches!(reply.outcomes[..], [ReportOutcome::Applied { .. }]),
            "{reply:?}"
        );
    }
}

/// Stores with a connection each.
pub async fn open(config: &DatabaseConfig, connections: usize) -> Vec<Store> {
    let opened = (0..connections).map(|_| async {
        let seen = SeenTimelines::default();
        let store = Store::in_database(config.clone(), Clock::system(), seen);
        store.check().await.unwrap();
        store
    });
    join_all(opened).await
}

/// Creates applications with a key each.
pub async fn create(store: &Store, applications: usize) -> Vec<ApplicationId> {
    let mut ids = Vec::new();
    for number in 0..applications {
        ids.push(store.change(creating(number)).await.unwrap().id);
    }
    ids
}

/// Bytes of write-ahead log so far.
pub async fn log_bytes(client: &Client) -> f64 {
    let position = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8";
    client.query_one(position, &[]).await.unwrap().get(0)
}

/// All loads, on one server and with a standby.
pub async fn measure(each: Duration) {
    let mut database = Database::start(&[]).await;
    println!("\nexchanges with PostgreSQL, each report durable before it is answered");
    println!(
        "{:>28} {:>12} {:>8} {:>12} {:>14} {:>10} {:>10} {:>10} {:>10}",
        "",
        "connections",
        "on each",
        "reports/s",
        "transactions/s",
        "p50",
        "p99",
        "p99.9",
        "log/report"
    );
    for is_replicated in [false, true] {
        if is_replicated {
            database.replicate().await;
        }
        for has_minutes in [false, true] {
            for (number, load) in LOADS.iter().enumerate() {
                let schema = format!(
                    "rate_{number}_{}_{}",
                    u8::from(is_replicated),
                    u8::from(has_minutes)
                );
                let config = database.tables(&schema).await;
                let replicated = if is_replicated { "standby" } else { "local" };
                let leased = if has_minutes {
                    "units and minutes"
                } else {
                    "units"
                };
                let one = if load.is_one_application {
                    " of one"
                } else {
                    ""
                };
                print!("{:>28}", format!("{replicated}, {leased}{one}"));
                rate(&database, &config, load, has_minutes, each).await;
            }
        }
    }
}

async fn rate(
    database: &Database,
    config: &DatabaseConfig,
    load: &Load,
    has_minutes: bool,
    each: Duration,
) {
    let stores = open(config, load.connections).await;
    let wanted = if load.is_one_application {
        1
    } else {
        load.connections * load.on_each
    };
    let ids = create(&stores[0], wanted).await;
    let client = database.client().await;
    let log_before = log_bytes(&client).await;
    let began = Instant::now();
    let mut askers = Vec::new();
    for number in 0..load.connections * load.on_each {
        let store = &stores[number % load.connections];
        let node = number % load.connections;
        let node = u64::try_from(node).unwrap() + 1;
        let mut application = LeasingApplication {
            id: ids[number % ids.len()],
            node,
            granted: 0,
        };
        askers.push(async move {
            let mut took = Vec::new();
            while began.elapsed() < each {
                let asked = Instant::now();
                application.exchange(store, 1, has_minutes).await;
                took.push(asked.elapsed());
            }
            took
        });
    }
    let took = join_all(askers).await.concat();
    let seconds = began.elapsed().as_secs_f64();
    let log = log_bytes(&client).await - log_before;
    let transactions: u64 = stores
        .iter()
        .map(|store| store.exchange_counts().transactions)
        .sum();
    let reports = count_as_float(u64::try_from(took.len()).unwrap());
    let [p50, p99, p999] = percentiles(took);
    println!(
        " {:>12} {:>8} {:>12.0} {:>14.0} {p50:>10.1?} {p99:>10.1?} {p999:>10.1?} {:>8.0} B",
        load.connections,
        load.on_each,
        reports / seconds,
        count_as_float(transactions) / seconds,
        log / reports,
    );
}
