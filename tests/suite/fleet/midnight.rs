//! Many active callers at midnight: gateways already hold first units of the new day, no request gets a 503, and each
//! unit is charged to the day of its request.
//!
//! By default the test runs at a small size; `SCOREGATE_FULL=1` runs 10,000 callers with the default timeout of the
//! store, and writes the figures to `tests/results/`. During a run only the clock of the database is set: gateways
//! follow it.

use std::{
    fmt::Write as _,
    sync::{
        Barrier,
        atomic::{AtomicI64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use scoregate_base::{
    clock::Wall,
    keys::{Digest, KeyForm},
};

use super::{
    database_state::value,
    faults::{DAY, offset_to_midnight},
    nodes::side,
    *,
};
use crate::{
    cluster::PostgresCluster,
    fake_clock::FakeClock,
    full_runs::{BUILD, CARGO_TEST, cores, write_page},
};

const GATEWAYS: usize = 2;
/// One of this many callers is on the Free tier, where units are leased one by one.
const FREE_EVERY: usize = 10;
/// Gateways follow a larger step of the clock only after a minute.
const MAX_STEP: i64 = 50;
const WAITS: &str = "scoregate_lease_waits_total";

/// The size of a run. Times are seconds before midnight.
struct MidnightSize {
    callers: usize,
    /// Connections to each gateway.
    connections: usize,
    store_timeout: &'static str,
    /// Time at which the gateways start.
    start: i64,
    /// Time at which all callers send the last request of the day. Their minute tokens last for half a minute after it.
    last_use: i64,
}

const SMALL: MidnightSize = MidnightSize {
    callers: 1_000,
    connections: 32,
    store_timeout: "30s",
    start: 90,
    last_use: 14,
};
const FULL: MidnightSize = MidnightSize {
    callers: 10_000,
    connections: 256,
    store_timeout: "2s",
    start: 110,
    last_use: 25,
};

/// Gateways, their callers, and the database with its clock.
struct MidnightSite {
    cluster: PostgresCluster,
    clock: FakeClock,
    _gateway_clock: FakeClock,
    /// Difference of the database's clock from the machine's, in seconds.
    offset: AtomicI64,
    keys: Vec<String>,
    gateways: Vec<SiteGateway>,
    side_ports: Vec<SocketAddr>,
}

/// One request of every caller.
struct CallerWave {
    name: &'static str,
    latencies: Vec<Duration>,
    took: Duration,
    /// Responses other than 200.
    refused: Vec<(u16, String)>,
    /// Requests that waited for the ledger.
    waited: usize,
}

impl MidnightSite {
    /// A database with all callers, and gateways that serve.
    fn start(size: &MidnightSize) -> Self {
        let clock = FakeClock::new(offset_to_midnight(3_600));
        let cluster = PostgresCluster::start(clock.environment());
        let tables = Site {
            url: cluster.url(),
            schema: "site".into(),
        };
        run_with(&["store", "init"], &tables.environment()).with(0);
        let keys = import_callers(&tables, size.callers);
        let offset = offset_to_midnight(size.start);
        clock.set(offset);
        // The processes of the database read the file once a second.
        std::thread::sleep(Duration::from_secs(2));
        // A gateway whose clock is a day behind the database would follow it only after a minute.
        let gateway_clock = FakeClock::new(offset);
        let gateway_environment = gateway_clock.environment();
        let mut settings = tables.environment().to_vec();
        settings.push(("SCOREGATE_STORE_TIMEOUT", size.store_timeout));
        settings.extend(
            gateway_environment
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str())),
        );
        let mut gateways = Vec::new();
        let mut side_ports = Vec::new();
        for _ in 0..GATEWAYS {
            let data_dir = TempDir::new().unwrap();
            let program = Program::serve(data_dir.path(), &settings);
            let (public, side_port) = program.ports();
            gateways.push(SiteGateway {
                data_dir,
                program,
                public,
                side: side_port,
            });
            side_ports.push(side_port);
        }
        let offset = AtomicI64::new(offset);
        Self {
            cluster,
            clock,
            _gateway_clock: gateway_clock,
            offset,
            keys,
            gateways,
            side_ports,
        }
    }

    /// The database's time in seconds since 1970.
    fn database_time(&self) -> i64 {
        let now = i64::try_from(Clock::system().now().wall.seconds()).unwrap();
        now + self.offset.load(Ordering::Relaxed)
    }

    /// Seconds until midnight; negative after it.
    fn left(&self) -> i64 {
        let now = self.database_time();
        let next = DAY - now % DAY;
        if next > DAY / 2 { next - DAY } else { next }
    }

    /// Sets the clock ahead to this many seconds before midnight, but by one maximum step at most.
    fn step_to(&self, left: i64) {
        let step = (self.left() - left).clamp(0, MAX_STEP);
        let offset = self.offset.fetch_add(step, Ordering::Relaxed) + step;
        self.clock.set(offset);
    }

    /// Today and tomorrow before midnight.
    fn days(&self) -> [String; 2] {
        let midnight = self.database_time() + self.left();
        [midnight - 1, midnight]
            .map(|at| Wall::from_seconds(at.try_into().unwrap()).day().to_string())
    }

    /// Number of callers whose gateway has units of this day.
    fn leased(&self, day: &str) -> usize {
        let count = format!(
            "SELECT count(*) FROM site.ledger_nodes WHERE day = '{day}' AND granted > returned"
        );
        self.cluster.sql(&count).parse().unwrap()
    }

    /// Waits until units of tomorrow are leased for all callers.
    fn wait_for_leases_ahead(&self, tomorrow: &str) {
        loop {
            let leased = self.leased(tomorrow);
            if leased == self.keys.len() {
                return;
            }
            assert!(
                self.left() > 0,
                "units of {tomorrow} are leased for {leased} callers only"
            );
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Waits until every gateway is in this day.
    fn wait_for_day(&self, day: &str) {
        for gateway in &self.gateways {
            while side(gateway.data_dir.path(), "/v1/usage/top?fleet=true&most=1")["day"] != day {
                assert!(self.left() > -30, "{day} does not begin");
            }
        }
    }

    fn waits(&self) -> u64 {
        self.side_ports.iter().map(|port| value(*port, WAITS)).sum()
    }

    /// Sends one request of every caller to its gateway, or to the gateway `shift` places further.
    fn everybody(&self, name: &'static str, shift: usize, connections: usize) -> CallerWave {
        let waits = self.waits();
        let barrier = Barrier::new(GATEWAYS * connections + 1);
        let turns = [const { AtomicUsize::new(0) }; GATEWAYS];
        let publics: Vec<SocketAddr> = self.gateways.iter().map(|gateway| gateway.public).collect();
        let clock = &Clock::system();
        let barrier = &barrier;
        let turns = &turns;
        let keys = &self.keys;
        let mut wave = CallerWave {
            name,
            latencies: Vec::new(),
            took: Duration::ZERO,
            refused: Vec::new(),
            waited: 0,
        };
        std::thread::scope(|scope| {
            let client = |number: usize| {
                let caller_group = number % GATEWAYS;
                let public = publics[(caller_group + shift) % GATEWAYS];
                scope.spawn(move || {
                    let mut connection = Wire::open(public).unwrap();
                    barrier.wait();
                    let mut seen = Vec::new();
                    let next = || {
                        caller_group
                            + turns[caller_group].fetch_add(1, Ordering::Relaxed) * GATEWAYS
                    };
                    while let Some(key) = keys.get(next()) {
                        let sent = clock.mono();
                        let reply = connection.get(TARGET, key).status_and_code();
                        seen.push((clock.mono().since(sent), reply));
                    }
                    seen
                })
            };
            let clients: Vec<_> = (0..GATEWAYS * connections).map(client).collect();
            barrier.wait();
            let start = clock.mono();
            for (latency, reply) in clients
                .into_iter()
                .flat_map(|client| client.join().unwrap())
            {
                wave.latencies.push(latency);
                wave.refused.extend((reply.0 != 200).then_some(reply));
            }
            wave.took = clock.mono().since(start);
        });
        wave.latencies.sort();
        wave.waited = usize::try_from(self.waits() - waits).unwrap();
        wave
    }

    /// Units of a day, as text: applications, and the smallest, largest and total number of units.
    fn units(&self, table: &str, column: &str, day: &str) -> String {
        self.cluster.sql(&format!(
            "SELECT count(*), min(units), max(units), sum(units)
             FROM (SELECT sum({column}) AS units FROM site.{table} WHERE day = '{day}' GROUP BY application) a"
        ))
    }
}

impl CallerWave {
    fn latency(&self, percent: usize) -> f64 {
        let index = (self.latencies.len() - 1) * percent / 100;
        self.latencies[index].as_secs_f64() * 1_000.0
    }

    fn row(&self) -> String {
        let [median, high, most] = [50, 99, 100].map(|percent| self.latency(percent));
        let count = self.latencies.len();
        let refused = self.refused.len();
        let waited = self.waited;
        let name = self.name;
        let took = self.took.as_secs_f64();
        format!(
            "| {name} | {count} | {refused} | {waited} | {took:.1} s | {median:.1} ms | {high:.1} ms | {most:.1} ms |"
        )
    }
}

/// Creates applications with one key each, and returns the keys.
fn import_callers(site: &Site, count: usize) -> Vec<String> {
    let form = KeyForm::new("sg_live", false);
    let keys: Vec<String> = (0..count)
        .map(|_| form.mint().unwrap().expose().to_owned())
        .collect();
    let mut lines = "sha256,name,tier,own_limits\n".to_owned();
    for (number, key) in keys.iter().enumerate() {
        let terms = if number % FREE_EVERY == 0 {
            r#"free,"{""minute"":60,""day"":50}""#
        } else {
            "pro,"
        };
        writeln!(lines, "{},caller {number},{terms}", Digest::of(key)).unwrap();
    }
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("callers.csv");
    std::fs::write(&file, lines).unwrap();
    run_with(
        &["keys", "import", file.to_str().unwrap()],
        &site.environment(),
    )
    .with(0);
    keys
}

#[test]
fn active_callers_get_no_503_at_midnight_and_their_units_of_the_new_day_were_leased_before() {
    needs!("postgresql", "libfaketime");
    let size = if is_full_size() { FULL } else { SMALL };
    let fleet = MidnightSite::start(&size);
    let [today, tomorrow] = fleet.days();
    let active = fleet.everybody("before midnight, without units", 0, size.connections);
    note(&format!("{}\n{} s left", active.row(), fleet.left()));
    // Leases for all callers are due half a minute before midnight.
    fleet.step_to(30);
    fleet.wait_for_leases_ahead(&tomorrow);
    fleet.step_to(size.last_use);
    let last = fleet.everybody("last of the day", 0, size.connections);
    note(&format!("{}\n{} s left", last.row(), fleet.left()));
    assert!(
        fleet.left() > 0,
        "midnight came before the last requests of the day"
    );
    fleet.wait_for_day(&tomorrow);
    let first = fleet.everybody("first of the day", 0, size.connections);
    let elsewhere = fleet.everybody("first of the day at the other gateway", 1, size.connections);
    let waves = [active, last, first, elsewhere];
    let rows: Vec<String> = waves.iter().map(CallerWave::row).collect();
    note(&rows.join("\n"));
    for wave in &waves {
        assert_eq!(wave.refused, [], "{}", wave.name);
        assert_eq!(wave.latencies.len(), size.callers);
    }
    let [active, _, first, elsewhere] = &waves;
    for (wave, waited) in [
        (active, size.callers),
        (first, 0),
        (elsewhere, size.callers),
    ] {
        assert_eq!(wave.waited, waited, "{}", wave.name);
    }
    check_units(fleet, &size, [&today, &tomorrow]);
    if is_full_size() {
        write(&size, &rows);
    }
}

/// Every caller has sent two requests on each day. When gateways stop, they return the unused units of the open day.
fn check_units(mut fleet: MidnightSite, size: &MidnightSize, days: [&str; 2]) {
    for gateway in fleet.gateways.drain(..) {
        let ended = gateway.program.stop().with(0);
        note(&ended.err);
        assert!(!ended.err.contains("panicked"));
    }
    let expected = format!("{}|2|2|{}", size.callers, 2 * size.callers);
    for day in days {
        assert_eq!(
            fleet.units(
                "request_nodes",
                "CASE WHEN outcome = 'ok' THEN requests ELSE 0 END",
                day
            ),
            expected,
            "delivered on {day}"
        );
    }
    assert_eq!(
        fleet.units("ledger_days", "granted", days[1]),
        expected,
        "charged on {}",
        days[1]
    );
    assert_eq!(
        fleet.units("ledger_nodes", "granted - returned", days[1]),
        expected
    );
}

/// Writes the page of a full run to `tests/results/`.
fn write(size: &MidnightSize, rows: &[String]) {
    let cores = cores();
    let MidnightSize {
        callers,
        connections,
        store_timeout,
        ..
    } = size;
    let page = format!(
        "`{CARGO_TEST} --test suite fleet::midnight`: the {BUILD} build of {GATEWAYS} gateways, a primary \
         and its synchronous standby, on {cores} cores shared with all clients. There are {callers} callers, one in {FREE_EVERY} \
         on the Free tier, and {connections} connections to each gateway, which send requests without pauses. `store.timeout` is \
         {store_timeout}.\n\n\
         The new day's units were leased before midnight for all callers. At the other gateway, each caller waits for a token of \
         the minute limit. All units were charged to the day of their request.\n\n\
         | Requests | Number | Not 200 | Waited for the ledger | Total time | Median | p99 | Longest |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|\n{}\n",
        rows.join("\n")
    );
    write_page("fleet-midnight", "Midnight with many active callers", &page);
}
