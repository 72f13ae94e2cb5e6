//! A week of hourly refreshes, some early, some missing, with polling callers: the share of outdated responses and
//! the load on the backend, compared with fixed times to live.
//!
//! It runs the real program over real sockets with a simulated clock. All work of one second ends before the next, so
//! the same seed gives the same table. Each run simulates four hours; `SCOREGATE_FULL=1` simulates the week. Latencies
//! are not measured.

mod rng;
mod table;

use std::{sync::Arc, time::Duration};

use scoregate_base::{clock::Wall, routes::ENDPOINTS};

use crate::{
    client::{Connection, Response},
    full_runs::is_full_size,
    snapshot_upstream::{DOCUMENTS, SnapshotUpstream},
    world::{Customer, NOON, World},
};

use rng::{Callers, Rng};
use table::Row;

const SEED: u64 = 20_261_121;
const SECOND: Duration = Duration::from_secs(1);
/// Time after the last refresh, so that it is detected.
const AFTERWARDS: u64 = 600;

/// The size of the simulation.
#[derive(Clone, Copy)]
struct Size {
    hours: u64,
    customers: usize,
}

const SMALL: Size = Size {
    hours: 4,
    customers: 1,
};
const FULL: Size = Size {
    hours: 7 * 24,
    customers: 3,
};

/// The caching policy of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    ByRefresh,
    TimeToLive(u32),
}

impl Policy {
    fn settings(self) -> String {
        match self {
            Self::ByRefresh => "freshness.probe = true\n".into(),
            Self::TimeToLive(seconds) => {
                let stored = ENDPOINTS.iter().filter(|endpoint| endpoint.stored);
                let own = |name: &str| format!("[freshness.{name}]\nttl = \"{seconds}s\"\n");
                stored.map(|endpoint| own(endpoint.name)).collect()
            }
        }
    }
}

#[test]
fn in_a_simulated_week_one_response_in_a_hundred_is_outdated_and_each_body_is_fetched_once() {
    let is_full = is_full_size();
    let size = if is_full { FULL } else { SMALL };
    let policies = [60, 300, 3_600].map(Policy::TimeToLive);
    let rows = std::thread::scope(|scope| {
        let all = [Policy::ByRefresh].into_iter().chain(policies);
        let played: Vec<_> = all
            .map(|policy| scope.spawn(move || simulation(policy, size)))
            .collect();
        played
            .into_iter()
            .map(|row| row.join().unwrap())
            .collect::<Vec<_>>()
    });
    table::print(&rows, SEED, size.hours / 24, size.customers);
    let [ours, minute, five_minutes, hour] = rows.as_slice() else {
        panic!("four policies were simulated")
    };
    let documents = u32::try_from(DOCUMENTS.len()).unwrap();

    assert!(ours.not_current * 100 < ours.responses, "{ours:?}");
    // One body for each document and refresh, including the initial data.
    assert_eq!(
        (ours.bodies, ours.most_bodies),
        (documents * ours.refreshes, 1),
        "{ours:?}"
    );
    for row in &rows {
        assert_eq!(
            row.waited, documents,
            "only the first request of a document waits: {row:?}"
        );
        assert!(row.most_bodies <= 1, "{row:?}");
        assert_eq!(
            (row.responses, row.refreshes),
            (ours.responses, ours.refreshes),
            "{row:?}"
        );
    }
    // The documents are fresher than with any fixed time to live, with fewer upstream requests than with one or five
    // minutes.
    for row in [minute, five_minutes, hour] {
        assert!(
            ours.not_current < row.not_current && ours.mean_lateness < row.mean_lateness,
            "{row:?}"
        );
    }
    assert!(ours.requests * 4 < minute.requests, "{ours:?} {minute:?}");
    assert!(
        ours.requests < five_minutes.requests,
        "{ours:?} {five_minutes:?}"
    );
}

