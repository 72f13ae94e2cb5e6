//! Background tasks of the server: tables of those that are repeated, and those that wait for events.

use std::sync::Arc;
use std::time::Duration;

use crate::accounts::KeyFreshness;
use crate::config::Config;
use crate::documents::Refresher;
use crate::leaks::{SignerSource, follow_address};
use crate::registry::DirectoryKeeper;
use scoregate_base::clock::Clock;
use scoregate_scoring::{Change, SnapshotUpdater, UpdateRequests};

use super::background::{Background, PeriodicTask};
use super::build::BackendInUse;
use super::network_backend::NetworkBackend;
use super::server_parts::ServerParts;

/// The store writes last uses of keys for a quarter of the time at most.
const PAUSES_OF_USES: u32 = 3;
/// Interval between reads of the change feed of a shared store.
const FOLLOW_EVERY: Duration = Duration::from_secs(1);

/// About time, memory, files and this gateway.
static OF_THE_GATEWAY: [PeriodicTask<ServerParts>; 8] = [
    PeriodicTask {
        name: "show that the runtime of the public port runs",
        every: Duration::from_millis(500),
        run: |server| Box::pin(async move { server.readiness.heartbeat().beat() }),
    },
    PeriodicTask {
        // So that a step of the wall clock is noticed without requests.
        name: "compare the clocks",
        every: Duration::from_secs(1),
        run: |server| {
            Box::pin(async move {
                server.clock.check();
            })
        },
    },
    PeriodicTask {
        name: "sweep expired entries",
        every: Duration::from_secs(5),
        run: |server| Box::pin(sweep(server)),
    },
    PeriodicTask {
        name: "ask whether unreachable shared documents are back",
        every: Duration::from_secs(5),
        run: |server| Box::pin(async move { server.engine.ask_for_shared_documents().await }),
    },
    PeriodicTask {
        name: "read files again",
        every: Duration::from_secs(10),
        run: |server| Box::pin(async move { server.files.refresh().await }),
    },
    PeriodicTask {
        name: "measure the data directory",
        every: Duration::from_secs(15),
        run: |server| Box::pin(async move { server.storage.refresh().await }),
    },
    PeriodicTask {
        name: "record usage",
        every: Duration::from_mins(1),
        run: |server| Box::pin(async move { server.reporter.record_usage().await }),
    },
    PeriodicTask {
        name: "judge the use of the last days",
        every: Duration::from_mins(1),
        run: |server| {
            Box::pin(async move { server.suspects.judge(server.reporter.is_oldest()).await })
        },
    },
];

/// About units and keys.
static OF_THE_LEDGER: [PeriodicTask<ServerParts>; 7] = [
    PeriodicTask {
        name: "lease the units of tomorrow",
        every: Duration::from_secs(10),
        run: |server| {
            Box::pin(async move { server.leases.lease_tomorrow(&server.key_directory).await })
        },
    },
    PeriodicTask {
        // Units and tokens that were leased under other limits are returned within a second.
        name: "return units that others may use",
        every: Duration::from_millis(300),
        run: |server| Box::pin(async move { server.leases.return_unused(&server.key_directory) }),
    },
    PeriodicTask {
        name: "claim shares of grace, and ask whether the ledger is back",
        every: Duration::from_secs(1),
        run: |server| {
            Box::pin(async move {
                server.leases.probe();
                server.leases.keep_grace_share().await;
            })
        },
    },
    PeriodicTask {
        name: "delete outdated records of the ledger",
        every: Duration::from_mins(5),
        run: |server| Box::pin(async move { server.leases.delete_outdated().await }),
    },
    PeriodicTask {
        name: "charge units delivered on grace",
        every: Duration::from_secs(30),
        run: |server| {
            Box::pin(async move {
                server.leases.charge_owed().await;
                server.keys.monitor.check_damage();
            })
        },
    },
    PeriodicTask {
        name: "restore limits that have ended",
        every: Duration::from_mins(1),
        run: |server| {
            Box::pin(async move { server.keys.administration.registrar.restore_limits().await })
        },
    },
    PeriodicTask {
        // A task of its own: with many keys it takes minutes, and charges must not wait for it.
        name: "record uses of keys",
        every: Duration::from_secs(30),
        run: |server| Box::pin(async move { server.keys.keeper.store_uses(PAUSES_OF_USES).await }),
    },
];

