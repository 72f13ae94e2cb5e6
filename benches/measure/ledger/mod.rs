//! The cost of durability: commits per second and their latency by concurrency; the time a start needs to load all
//! keys; and the cost of an exact daily quota per hit. The same for a shared store on PostgreSQL, and how a site on it
//! grows.
//!
//! `cargo bench --bench measure -- ledger` is small; `SCOREGATE_FULL=1` makes it large. With `file`, `exchanges` or
//! `growth` after
//! it only a part runs. Everything is in the temporary directory: set TMPDIR to a real disk.

mod database;
mod exchanges;
mod growth;

use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::future::join_all;
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use scoregate::{
    app,
    config::{read_text, resolve},
    registry::{IssuedKey, NewApplication},
};
use scoregate_base::{
    clock::{Clock, Day, Wall},
    keys::ApplicationId,
    limits::{LimitSetting, NodeReport, OwnLimits},
};
use scoregate_store::{
    Ledger as _, LedgerExchange, LedgerReport, Store, StoreChange, StoredKey, sample,
};
use tempfile::TempDir;

/// As many hits as the smallest daily quota allows; each round has callers of its own.
const ROUND: usize = 90;
const TODAY: Day = Day::from_number(20_778);

struct Size {
    leases: usize,
    applications: usize,
    hits: usize,
    /// Time of each load on PostgreSQL.
    each: Duration,
    growth: growth::Growth,
}

pub fn run(parts: &[String]) {
    let is_full = std::env::var_os("SCOREGATE_FULL").is_some();
    let size = if is_full {
        let growth = growth::Growth {
            keys: 1_000_000,
            changes: 500,
            callers: 1_000,
        };
        Size {
            leases: 50_000,
            applications: 1_000_000,
            hits: 50_000,
            each: Duration::from_secs(5),
            growth,
        }
    } else {
        let growth = growth::Growth {
            keys: 1_000,
            changes: 3,
            callers: 8,
        };
        Size {
            leases: 256,
            applications: 2_000,
            hits: 400,
            each: Duration::from_millis(100),
            growth,
        }
    };
    let runs = |part: &str| parts.is_empty() || parts.iter().any(|named| named == part);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        if runs("file") {
            commits(&size).await;
            start(&size).await;
            hits(&size).await;
        }
        if database::programs().is_none() {
            println!("\nPostgreSQL is not installed, so the shared store is skipped; on Debian: apt-get install postgresql");
            return;
        }
        if runs("exchanges") {
            Box::pin(exchanges::measure(size.each)).await;
        }
        if runs("growth") {
            Box::pin(growth::measure(&size.growth)).await;
        }
    });
}

/// A new application with a key, as `keys create` makes one.
fn creating(number: usize) -> StoreChange {
    let at = Wall::from_seconds(1_795_219_200);
    let key = StoredKey {
        created_at: at,
        ..sample::key(&number.to_string())
    };
    let what = sample::creation("pro", key);
    StoreChange {
        at,
        who: "bench".into(),
        owner: None,
        application: ApplicationId::mint().unwrap(),
        what,
        notice: None,
    }
}

/// Creates applications and returns their ids.
async fn fill(store: &Store, applications: usize) -> Vec<ApplicationId> {
    let mut ids = Vec::with_capacity(applications);
    for first in (0..applications).step_by(1_000) {
        let changes =
            (first..(first + 1_000).min(applications)).map(|number| store.change(creating(number)));
        ids.extend(
            join_all(changes)
                .await
                .into_iter()
                .map(|made| made.unwrap().id),
        );
    }
    ids
}

async fn commits(size: &Size) {
    println!("leases, each durable before it is answered");
    println!(
        "{:>8} {:>12} {:>12} {:>10} {:>10} {:>10}",
        "concurrent", "leases/s", "commits/s", "p50", "p99", "p99.9"
    );
    for at_once in [1, 8, 64, 512] {
        let directory = TempDir::new().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let ids = fill(&store, at_once).await;
        let each = (size.leases / at_once).max(2);
        let before = store.commits();
        let started = Instant::now();
        let asker = |id: ApplicationId| {
            let store = &store;
            async move {
                let mut took = Vec::with_capacity(each);
                for granted in 1..=u32::try_from(each).unwrap() {
                    let asked = Instant::now();
                    let totals = NodeReport {
                        granted,
                        quota: u32::MAX,
                        ..NodeReport::default()
                    };
                    let report = LedgerReport::of_units(id, TODAY, totals);
                    let exchange = LedgerExchange {
                        node: 1,
                        today: TODAY,
                        reports: vec![report],
                    };
                    store.exchange(exchange).await.unwrap();
                    took.push(asked.elapsed());
                }
                took
            }
        };
        let took = join_all(ids.into_iter().map(asker)).await.concat();
        let seconds = started.elapsed().as_secs_f64();
        let rate = |count: u64| count_as_float(count) / seconds;
        let [p50, p99, p999] = percentiles(took);
        println!(
            "{at_once:>8} {:>12.0} {:>12.0} {p50:>10.1?} {p99:>10.1?} {p999:>10.1?}",
            rate(u64::try_from(at_once * each).unwrap()),
            rate(store.commits() - before),
        );
    }
}