/// Simulates one row in its own thread.
fn simulation(policy: Policy, size: Size) -> Row {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut simulation = Simulation::begin(policy, size).await;
        let refreshes = Rng::new(SEED).refreshes(size.hours);
        let callers = size.customers * DOCUMENTS.len();
        let mut callers = Callers::new(Rng::new(SEED + 1), callers);
        for second in 0..=size.hours * 3_600 + AFTERWARDS {
            simulation
                .complete_second(second, refreshes.contains(&second))
                .await;
            while let Some(caller) = callers.next_caller_at(second) {
                simulation.send_request(caller).await;
            }
        }
        simulation.row()
    })
}

/// The state of one row.
struct Simulation {
    world: World,
    backend: SnapshotUpstream,
    customers: Vec<(Customer, Connection)>,
    /// Number of owners of the fetcher while no fetch is in progress.
    at_rest: usize,
    row: Row,
}

impl Simulation {
    async fn begin(policy: Policy, size: Size) -> Self {
        let backend = SnapshotUpstream::new(start());
        let script = backend.clone();
        // Connections are idle by the real clock, not by the simulated one: only briefly, but the machine may be busy.
        let settings = format!(
            "server.idle_timeout = \"30d\"\nserver.max_connection_age = \"30d\"\n{}",
            policy.settings()
        );
        let world = World::with(&settings, move |received| script.respond(received)).await;
        let mut customers = Vec::new();
        for _ in 0..size.customers {
            customers.push((world.paid().await, world.connect().await));
        }
        let at_rest = Arc::strong_count(&world.running.gateway().engine.fetcher);
        Self {
            world,
            backend,
            customers,
            at_rest,
            row: Row::of(policy),
        }
    }

    /// Sets the clock to that second and completes all its work.
    async fn complete_second(&mut self, second: u64, refreshes: bool) {
        self.backend
            .set_time(start().plus(Duration::from_secs(second)));
        if refreshes {
            self.backend.refresh();
        }
        if second > 0 {
            self.world.pass(SECOND);
        }
        self.wait_until_idle().await;
    }

    /// Waits until no fetch is in progress: a fetch owns the fetcher for its duration. Everything runs on this
    /// thread, so tasks woken by its end have run when this task resumes.
    async fn wait_until_idle(&self) {
        let mut at_rest = 0;
        while at_rest < 3 {
            tokio::task::yield_now().await;
            let engine = self.world.running.gateway().engine.clone();
            let is_at_rest = Arc::strong_count(&engine.fetcher) == self.at_rest + 1
                && !engine.refresher.is_active();
            at_rest = if is_at_rest { at_rest + 1 } else { 0 };
        }
    }

    async fn send_request(&mut self, caller: usize) {
        let document = DOCUMENTS[caller % DOCUMENTS.len()];
        let (customer, connection) = &mut self.customers[caller / DOCUMENTS.len()];
        let request = self.world.get(document).key(&customer.key);
        let response = connection.send(request).await;
        assert_eq!(
            response.status,
            200,
            "{document}: {}",
            String::from_utf8_lossy(&response.body)
        );
        self.row.answered(
            self.backend.lateness_of(generated_at(&response)),
            response.header("cache-status"),
        );
        self.wait_until_idle().await;
    }

    fn row(mut self) -> Row {
        let counts = self.backend.counts();
        self.row.refreshes = u32::try_from(self.backend.refresh_times().len()).unwrap();
        self.row.bodies = counts.iter().map(|counts| counts.bodies).sum();
        self.row.unchanged = counts.iter().map(|counts| counts.unchanged).sum();
        self.row.requests = self.row.bodies + self.row.unchanged;
        self.row.most_bodies = counts.iter().map(|counts| counts.bodies).max().unwrap();
        self.row.mean_lateness = self.backend.mean_lateness();
        self.row
    }
}

fn start() -> Wall {
    Wall::parse_rfc3339(NOON).unwrap()
}

fn generated_at(response: &Response) -> Wall {
    Wall::parse_rfc3339(response.json()["generated_at"].as_str().unwrap()).unwrap()
}