/// Other gateways divide limits by the number of live ones, so the first report comes immediately.
static REPORTS: [PeriodicTask<ServerParts>; 1] = [PeriodicTask {
    // A gateway that misses three reports is not live.
    name: "report this gateway",
    every: Duration::from_secs(10),
    run: |server| Box::pin(async move { server.reporter.report().await }),
}];

/// With a store in a file.
static OF_A_FILE: [PeriodicTask<ServerParts>; 1] = [PeriodicTask {
    name: "check that the store file is in place",
    every: Duration::from_secs(2),
    run: |server| Box::pin(async move { server.keys.monitor.check_file().await }),
}];

/// With a database that gateways share.
static OF_A_DATABASE: [PeriodicTask<ServerParts>; 2] = [
    PeriodicTask {
        name: "write the local copy of the keys",
        every: Duration::from_secs(1),
        run: |server| {
            Box::pin(async move {
                if let Some(copy) = &server.keys.copy {
                    copy.write_due().await;
                }
            })
        },
    },
    PeriodicTask {
        name: "connect to the database until units are leased",
        every: Duration::from_secs(1),
        run: |server| Box::pin(async move { server.leases.check_access().await }),
    },
];

static DATABASE_METRICS: [PeriodicTask<ServerParts>; 1] = [PeriodicTask {
    name: "measure the database",
    every: Duration::from_secs(15),
    run: |server| Box::pin(async move { server.keys.monitor.measure().await }),
}];

/// With mail to owners.
static QUOTA_NOTICES: [PeriodicTask<ServerParts>; 1] = [PeriodicTask {
    name: "queue notices about quotas",
    every: Duration::from_mins(1),
    run: |server| {
        Box::pin(async move {
            if let Some(notices) = &server.keys.notices {
                notices.quotas().await;
            }
        })
    },
}];

/// With a backend over the network.
static OF_THE_NETWORK: [PeriodicTask<NetworkBackend>; 1] = [PeriodicTask {
    // A host that a name no longer leads to may still answer on connections that are in use again and again.
    name: "close idle connections to the backend",
    every: Duration::from_secs(30),
    run: |network| Box::pin(async move { network.close_idle() }),
}];

static KEY_NOTICES: [PeriodicTask<ServerParts>; 1] = [PeriodicTask {
    name: "queue notices about keys that expire",
    every: Duration::from_hours(1),
    run: |server| {
        Box::pin(async move {
            if let Some(notices) = &server.keys.notices {
                notices.keys().await;
            }
        })
    },
}];

static MAIL_METRICS: [PeriodicTask<ServerParts>; 1] = [PeriodicTask {
    name: "measure the mail queue",
    every: Duration::from_secs(15),
    run: |server| {
        Box::pin(async move {
            if let Some(queue) = &server.mail_queue {
                queue.measure().await;
            }
        })
    },
}];

/// Starts all repeated tasks.
pub(super) fn repeat(background: &Background, server: &Arc<ServerParts>) {
    background.repeat(&OF_THE_GATEWAY, server);
    background.repeat(&OF_THE_LEDGER, server);
    background.repeat_from_now(&REPORTS, server);
    // Only a shared store has a local copy, and only there others change keys.
    if server.keys.copy.is_some() {
        background.repeat(&OF_A_DATABASE, server);
        background.repeat_from_now(&DATABASE_METRICS, server);
    } else {
        background.repeat(&OF_A_FILE, server);
    }
    if server.keys.notices.is_some() {
        background.repeat(&QUOTA_NOTICES, server);
        background.repeat_from_now(&KEY_NOTICES, server);
    }
    if server.mail_queue.is_some() {
        background.repeat(&MAIL_METRICS, server);
    }
}

/// Starts the tasks that wait for events.
pub(super) fn follow(background: &Background, server: &ServerParts, config: &Config) {
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
pub(super) fn follow_backend(
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

/// Updates the built-in backend's snapshot when it is due, without waiting for a request. After an import, whose time
/// is unpredictable, documents are refreshed before the import is answered.
async fn update_scores(mut updater: SnapshotUpdater, refresher: Arc<Refresher>) {
    loop {
        let (change, request) = updater.next().await;
        if change == Change::ByAnImport {
            refresher.follow_an_early_refresh().await;
        }
        if let Some((request, outcome)) = request {
            // The requester may have disconnected.
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
    // With many documents this takes milliseconds, too long for a serving thread.
    let swept = tokio::task::spawn_blocking(move || server.gateway.load().sweep());
    if swept.await.is_err() {
        tracing::error!("sweeping expired entries panicked");
    }
}
