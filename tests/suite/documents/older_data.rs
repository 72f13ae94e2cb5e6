//! Data never goes back in time: a backend with older data (a lagging replica, a restored backup) does not replace
//! newer data that was received before.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use scoregate_base::{clock::Wall, routes::Selection};

use crate::{
    backend::json,
    client::Response,
    world::{Customer, NOON, World},
};

const MODELS: &str = "/api/v1/models?period=24h";
const ALERTS: &str = "/api/v1/alerts";

/// A backend whose data is of this minute after the start.
struct DatedBackend {
    world: World,
    customer: Customer,
    minute: Arc<AtomicU64>,
}

impl DatedBackend {
    async fn at(minute: u64) -> Self {
        let minute = Arc::new(AtomicU64::new(minute));
        let dated = Arc::clone(&minute);
        let world = World::with("", move |_| {
            let minute = dated.load(Ordering::Relaxed);
            let noon = Wall::parse_rfc3339(NOON).unwrap();
            let at = noon.plus(Duration::from_mins(minute)).rfc3339();
            json(&format!(
                r#"{{"generated_at":"{at}","data":[{{"id":"atlas","currentScore":{}}}]}}"#,
                minute / 10
            ))
        });
        let world = world.await;
        let customer = world.paid().await;
        world.pass(Duration::from_hours(1));
        Self {
            world,
            customer,
            minute,
        }
    }

    /// A response after a refresh.
    async fn refreshed(&self, target: &str, hard: bool) -> Response {
        let engine = &self.world.running.gateway().engine;
        engine.purge(&Selection::All, hard).await;
        self.world.get_as(&self.customer, target).await;
        self.world.settled().await;
        // A failed fetch is not repeated immediately.
        self.world.pass(Duration::from_secs(1));
        self.world.get_as(&self.customer, target).await
    }
}

fn minute(response: &Response) -> u64 {
    assert_eq!(response.status, 200, "{response:?}");
    response.json()["data"][0]["currentScore"].as_u64().unwrap() * 10
}

#[tokio::test]
async fn older_data_is_a_failed_fetch_until_a_hard_purge_accepts_it() {
    let backend = DatedBackend::at(30).await;
    assert_eq!(minute(&backend.refreshed(MODELS, false).await), 30);
    backend.minute.store(20, Ordering::Relaxed);
    let stale = backend.refreshed(MODELS, false).await;
    assert_eq!(minute(&stale), 30);
    assert!(
        stale.header("cache-status").contains("detail=stale"),
        "{:?}",
        stale.header("cache-status")
    );
    let failed = backend
        .world
        .running
        .gateway()
        .engine
        .fetcher
        .status()
        .last_failure
        .unwrap();
    assert!(
        failed.reason.contains("scoregate cache purge"),
        "{failed:?}"
    );

    backend.minute.store(40, Ordering::Relaxed);
    assert_eq!(minute(&backend.refreshed(MODELS, false).await), 40);
    backend.minute.store(20, Ordering::Relaxed);
    assert_eq!(minute(&backend.refreshed(MODELS, true).await), 20);
}

#[tokio::test]
async fn older_data_does_not_return_after_a_restart() {
    let DatedBackend {
        world,
        customer,
        minute: of_backend,
    } = DatedBackend::at(30).await;
    assert_eq!(minute(&world.get_as(&customer, MODELS).await), 30);
    let world = world.restarted().await;
    of_backend.store(20, Ordering::Relaxed);
    let backend = DatedBackend {
        world,
        customer,
        minute: of_backend,
    };
    assert_eq!(minute(&backend.refreshed(MODELS, false).await), 30);
    // The time of other documents is unknown.
    assert_eq!(minute(&backend.refreshed(ALERTS, false).await), 20);
}

#[tokio::test]
async fn a_time_far_ahead_of_the_clock_does_not_block_later_data() {
    let backend = DatedBackend::at(600).await;
    assert_eq!(minute(&backend.refreshed(MODELS, false).await), 600);
    backend.minute.store(50, Ordering::Relaxed);
    assert_eq!(minute(&backend.refreshed(MODELS, false).await), 50);
}
