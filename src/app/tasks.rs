//! Background tasks of the server: tables of the periodic tasks, and the tasks that wait for events.

use std::{sync::Arc, time::Duration};

use crate::{
    accounts::KeyFreshness,
    config::Config,
    documents::Refresher,
    leaks::{SignerSource, follow_address},
    registry::DirectoryKeeper,
};
use scoregate_base::clock::Clock;
use scoregate_scoring::{Change, SnapshotUpdater, UpdateRequests};

use super::{
    background::{Background, PeriodicTask},
    build::BackendInUse,
    network_backend::NetworkBackend,
    server_parts::ServerParts,
};

/// The pause after each write of the keys' last-use times, as a multiple of the write's duration: the store spends at most a
/// quarter of the time on these writes.
const PAUSES_OF_USES: u32 = 3;
/// Interval between reads of the change feed of a shared store.
const FOLLOW_EVERY: Duration = Duration::from_secs(1);

/// A task with its name and its period.
macro_rules! every {
    ($period:expr, $name:literal, |$parts:ident| $run:expr) => {
        PeriodicTask {
            name: $name,
            every: $period,
            is_immediate: false,
            run: |$parts| {
                Box::pin(async move {
                    $run;
                })
            },
        }
    };
}

/// A task that also runs at startup.
macro_rules! now_and_every {
    ($($task:tt)+) => {
        PeriodicTask {
            is_immediate: true,
            ..every!($($task)+)
        }
    };
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

type ServerTask = PeriodicTask<ServerParts>;

/// Tasks of every server.
static OF_ALL: [ServerTask; 16] = [
    every!(
        Duration::from_millis(500),
        "record a heartbeat of the public port's runtime",
        |server| { server.readiness.heartbeat().beat() }
    ),
    // This detects a step of the wall clock even without requests.
    every!(seconds(1), "compare the clocks", |server| {
        server.clock.check()
    }),
    every!(seconds(5), "sweep expired entries", |server| {
        sweep(server).await;
    }),
    every!(
        seconds(5),
        "check whether unreachable shared documents are reachable again",
        |server| { server.engine.ask_for_shared_documents().await }
    ),
    every!(seconds(10), "read files again", |server| {
        server.files.refresh().await;
    }),
    every!(seconds(15), "measure the data directory", |server| {
        server.storage.refresh().await;
    }),
    every!(seconds(60), "record usage", |server| {
        server.reporter.record_usage().await;
    }),
    every!(seconds(60), "evaluate the usage of recent days", |server| {
        server.suspects.judge(server.reporter.is_oldest()).await;
    }),
    every!(seconds(10), "lease tomorrow's units", |server| {
        server.leases.lease_tomorrow(&server.key_directory).await;
    }),
    // Units and tokens that were leased under previous limits are returned within a second.
    every!(
        Duration::from_millis(300),
        "return units that others may use",
        |server| { server.leases.return_unused(&server.key_directory) }
    ),
    every!(
        seconds(1),
        "claim grace shares, and check whether the ledger is reachable again",
        |server| {
            server.leases.probe();
            server.leases.keep_grace_share().await;
        }
    ),
    every!(seconds(300), "delete outdated ledger records", |server| {
        server.leases.delete_outdated().await;
    }),
    every!(seconds(30), "charge units delivered on grace", |server| {
        server.leases.charge_owed().await;
        server.keys.monitor.check_damage();
    }),
    every!(seconds(60), "restore limits that have ended", |server| {
        server.keys.administration.registrar.restore_limits().await;
    }),
    // This is a separate task because it takes minutes with many keys, and charges must not wait for it.
    every!(seconds(30), "record uses of keys", |server| {
        server.keys.keeper.store_uses(PAUSES_OF_USES).await;
    }),
    // A gateway that misses three reports is not live. Other gateways divide limits by the number of live gateways, so
    // the first report is made immediately.
    now_and_every!(seconds(10), "report this gateway", |server| {
        server.reporter.report().await;
    }),
];

/// Tasks of a server with a file store.
static OF_A_FILE: [ServerTask; 1] = [every!(
    seconds(2),
    "check that the store file is in place",
    |server| { server.keys.monitor.check_file().await }
)];

/// Tasks of a server whose database is shared by several gateways.
static OF_A_DATABASE: [ServerTask; 3] = [
    every!(seconds(1), "write the local copy of the keys", |server| {
        if let Some(copy) = &server.keys.copy {
            copy.write_due().await;
        }
    }),
    every!(
        seconds(1),
        "connect to the database until units are leased",
        |server| { server.leases.check_access().await }
    ),
    now_and_every!(seconds(15), "measure the database", |server| {
        server.keys.monitor.measure().await;
    }),
];

/// Tasks of a server that sends mail.
static OF_MAIL: [ServerTask; 3] = [
    every!(seconds(60), "queue notices about quotas", |server| {
        if let Some(notices) = &server.keys.notices {
            notices.quotas().await;
        }
    }),
    now_and_every!(
        seconds(3_600),
        "queue notices about expiring keys",
        |server| {
            if let Some(notices) = &server.keys.notices {
                notices.keys().await;
            }
        }
    ),
    every!(seconds(15), "measure the mail queue", |server| {
        if let Some(queue) = &server.mail_queue {
            queue.measure().await;
        }
    }),
];

/// Tasks for a backend over the network.
static OF_THE_NETWORK: [PeriodicTask<NetworkBackend>; 1] = [
    // A host to which the name no longer resolves may still answer on connections that are constantly reused.
    every!(
        seconds(30),
        "close idle connections to the backend",
        |network| { network.close_idle() }
    ),
];

/// Starts all periodic tasks.
pub fn repeat(background: &Background, server: &Arc<ServerParts>) {
    background.repeat(&OF_ALL, server);
    // Only a shared store has a local copy, and only in a shared store can other gateways change keys.
    if server.keys.copy.is_some() {
        background.repeat(&OF_A_DATABASE, server);
    } else {
        background.repeat(&OF_A_FILE, server);
    }
    background.repeat(&OF_MAIL, server);
}

/// Starts the tasks that wait for events.
pub fn follow(background: &Background, server: &ServerParts, config: &Config) {
    let stop = || background.stop.clone();
    background.spawn(Arc::clone(&server.engine.mirror).run(stop()));
    if config.retention.probing {
        background.spawn(Arc::clone(&server.engine.refresher).run(stop()));
    }
    if server.keys.copy.is_some() {
        background.until_stopped(follow_changes(
            Arc::clone(&server.keys.keeper),
            Arc::clone(&server.key_directory.freshness),
            server.clock.clone(),
        ));
    }
    if let Some(receiver) = &server.keys.leaks
        && let Some(leaks) = &config.leaks
        && let SignerSource::Address(address) = &leaks.signers
    {
        background.until_stopped(follow_address(
            address.clone(),
            Arc::clone(&receiver.signers),
            server.clock.clone(),
        ));
    }
}

/// Starts the tasks that keep the backend current. Returns the channel for requests to the built-in backend.
pub fn follow_backend(
    background: &Background,
    server: &ServerParts,
    backend: &BackendInUse,
) -> Option<UpdateRequests> {
    let clock = background.clock.clone();
    match backend {
        BackendInUse::Network(network) => {
            background.repeat(&OF_THE_NETWORK, network);
            None
        }
        BackendInUse::BuiltIn(scoring) => {
            let checker = Arc::clone(scoring);
            let check = Arc::new(move |now| checker.check(now));
            let (updater, requests) = SnapshotUpdater::new(Arc::clone(scoring), check, clock);
            let refresher = Arc::clone(&server.engine.refresher);
            background.until_stopped(update_scores(updater, refresher));
            Some(requests)
        }
    }
}

/// Updates the built-in backend's snapshot when it is due, without waiting for a request. After an import, which can
/// happen at any time, documents are refreshed before the response to the import is sent.
async fn update_scores(mut updater: SnapshotUpdater, refresher: Arc<Refresher>) {
    loop {
        let (change, request) = updater.next().await;
        if change == Change::ByAnImport {
            refresher.follow_an_early_refresh().await;
        }
        if let Some((request, outcome)) = request {
            // The client may have disconnected.
            drop(request.send(outcome));
        }
    }
}

/// Applies changes to applications and keys that were made elsewhere.
async fn follow_changes(keeper: Arc<DirectoryKeeper>, freshness: Arc<KeyFreshness>, clock: Clock) {
    loop {
        tokio::select! {
            () = freshness.next_reading(&clock, FOLLOW_EVERY) => {}
            () = keeper.changed_elsewhere() => {}
        }
        keeper.follow_changes().await;
    }
}

async fn sweep(server: Arc<ServerParts>) {
    // With many documents this takes milliseconds, which is too long for a serving thread.
    let swept = tokio::task::spawn_blocking(move || server.gateway.load().sweep());
    if swept.await.is_err() {
        tracing::error!("sweeping expired entries panicked");
    }
}
