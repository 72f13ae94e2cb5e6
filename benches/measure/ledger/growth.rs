//! How a site on PostgreSQL grows: the start of a gateway with many keys, the time in which a change reaches the other
//! gateways, and the tables after the leases of a day.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use scoregate::{
    app::{self, RunningServer},
    config::{read_text, resolve},
};
use scoregate_base::{
    clock::Clock,
    keys::{ApplicationId, Digest},
};
use scoregate_store::HotTable;
use tempfile::TempDir;
use tokio_postgres::{Client, types::ToSql};

use super::{
    connect, count_as_float,
    database::Database,
    exchanges::{LeasingApplication, create, log_bytes, open},
    key_of, percentiles, status,
};

const GATEWAYS: usize = 5;
/// Rows per statement that fills the tables.
const AT_ONCE: usize = 10_000;
/// A pause between requests of a client that waits for a change.
const POLL_EVERY: Duration = Duration::from_millis(1);
/// Exchanges of an application on the Pro tier in a day: one for each 28 requests of 10,000.
const EXCHANGES_A_DAY: usize = 360;
/// Units of each, so that the day is used up at the end.
const UNITS: u32 = 28;
/// Exchanges in flight at each gateway.
const IN_FLIGHT: usize = 8;

/// The amount of work.
pub struct Growth {
    pub keys: usize,
    pub changes: usize,
    /// Applications that use their day.
    pub callers: usize,
}

pub async fn measure(growth: &Growth) {
    // A day passes in a minute or so: autovacuum looks as often as it can, still less often than for a whole day.
    let database = Database::start(&["autovacuum_naptime=1s"]).await;
    start(&database, growth.keys).await;
    propagation(&database, growth.changes).await;
    day(&database, growth.callers).await;
}

async fn gateway(database: &Database, schema: &str) -> (RunningServer, TempDir) {
    let directory = TempDir::new().unwrap();
    let settings = format!(
        "listen = \"127.0.0.1:0\"\nupstream = \"built-in\"\ndata_dir = \"{}\"\n[admin]\nlisten = \"127.0.0.1:0\"\n\
         [guard]\nper_minute = 100000000\n[store]\nurl = \"{}\"\nschema = \"{schema}\"\ngateways = {GATEWAYS}\n\
         timeout = \"60s\"\n",
        directory.path().display(),
        database.url(),
    );
    let config = resolve(&read_text(&settings).unwrap()).unwrap();
    (
        Box::pin(app::start(config, Clock::system())).await.unwrap(),
        directory,
    )
}

async fn start(database: &Database, keys: usize) {
    database.tables("many").await;
    let client = database.client().await;
    let filling = Instant::now();
    for first in (0..keys).step_by(AT_ONCE) {
        let numbers = first..(first + AT_ONCE).min(keys);
        let ids: Vec<String> = numbers
            .clone()
            .map(|_| ApplicationId::mint().unwrap().to_string())
            .collect();
        let digests: Vec<Vec<u8>> = numbers
            .map(|number| Digest::of(&number.to_string()).as_bytes().to_vec())
            .collect();
        let fill: [(&str, &[&(dyn ToSql + Sync)]); 2] = [
            (
                "INSERT INTO many.applications (id, name, tier, created_at)
                 SELECT id, 'application', 'pro', 1795219200000 FROM unnest($1::text[]) id",
                &[&ids],
            ),
            (
                "INSERT INTO many.keys (digest, application, shown, created_at)
                 SELECT digest, id, 'sg_live_0000', 1795219200000 FROM unnest($1::text[], $2::bytea[]) r (id, digest)",
                &[&ids, &digests],
            ),
        ];
        for (statement, values) in fill {
            client.execute(statement, values).await.unwrap();
        }
    }
    client.batch_execute("VACUUM ANALYZE").await.unwrap();
    println!(
        "\n{keys} applications with a key each in PostgreSQL, inserted in {:.1?}",
        filling.elapsed()
    );
    for _ in 0..3 {
        let began = Instant::now();
        let (running, _directory) = gateway(database, "many").await;
        let took = began.elapsed();
        assert_eq!(running.gateway().key_directory.len(), keys);
        println!("  a start until requests are answered: {took:.2?}");
        running.stop().await;
    }
}

