//! The backend accepts requests and never responds for a day. Callers with remaining quota get stored documents
//! marked stale, and no request waits. A restart in between changes nothing. When the backend recovers, everything is
//! fresh within one refresh interval.
//!
//! Single failures are in `faults`, the protection of the backend in `protection`.

use std::time::Duration;

use scoregate_base::clock::Wall;

use crate::{
    backend::Act,
    client::Connection,
    snapshot_upstream::{DOCUMENTS, SnapshotUpstream},
    world::{Customer, NOON, World},
};

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
/// The clock advances in these steps, a few per minute, so that fetches time out and are retried.
const STEP: Duration = Duration::from_secs(20);
/// A fetch that is in flight when the backend recovers times out after this long. Then the next fetch is sent.
const FETCH_TIMEOUT: Duration = Duration::from_secs(15);

/// A customer with a realistic plan who uses all of the daily quota.
struct LoadClient {
    customer: Customer,
    connection: Connection,
    /// Targets of each round.
    documents: &'static [&'static str],
    /// Minutes between rounds.
    every: u32,
}

struct UnresponsiveUpstream {
    world: World,
    backend: SnapshotUpstream,
    load_clients: Vec<LoadClient>,
    now: Wall,
}

/// By plan: targets of each round, and minutes between rounds.
fn plans() -> [(&'static str, &'static [&'static str], u32); 4] {
    [
        // Ten a day and one a minute; the quota resets within this day.
        ("free", &DOCUMENTS[1..2], 144),
        ("pro", &DOCUMENTS[..6], 1),
        ("pro", &DOCUMENTS[6..], 1),
        ("enterprise", &DOCUMENTS, 1),
    ]
}

impl UnresponsiveUpstream {
    /// Starts after every document was fetched once and none is fresh any longer.
    async fn start() -> Self {
        let now = Wall::parse_rfc3339(NOON).unwrap();
        let backend = SnapshotUpstream::new(now);
        let script = backend.clone();
        let settings = "freshness.probe = true\nserver.idle_timeout = \"30d\"\nserver.max_connection_age = \"30d\"\n";
        let world = World::with(settings, move |received| script.respond(received)).await;
        let mut load_clients = Vec::new();
        for (tier, documents, every) in plans() {
            let connection = world.connect().await;
            load_clients.push(LoadClient {
                customer: world.customer(tier).await,
                connection,
                documents,
                every,
            });
        }
        let mut outage = Self {
            world,
            backend,
            load_clients,
            now,
        };
        assert_eq!(
            outage
                .minute(0, |status| status.contains("detail=stale"))
                .await,
            0
        );
        outage.world.backend.set_script(|_| Act::Hang);
        outage.advance(HOUR).await;
        outage
    }

    /// Restarts the program and reconnects its callers.
    async fn restart(self) -> Self {
        let Self {
            world,
            backend,
            load_clients,
            now,
        } = self;
        // Connections are closed first: a shutdown waits a second for each, and nothing advances the clock meanwhile.
        let known = load_clients.into_iter().map(
            |LoadClient {
                 customer,
                 documents,
                 every,
                 ..
             }| (customer, documents, every),
        );
        let known: Vec<_> = known.collect();
        let world = world.restarted_with_losses().await;
        let mut load_clients = Vec::new();
        for (customer, documents, every) in known {
            let connection = world.connect().await;
            load_clients.push(LoadClient {
                customer,
                connection,
                documents,
                every,
            });
        }
        Self {
            world,
            backend,
            load_clients,
            now,
        }
    }

    async fn advance(&mut self, time: Duration) {
        self.now = self.now.plus(time);
        self.backend.set_time(self.now);
        self.world.pass(time);
        // Yields to every woken task and to its follow-up work.
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
    }

    /// Sends the requests that are due in this minute. All must be served; returns the number of matching
    /// responses.
    async fn minute(&mut self, minute: u32, matches: impl Fn(&str) -> bool) -> u32 {
        let mut so = 0;
        for load_client in self
            .load_clients
            .iter_mut()
            .filter(|load_client| minute.is_multiple_of(load_client.every))
        {
            for document in load_client.documents {
                let request = self.world.get(document).key(&load_client.customer.key);
                let response = load_client.connection.send(request).await;
                assert_eq!(response.status, 200, "{document} in minute {minute}");
                so += u32::from(matches(response.header("cache-status")));
            }
        }
        so
    }
}

/// Callers per minute.
fn callers_in(minute: u32) -> u32 {
    let of_one = |(_, documents, every): (&str, &[&str], u32)| {
        if minute.is_multiple_of(every) {
            u32::try_from(documents.len()).unwrap()
        } else {
            0
        }
    };
    plans().map(of_one).iter().sum()
}

fn is_stale(status: &str) -> bool {
    status.starts_with("scoregate; hit; ttl=-") || status == "scoregate; hit; ttl=0; detail=stale"
}

#[tokio::test]
async fn stale_documents_are_served_for_a_day_without_upstream_responses_and_across_a_restart() {
    let mut outage = UnresponsiveUpstream::start().await;
    let before = outage.world.backend.received().len();
    for minute in 0..24 * 60 {
        if minute == 12 * 60 {
            outage = outage.restart().await;
        }
        assert_eq!(
            outage.minute(minute, is_stale).await,
            callers_in(minute),
            "in minute {minute}"
        );
        if minute.is_multiple_of(60) {
            outage.backend.refresh();
        }
        for _ in 0..MINUTE.as_secs() / STEP.as_secs() {
            outage.advance(STEP).await;
        }
    }
    let requests = outage.world.backend.received().len() - before;
    // The half-open circuit breaker sends one request at a time, and each of them times out.
    assert!(requests <= 24 * 60 * 2, "{requests}");

    // The backend's data after the recovery is current.
    outage.backend.refresh();
    let script = outage.backend.clone();
    outage
        .world
        .backend
        .set_script(move |received| script.respond(received));
    let counts: usize = outage
        .backend
        .counts()
        .iter()
        .map(|counts| counts.bodies as usize)
        .sum();
    // A request that waits for the unresponsive backend ends at its timeout only.
    outage.advance(FETCH_TIMEOUT).await;
    for _ in 0..(MINUTE + FETCH_TIMEOUT).as_secs() / 5 {
        outage.advance(Duration::from_secs(5)).await;
        outage.world.settled().await;
    }
    for document in DOCUMENTS {
        let response = outage
            .world
            .get_as(&outage.load_clients[3].customer, document)
            .await;
        let status = response.header("cache-status");
        assert!(
            status.starts_with("scoregate; hit; ttl=") && !status.ends_with("stale"),
            "{document}: {status}"
        );
        let generated_at = response.json()["generated_at"]
            .as_str()
            .and_then(Wall::parse_rfc3339)
            .unwrap();
        assert_eq!(outage.backend.lateness_of(generated_at), None, "{document}");
    }
    let bodies: usize = outage
        .backend
        .counts()
        .iter()
        .map(|counts| counts.bodies as usize)
        .sum();
    assert_eq!(
        bodies - counts,
        DOCUMENTS.len(),
        "each body was fetched once"
    );
}
