//! Background tasks of the server.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::accounts::{KeyDirectory, KeyFreshness, Leases, Registrar};
use crate::admin::{self, Heartbeat, SideConfig, SidePort};
use crate::clock::Clock;
use crate::config::Config;
use crate::documents::Refresher;
use crate::gateway::Gateway;
use crate::scoring::{Change, Scoring, SnapshotUpdater, UpdateRequests};
use crate::telemetry::metrics::MetricsRegistry;

use super::data_dir::DataDir;
use super::storage::StorageGauges;
use super::{certificates, clock_steps};

/// Interval between sweeps of expired entries.
const SWEEP_EVERY: Duration = Duration::from_secs(5);

/// Interval between writes of key uses, and between attempts to charge units delivered on grace.
const ACCOUNT_EVERY: Duration = Duration::from_secs(30);
/// Interval between looks for applications whose units of tomorrow are due.
const LEASE_TOMORROW_EVERY: Duration = Duration::from_secs(10);
/// Interval between reads of the change feed of a shared store.
const FOLLOW_EVERY: Duration = Duration::from_secs(1);
/// Interval between checks that the store file is in place.
const WATCH_EVERY: Duration = Duration::from_secs(2);

/// Starts all tasks except the ports.
pub(super) fn spawn(
    background: &TaskTracker,
    gateway: &Arc<ArcSwap<Gateway>>,
    registrar: &Arc<Registrar>,
    updater: Option<SnapshotUpdater>,
    config: &Config,
    clock: &Clock,
    stop: &CancellationToken,
) {
    let (engine, leases) = {
        let gateway = gateway.load();
        (gateway.engine.clone(), Arc::clone(&gateway.leases))
    };
    if let Some(updater) = updater {
        background.spawn(update_scores(updater, Arc::clone(&engine.refresher), stop.clone()));
    }
    background.spawn(clock_steps::watch(clock.clone(), stop.clone()));
    background.spawn(sweep(Arc::clone(gateway), clock.clone(), stop.clone()));
    background.spawn(engine.mirror.run(stop.clone()));
    if config.retention.probing {
        background.spawn(engine.refresher.run(stop.clone()));
    }
    if config.database.is_some() {
        let freshness = Arc::clone(&gateway.load().key_directory.freshness);
        background.spawn(follow_changes(Arc::clone(registrar), freshness, clock.clone(), stop.clone()));
    } else {
        background.spawn(watch_store(Arc::clone(registrar), clock.clone(), stop.clone()));
    }
    background.spawn(lease_tomorrow(
        Arc::clone(&leases),
        Arc::clone(&gateway.load().key_directory),
        clock.clone(),
        stop.clone(),
    ));
    background.spawn(settle_accounts(Arc::clone(registrar), leases, clock.clone(), stop.clone()));
}

/// Watches files: renewed certificates, free disk space.
pub(super) fn watch_files(
    background: &TaskTracker,
    data_dir: &DataDir,
    registry: &MetricsRegistry,
    certificates: &certificates::CertificateReloader,
    clock: &Clock,
    stop: &CancellationToken,
) {
    background.spawn(certificates.clone().run(clock.clone(), stop.clone()));
    background.spawn(StorageGauges::new(data_dir.path(), registry).run(clock.clone(), stop.clone()));
}

/// The updater of the built-in backend, and its channel for requests.
pub(super) fn snapshot_updater(scoring: Arc<Scoring>, clock: &Clock) -> (SnapshotUpdater, UpdateRequests) {
    let checker = Arc::clone(&scoring);
    SnapshotUpdater::new(scoring, Arc::new(move |now| checker.check(now)), clock.clone())
}

/// Updates the built-in backend's snapshot when it is due, without waiting for a request. After an import, whose time
/// is unpredictable, documents are refreshed before the import is answered.
async fn update_scores(mut updater: SnapshotUpdater, refresher: Arc<Refresher>, stop: CancellationToken) {
    let run = async {
        loop {
            let (change, request) = updater.next().await;
            if change == Change::ByAnImport {
                refresher.follow_an_early_refresh().await;
            }
            if let Some((request, outcome)) = request {
                // The requester may have left.
                drop(request.send(outcome));
            }
        }
    };
    stop.run_until_cancelled(run).await;
}

/// The owner of background tasks, with the first of them: the heartbeat of the current runtime.
pub(super) fn begin(
    registry: &MetricsRegistry,
    clock: &Clock,
    stop: &CancellationToken,
) -> (TaskTracker, Arc<Heartbeat>) {
    let age = registry.gauge("scoregate_heartbeat_age_seconds");
    let heartbeat = Arc::new(Heartbeat::new(clock.clone(), age));
    let (background, sender, stop) = (TaskTracker::new(), Arc::clone(&heartbeat), stop.clone());
    background.spawn(async move { sender.run(stop).await });
    (background, heartbeat)
}

/// Runs the side port on a thread and a runtime of its own, so that it answers when the public one is saturated.
pub(super) fn side_thread(
    side: SidePort,
    config: SideConfig,
    stop: CancellationToken,
) -> anyhow::Result<std::thread::JoinHandle<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let serve = move || {
        if let Err(error) = runtime.block_on(admin::run(side, config, stop)) {
            tracing::error!(%error, "the side port failed");
        }
    };
    Ok(std::thread::Builder::new().name("side-port".into()).spawn(serve)?)
}

/// Applies changes to applications and keys that were made elsewhere.
async fn follow_changes(
    registrar: Arc<Registrar>,
    freshness: Arc<KeyFreshness>,
    clock: Clock,
    stop: CancellationToken,
) {
    let run = async {
        loop {
            tokio::select! {
                () = freshness.next_reading(&clock, FOLLOW_EVERY) => {}
                () = registrar.changed_elsewhere() => {}
            }
            registrar.follow_changes().await;
        }
    };
    stop.run_until_cancelled(run).await;
}

async fn watch_store(registrar: Arc<Registrar>, clock: Clock, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = clock.sleep(WATCH_EVERY) => {}
        }
        registrar.check_file().await;
    }
}

/// Leases the first units of the next day before midnight.
async fn lease_tomorrow(
    leases: Arc<Leases>,
    key_directory: Arc<KeyDirectory>,
    clock: Clock,
    stop: CancellationToken,
) {
    let run = async {
        loop {
            clock.sleep(LEASE_TOMORROW_EVERY).await;
            leases.lease_tomorrow(&key_directory).await;
        }
    };
    stop.run_until_cancelled(run).await;
}

async fn settle_accounts(
    registrar: Arc<Registrar>,
    leases: Arc<Leases>,
    clock: Clock,
    stop: CancellationToken,
) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = clock.sleep(ACCOUNT_EVERY) => {}
        }
        leases.charge_owed();
        registrar.store_uses().await;
        registrar.check_damage();
    }
}

async fn sweep(gateway: Arc<ArcSwap<Gateway>>, clock: Clock, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = clock.sleep(SWEEP_EVERY) => {}
        }
        let gateway = gateway.load_full();
        // With many documents this takes milliseconds, too long for a serving thread.
        if tokio::task::spawn_blocking(move || gateway.sweep()).await.is_err() {
            tracing::error!("periodic task panicked");
        }
    }
}