async fn propagation(database: &Database, changes: usize) {
    database.tables("fleet").await;
    let mut gateways = Vec::new();
    for _ in 0..GATEWAYS {
        gateways.push(gateway(database, "fleet").await);
    }
    let mut made = Vec::new();
    let mut each = Vec::new();
    let mut last = Vec::new();
    for number in 0..changes {
        let (here, _) = &gateways[number % GATEWAYS];
        let others = gateways
            .iter()
            .map(|(running, _)| running)
            .filter(|other| other.public != here.public);
        let others: Vec<_> = others.collect();
        let issued = key_of(here, "enterprise", 1_000_000_000).await;
        let key = issued.key.expose();
        join_all(others.iter().map(|other| reaches(other, key, 200))).await;
        let began = Instant::now();
        let revoke = async {
            here.registrar
                .revoke("bench", issued.application.id, None)
                .await
                .unwrap();
            began.elapsed()
        };
        let refused = others.iter().map(async |other| {
            reaches(other, key, 401).await;
            began.elapsed()
        });
        let (own, elsewhere) = tokio::join!(revoke, join_all(refused));
        made.push(own);
        last.push(elsewhere.iter().copied().max().unwrap());
        each.extend(elsewhere);
    }
    println!(
        "\na revoked key on {GATEWAYS} gateways, {changes} times, from the request of the change"
    );
    println!("{:>40} {:>10} {:>10} {:>10}", "", "p50", "p99", "p99.9");
    let rows = [
        ("durable", made),
        ("refused at another gateway", each),
        ("refused at the last gateway", last),
    ];
    for (name, took) in rows {
        let [p50, p99, p999] = percentiles(took);
        println!("{name:>40} {p50:>10.1?} {p99:>10.1?} {p999:>10.1?}");
    }
    for (running, _directory) in gateways {
        running.stop().await;
    }
}

/// Sends requests until one has this status.
async fn reaches(running: &RunningServer, key: &str, wanted: u16) {
    let mut connection = connect(running.public).await;
    loop {
        let found = status(&mut connection, key).await;
        if found == wanted {
            return;
        }
        tokio::time::sleep(POLL_EVERY).await;
        // A refused key may cost the connection.
        if found != 200 {
            connection = connect(running.public).await;
        }
    }
}

async fn day(database: &Database, callers: usize) {
    let config = database.tables("day").await;
    let stores = open(&config, GATEWAYS).await;
    let ids = create(&stores[0], callers).await;
    let client = database.client().await;
    let exchanges = callers * EXCHANGES_A_DAY;
    println!(
        "\na day of {callers} callers on the Pro tier: {exchanges} exchanges with units and minutes, at {GATEWAYS} gateways"
    );
    println!(
        "{:>14} {:>10} {:>10} {:>10} {:>12} {:>12} {:>12}",
        "", "live rows", "dead rows", "updated", "heap-only", "table", "indexes"
    );
    let began = Instant::now();
    let log_before = log_bytes(&client).await;
    let mut leasing: Vec<Vec<LeasingApplication>> = Vec::new();
    for node in 1..=u64::try_from(GATEWAYS).unwrap() {
        leasing.push(
            ids.iter()
                .map(|id| LeasingApplication {
                    id: *id,
                    node,
                    granted: 0,
                })
                .collect(),
        );
    }
    for quarter in 1..=4 {
        let at_gateways = stores
            .iter()
            .zip(&mut leasing)
            .map(async |(store, applications)| {
                let part = applications.len().div_ceil(IN_FLIGHT);
                let workers = applications.chunks_mut(part).map(async |own| {
                    for _ in 0..EXCHANGES_A_DAY / 4 / GATEWAYS {
                        for application in own.iter_mut() {
                            application.exchange(store, UNITS, true).await;
                        }
                    }
                });
                join_all(workers).await;
            });
        join_all(at_gateways).await;
        println!("  after {} hours, in {:.1?}", quarter * 6, began.elapsed());
        tables(&client).await;
    }
    let seconds = began.elapsed().as_secs_f64();
    let log = log_bytes(&client).await - log_before;
    let done = count_as_float(u64::try_from(exchanges).unwrap());
    println!(
        "  {:.0} exchanges a second, {:.0} bytes of log for each",
        done / seconds,
        log / done
    );
    client.batch_execute("VACUUM FULL").await.unwrap();
    println!("  written anew");
    tables(&client).await;
}

/// The hot tables of the schema `day`.
async fn tables(client: &Client) {
    for table in HotTable::ALL {
        let found = client
            .query_one(
                "SELECT n_live_tup, n_dead_tup, n_tup_upd, n_tup_hot_upd,
                        pg_table_size(relid), pg_indexes_size(relid)
                 FROM pg_stat_user_tables WHERE schemaname = 'day' AND relname = $1",
                &[&table.name()],
            )
            .await
            .unwrap();
        let number =
            |column: usize| count_as_float(u64::try_from(found.get::<_, i64>(column)).unwrap());
        let heap_only = if number(2) > 0.0 {
            number(3) / number(2) * 100.0
        } else {
            0.0
        };
        println!(
            "{:>14} {:>10} {:>10} {:>10} {heap_only:>10.1} % {:>8.0} KiB {:>8.0} KiB",
            table.name(),
            number(0),
            number(1),
            number(2),
            number(4) / 1_024.0,
            number(5) / 1_024.0,
        );
    }
}