async fn start(size: &Size) {
    let directory = TempDir::new().unwrap();
    let store = Store::open(directory.path()).unwrap();
    let filling = Instant::now();
    fill(&store, size.applications).await;
    let filled = filling.elapsed();
    drop(store);
    println!(
        "\n{} applications with a key each, created in {filled:.1?}",
        size.applications
    );
    for _ in 0..3 {
        let began = Instant::now();
        let running = running(&directory).await;
        let took = began.elapsed();
        println!("  a start until requests are answered: {took:.2?}");
        running.stop().await;
    }
}

async fn running(directory: &TempDir) -> app::RunningServer {
    let settings = format!(
        "listen = \"127.0.0.1:0\"\nupstream = \"built-in\"\ndata_dir = \"{}\"\n[admin]\nlisten = \"127.0.0.1:0\"\n",
        directory.path().display()
    );
    app::start(
        resolve(&read_text(&settings).unwrap()).unwrap(),
        Clock::system(),
    )
    .await
    .unwrap()
}

/// Hits by callers whose leases have different sizes, interleaved so that all see the same machine.
async fn hits(size: &Size) {
    let directory = TempDir::new().unwrap();
    let running = running(&directory).await;
    let callers = [
        ("a day that is leased once", "enterprise", 1_000_000_000),
        ("enterprise", "enterprise", 250_000),
        ("pro", "pro", 10_000),
        ("free (each request leases)", "free", 99),
    ];
    println!("\nhits over one connection");
    println!(
        "{:>28} {:>10} {:>10} {:>10} {:>12}",
        "", "p50", "p99", "p99.9", "p50 ratio"
    );
    let mut took: [Vec<Duration>; 4] = Default::default();
    let mut connection = connect(running.public).await;
    for _ in 0..size.hits.div_ceil(ROUND) {
        for (place, (_, tier, day)) in callers.iter().enumerate() {
            let key = key(&running, tier, *day).await;
            for hit in 0..=ROUND {
                let asked = Instant::now();
                get(&mut connection, &key).await;
                // The first hit waits for its first lease, whatever the tier.
                if hit > 0 {
                    took[place].push(asked.elapsed());
                }
            }
        }
    }
    let mut first = None;
    for ((name, ..), took) in callers.iter().zip(took) {
        let [p50, p99, p999] = percentiles(took);
        let base = *first.get_or_insert(p50);
        let ratio = p50.as_secs_f64() / base.as_secs_f64();
        println!("{name:>28} {p50:>10.1?} {p99:>10.1?} {p999:>10.1?} {ratio:>12.2}");
    }
    running.stop().await;
}

async fn key(running: &app::RunningServer, tier: &str, day: u32) -> String {
    key_of(running, tier, day).await.key.expose().to_owned()
}

async fn key_of(running: &app::RunningServer, tier: &str, day: u32) -> IssuedKey {
    let new = NewApplication {
        name: format!("{tier} {day}"),
        tier: tier.into(),
        own: OwnLimits::NONE
            .with(LimitSetting::Minute, 10_000_000)
            .with(LimitSetting::Day, day),
        ..NewApplication::default()
    };
    running.registrar.create("bench", new).await.unwrap()
}

async fn connect(to: std::net::SocketAddr) -> SendRequest<Empty<Bytes>> {
    let stream = tokio::net::TcpStream::connect(to).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    sender
}

async fn get(connection: &mut SendRequest<Empty<Bytes>>, key: &str) {
    assert_eq!(status(connection, key).await, 200);
}

async fn status(connection: &mut SendRequest<Empty<Bytes>>, key: &str) -> u16 {
    let request = hyper::Request::builder()
        .uri("/api/v1/models?period=24h")
        .header("host", "localhost")
        .header("x-api-key", key)
        .body(Empty::new())
        .unwrap();
    connection.ready().await.unwrap();
    let answer = connection.send_request(request).await.unwrap();
    let status = answer.status().as_u16();
    answer.into_body().collect().await.unwrap();
    status
}

fn percentiles(mut took: Vec<Duration>) -> [Duration; 3] {
    took.sort_unstable();
    [500, 990, 999].map(|thousandths| took[(took.len() - 1) * thousandths / 1_000])
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn count_as_float(count: u64) -> f64 {
    count as f64
}
