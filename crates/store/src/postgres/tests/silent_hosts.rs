//! Silent hosts: a stopped server that accepts connections but never answers, and a primary that never confirms a commit because
//! its standby is missing.

use tokio::net::{TcpListener, TcpStream};

use super::*;
use scoregate_base::clock::ManualClock;

/// Real time after which a test fails.
const TEST_LIMIT: Duration = Duration::from_mins(1);

async fn within_limit<T>(work: impl Future<Output = T>) -> T {
    Clock::system()
        .within(TEST_LIMIT, work)
        .await
        .expect("it ends in time")
}

/// The shared test server as the second host after `first`.
fn second_host_after(first: &str) -> Vec<tokio_postgres::Config> {
    let second = shared_server().url();
    let (user, rest) = second.split_once('@').unwrap();
    let (_, database) = rest.split_once('/').unwrap();
    let first = format!("{user}@{first}/{database}");
    [first, second].map(|url| url.parse().unwrap()).to_vec()
}

/// A host that never answers.
struct SilentHost(TcpListener);

impl SilentHost {
    async fn start() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    fn address(&self) -> String {
        self.0.local_addr().unwrap().to_string()
    }

    /// Accepts a connection, and advances the clock by half of the deadline.
    async fn keep_waiting(&self, deadline: Duration, clock: &ManualClock) -> TcpStream {
        let (connection, _) = self.0.accept().await.unwrap();
        clock.advance(deadline / 2);
        connection
    }
}

#[tokio::test]
async fn a_host_that_never_answers_does_not_hide_the_next_one() {
    needs!("postgresql");
    let mut config = prepared().await;
    let silent = SilentHost::start().await;
    config.servers = second_host_after(&silent.address());
    let (clock, manual) = Clock::manual(NOON);
    let timeout = config.timeout;

    let opening = Box::pin(Store::open_with(config, clock, true));
    let (store, _waiting) =
        within_limit(async { tokio::join!(opening, silent.keep_waiting(timeout, &manual)) }).await;
    let store = store.unwrap();
    let id = within_limit(created(&store)).await;

    let exchange = granted(&store, asks(id, 5));
    let (units, _waiting) =
        within_limit(async { tokio::join!(exchange, silent.keep_waiting(timeout, &manual)) }).await;
    assert_eq!(units, (5, 5));
}

#[tokio::test]
async fn changes_are_notified_by_the_host_that_answers() {
    needs!("postgresql");
    let mut config = prepared().await;
    let silent = SilentHost::start().await;
    config.listen_servers = second_host_after(&silent.address());
    let (clock, manual) = Clock::manual(NOON);
    let timeout = config.timeout;
    let store = Store::open_with(config, clock, true).await.unwrap();

    let ((), _waiting) = within_limit(async {
        tokio::join!(store.changed(), silent.keep_waiting(timeout, &manual))
    })
    .await;
    created(&store).await;
    within_limit(store.changed()).await;
}

/// Waits until a commit on the server waits for a standby.
async fn commit_waits_for_standby(server: tokio_postgres::Config) {
    let config = DatabaseConfig {
        servers: vec![server],
        ..config()
    };
    let link = DatabaseLink::new(Arc::new(config), Clock::system());
    let waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
    let count = async |client: SchemaClient<'_>| client.query(waiting, &[]).await;
    while Box::pin(link.run("find the commit", count))
        .await
        .unwrap()
        .is_empty()
    {}
}

#[tokio::test]
async fn after_a_commit_that_is_never_confirmed_the_next_call_uses_the_next_host() {
    needs!("postgresql");
    let primary = PostgresServer::start(&["fsync=off", "synchronous_standby_names=missing"]);
    let server: tokio_postgres::Config = primary.url().parse().unwrap();
    let mut config = prepared().await;
    let mut unreplicated = server.clone();
    unreplicated.options("-c synchronous_commit=local");
    create_tables(DatabaseConfig {
        servers: vec![unreplicated],
        ..config.clone()
    })
    .await;
    let url = primary.url();
    let (_, host) = url.split_once('@').unwrap();
    config.servers = second_host_after(host.split('/').next().unwrap());
    let (clock, manual) = Clock::manual(NOON);
    let timeout = config.timeout;
    let store = Store::open_with(config, clock, true).await.unwrap();

    let missed = async {
        Box::pin(commit_waits_for_standby(server)).await;
        manual.advance(timeout);
    };
    let (change, ()) =
        within_limit(async { tokio::join!(store.change(creating(an_id())), Box::pin(missed)) })
            .await;
    let error = change.unwrap_err().to_string();
    assert!(error.contains("did not answer within 20 s"), "{error}");
    within_limit(created(&store)).await;
}
