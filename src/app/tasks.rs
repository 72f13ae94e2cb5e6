//! What runs beside the requests for as long as the program does.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admin::{self, Side, SideConfig};
use crate::clock::Clock;
use crate::config::Config;
use crate::gateway::{Gateway, Leases, Registrar};
use crate::scoring::{Scoring, keep_current};

/// How often what is over is swept up.
const SWEEP_EVERY: Duration = Duration::from_secs(5);

/// How often it is written down which keys were used, and tried to charge what was delivered on grace.
const ACCOUNT_EVERY: Duration = Duration::from_secs(30);
/// How often it is checked that the store's file is in its place.
const WATCH_EVERY: Duration = Duration::from_secs(2);

/// Starts all of them but the ports'.
pub(super) fn spawn(
    background: &TaskTracker,
    gateway: &Arc<ArcSwap<Gateway>>,
    registrar: &Arc<Registrar>,
    scoring: Option<Arc<Scoring>>,
    config: &Config,
    clock: &Clock,
    stop: &CancellationToken,
) {
    let (larder, leases) = {
        let gateway = gateway.load();
        (Arc::clone(&gateway.larder), Arc::clone(&gateway.leases))
    };
    if let Some(scoring) = scoring {
        background.spawn(keep_scores(scoring, clock.clone(), stop.clone()));
    }
    background.spawn(sweep(Arc::clone(gateway), clock.clone(), stop.clone()));
    background.spawn(Arc::clone(&larder).keep_on_disk(stop.clone()));
    if config.keeping.probing {
        background.spawn(larder.keep_current(stop.clone()));
    }
    background.spawn(watch_store(Arc::clone(registrar), clock.clone(), stop.clone()));
    background.spawn(keep_accounts(Arc::clone(registrar), leases, clock.clone(), stop.clone()));
}

/// The built-in backend makes its next snapshot when it is due, and not when somebody asks.
async fn keep_scores(scoring: Arc<Scoring>, clock: Clock, stop: CancellationToken) {
    let due = Arc::clone(&scoring);
    keep_current(scoring, Arc::new(move |now| due.refresh(now)), clock, stop).await;
}

/// The side port answers when the public one is saturated: a thread and a runtime of its own.
pub(super) fn side_thread(
    side: Side,
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

async fn watch_store(registrar: Arc<Registrar>, clock: Clock, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = clock.sleep(WATCH_EVERY) => {}
        }
        registrar.look_for_the_store().await;
    }
}

async fn keep_accounts(
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
        leases.collect();
        registrar.remember_uses().await;
        registrar.look_at_the_store();
    }
}

async fn sweep(gateway: Arc<ArcSwap<Gateway>>, clock: Clock, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = clock.sleep(SWEEP_EVERY) => {}
        }
        let swept = gateway.load_full();
        // With many documents this takes milliseconds, which no thread that serves can spare.
        if tokio::task::spawn_blocking(move || swept.sweep()).await.is_err() {
            tracing::error!("a sweep panicked");
        }
    }
}
