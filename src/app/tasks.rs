//! Background tasks of the server.

use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio_util::sync::CancellationToken;

use crate::accounts::KeyFreshness;
use crate::admin::{self, Heartbeat, Readiness, SideConfig, SidePort};
use crate::config::Config;
use crate::documents::Refresher;
use crate::gateway::Gateway;
use crate::registry::{DirectoryKeeper, NoticeSweep, StoreMonitor};
use scoregate_base::clock::Clock;
use scoregate_observe::telemetry::metrics::MetricsRegistry;
use scoregate_scoring::{Change, Scoring, SnapshotUpdater, UpdateRequests};

use super::administration::ServerKeys;
use super::background::Background;
use super::certificates;
use super::secret_watch::SecretWatch;
use super::storage::StorageGauges;
use super::watched_files::CHECK_INTERVAL;

/// Interval between comparisons of the clocks, so that a step is noticed without requests.
const COMPARE_CLOCKS_EVERY: Duration = Duration::from_secs(1);
/// Interval between sweeps of expired entries.
const SWEEP_EVERY: Duration = Duration::from_secs(5);

/// Interval between writes of key uses, and between attempts to charge units delivered on grace.
const ACCOUNT_EVERY: Duration = Duration::from_secs(30);
/// The store writes last uses of keys for a quarter of the time at most.
const PAUSES_OF_USES: u32 = 3;
/// Interval between checks for applications whose units of tomorrow are due.
const LEASE_TOMORROW_EVERY: Duration = Duration::from_secs(10);
/// Interval between checks for units and tokens that other gateways may use.
// Units and tokens that were leased under other limits are returned within a second.
const RETURN_UNUSED_EVERY: Duration = Duration::from_millis(300);
/// Interval between checks for claims of shares of grace that are due, and between questions whether an unreachable ledger
/// is back.
const KEEP_GRACE_EVERY: Duration = Duration::from_secs(1);
/// Interval between questions whether an unreachable store of shared documents is back.
const ASK_AGAIN_EVERY: Duration = Duration::from_secs(5);
/// Interval between deletions of outdated records of the ledger.
const DELETE_OUTDATED_EVERY: Duration = Duration::from_mins(5);
/// Interval between reads of the change feed of a shared store.
const FOLLOW_EVERY: Duration = Duration::from_secs(1);
/// Interval between readings of the state of a shared store, for its metrics.
const MEASURE_STORE_EVERY: Duration = Duration::from_secs(15);
/// Interval between writes to the local copy of a shared store.
const KEEP_COPY_EVERY: Duration = Duration::from_secs(1);
/// Interval between attempts to connect to a shared store, until units were leased.
const CHECK_ACCESS_EVERY: Duration = Duration::from_secs(1);
/// Interval between sweeps for quotas that are nearly used.
const SWEEP_QUOTAS_EVERY: Duration = Duration::from_mins(1);
/// Interval between sweeps for limits that have ended.
const RESTORE_LIMITS_EVERY: Duration = Duration::from_mins(1);
/// Interval between sweeps for keys that expire soon.
const SWEEP_KEYS_EVERY: Duration = Duration::from_hours(1);
/// Interval between checks that the store file is in place.
const WATCH_EVERY: Duration = Duration::from_secs(2);

/// Starts all tasks except the ports.
pub(super) fn spawn(
    background: &Background,
    gateway: &Arc<ArcSwap<Gateway>>,
    keys: &ServerKeys,
    updater: Option<SnapshotUpdater>,
    config: &Config,
) {
    let engine = gateway.load().engine.clone();
    if let Some(updater) = updater {
        background.until_stopped(update_scores(updater, Arc::clone(&engine.refresher)));
    }
    background.repeat(ASK_AGAIN_EVERY, &engine, |engine| async move {
        engine.ask_for_shared_documents().await;
    });
    background.spawn(engine.mirror.run(background.stop.clone()));
    if config.retention.probing {
        background.spawn(engine.refresher.run(background.stop.clone()));
    }
    if let Some(receiver) = &keys.leaks
        && let Some(leaks) = &config.leaks
    {
        let signers = Arc::clone(&receiver.signers);
        let clock = background.clock.clone();
        background.until_stopped(leaks.signers.clone().follow(signers, clock));
    }
    if let Some(notices) = &keys.notices {
        sweep_notices(background, notices);
    }
    watch_store(background, gateway, keys);
    spawn_periodic(background, gateway, keys);
}

/// Finds out for which notices it is time.
fn sweep_notices(background: &Background, notices: &Arc<NoticeSweep>) {
    background.repeat(SWEEP_QUOTAS_EVERY, notices, |notices| async move {
        notices.quotas().await;
    });
    let notices = Arc::clone(notices);
    let clock = background.clock.clone();
    background.until_stopped(async move {
        loop {
            notices.keys().await;
            clock.sleep(SWEEP_KEYS_EVERY).await;
        }
    });
}

/// Starts the tasks that depend on the kind of store.
fn watch_store(background: &Background, gateway: &Arc<ArcSwap<Gateway>>, keys: &ServerKeys) {
    // Only a shared store has a local copy, and only there others change keys.
    if let Some(copy) = &keys.copy {
        let freshness = Arc::clone(&gateway.load().key_directory.freshness);
        let clock = background.clock.clone();
        background.until_stopped(follow_changes(
            Arc::clone(&keys.keeper),
            freshness,
            clock.clone(),
        ));
        background.until_stopped(measure_store(Arc::clone(&keys.monitor), clock));
        background.repeat(KEEP_COPY_EVERY, copy, |copy| async move {
            copy.write_due().await;
        });
        background.repeat(
            CHECK_ACCESS_EVERY,
            &gateway.load().leases,
            |leases| async move {
                leases.check_access().await;
            },
        );
    } else {
        background.repeat(WATCH_EVERY, &keys.monitor, |monitor| async move {
            monitor.check_file().await;
        });
    }
}

/// Starts the tasks that run at fixed intervals with every store.
fn spawn_periodic(background: &Background, gateway: &Arc<ArcSwap<Gateway>>, keys: &ServerKeys) {
    background.repeat(
        COMPARE_CLOCKS_EVERY,
        &background.clock,
        |clock| async move {
            clock.check();
        },
    );
    background.repeat(SWEEP_EVERY, gateway, |gateway| sweep(gateway.load_full()));
    let (leases, key_directory) = {
        let gateway = gateway.load();
        (
            Arc::clone(&gateway.leases),
            Arc::clone(&gateway.key_directory),
        )
    };
    let units = (Arc::clone(&leases), key_directory);
    background.repeat(
        LEASE_TOMORROW_EVERY,
        &units,
        |(leases, key_directory)| async move {
            leases.lease_tomorrow(&key_directory).await;
        },
    );
    background.repeat(
        RETURN_UNUSED_EVERY,
        &units,
        |(leases, key_directory)| async move {
            leases.return_unused(&key_directory);
        },
    );
    background.repeat(KEEP_GRACE_EVERY, &leases, |leases| async move {
        leases.probe();
        leases.keep_grace_share().await;
    });
    background.repeat(DELETE_OUTDATED_EVERY, &leases, |leases| async move {
        leases.delete_outdated().await;
    });
    let charges = (leases, Arc::clone(&keys.monitor));
    background.repeat(ACCOUNT_EVERY, &charges, |(leases, monitor)| async move {
        leases.charge_owed().await;
        monitor.check_damage();
    });
    background.repeat(
        RESTORE_LIMITS_EVERY,
        &keys.administration,
        |administration| async move {
            administration.registrar.restore_limits().await;
        },
    );
    // A task of its own: with many keys it takes minutes, and charges must not wait for it.
    background.repeat(ACCOUNT_EVERY, &keys.keeper, |keeper| async move {
        keeper.store_uses(PAUSES_OF_USES).await;
    });
}

/// The updater of the built-in backend, if it is used, and its channel for requests.
pub(super) fn snapshot_updater(
    scoring: Option<Arc<Scoring>>,
    clock: &Clock,
) -> (Option<SnapshotUpdater>, Option<UpdateRequests>) {
    let updater = |scoring: Arc<Scoring>| {
        let checker = Arc::clone(&scoring);
        SnapshotUpdater::new(
            scoring,
            Arc::new(move |now| checker.check(now)),
            clock.clone(),
        )
    };
    scoring.map(updater).unzip()
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
            // The requester may have left.
            drop(request.send(outcome));
        }
    }
}

/// The owner of background tasks, with the first of them: measures of the data directory, files that are watched, and the
/// heartbeat of the current runtime, on which readiness depends.
pub(super) fn begin(
    storage: StorageGauges,
    certificates: &certificates::CertificateReloader,
    secrets: &SecretWatch,
    registry: &MetricsRegistry,
    clock: &Clock,
) -> (Background, Arc<Readiness>) {
    let age = registry.gauge("scoregate_heartbeat_age_seconds");
    let heartbeat = Arc::new(Heartbeat::new(clock.clone(), age));
    let background = Background::new(clock);
    let sender = Arc::clone(&heartbeat);
    let stop = || background.stop.clone();
    background.spawn(storage.run(clock.clone(), stop()));
    background.spawn(certificates.clone().run(clock.clone(), stop()));
    background.repeat(CHECK_INTERVAL, secrets, |secrets| async move {
        secrets.refresh().await;
    });
    let stop = stop();
    background.spawn(async move { sender.run(stop).await });
    (background, Arc::new(Readiness::new(heartbeat)))
}

/// Runs the side port on a thread and a runtime of its own, so that it answers when the public one is saturated.
pub(super) fn side_thread(
    side: SidePort,
    tcp: TcpListener,
    socket: UnixListener,
    stop: CancellationToken,
) -> anyhow::Result<std::thread::JoinHandle<()>> {
    let config = SideConfig {
        tcp,
        socket: Some(socket),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let serve = move || {
        if let Err(error) = runtime.block_on(admin::run(side, config, stop)) {
            tracing::error!(%error, "the side port failed");
        }
    };
    Ok(std::thread::Builder::new()
        .name("side-port".into())
        .spawn(serve)?)
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

/// Reads the state of a shared store for its metrics. A failure is logged when it begins.
async fn measure_store(monitor: Arc<StoreMonitor>, clock: Clock) {
    let mut is_failing = false;
    loop {
        let measured = monitor.measure().await;
        if let Err(error) = &measured
            && !is_failing
        {
            tracing::warn!(%error, "state of the database cannot be read; its metrics keep their last values");
        }
        is_failing = measured.is_err();
        clock.sleep(MEASURE_STORE_EVERY).await;
    }
}

async fn sweep(gateway: Arc<Gateway>) {
    // With many documents this takes milliseconds, too long for a serving thread.
    if tokio::task::spawn_blocking(move || gateway.sweep())
        .await
        .is_err()
    {
        tracing::error!("periodic task panicked");
    }
}
