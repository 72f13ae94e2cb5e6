//! Observes this gateway for the status page, at fixed intervals.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;

use crate::admin::Readiness;
use crate::config::Config;
use crate::documents::{DataRefresh, Documents};
use crate::gateway::Gateway;
use crate::instruments::StoreInstruments;
use crate::pages::status::{DataState, StatusSite};
use crate::status::{Observation, StatusPublisher};
use crate::upstream::BreakerState;
use scoregate_base::clock::Clock;
use scoregate_store::Store;

use super::background::Background;

/// Interval between observations. The page states it.
const OBSERVE_EVERY: Duration = Duration::from_secs(5);
/// Interval until there is data: at a start it arrives soon.
const FIRST_EVERY: Duration = Duration::from_secs(1);

/// The publisher of the status page, if it is served.
pub(super) fn publisher(
    config: &Config,
    store: &Arc<dyn Store>,
    documents: &Documents,
    clock: &Clock,
    instruments: &Arc<StoreInstruments>,
) -> Option<Arc<StatusPublisher>> {
    let publisher = || {
        let store = Arc::clone(store);
        let instruments = Arc::clone(instruments);
        let data = data_state(documents, clock);
        StatusPublisher::new(store, site(config), data, clock.clone(), instruments)
    };
    config.status_page.then(publisher).map(Arc::new)
}

/// The service that the page is about.
pub(super) fn site(config: &Config) -> StatusSite {
    StatusSite {
        service: config.service.clone(),
        base_url: config.base_url.clone(),
        sign_up: config.site.is_some(),
    }
}

/// Starts the observations, the first one immediately.
pub(super) fn start(
    background: &Background,
    gateway: &Arc<ArcSwap<Gateway>>,
    readiness: &Arc<Readiness>,
) {
    let Some(publisher) = gateway.load().status.clone() else {
        return;
    };
    let gateway = Arc::clone(gateway);
    let readiness = Arc::clone(readiness);
    let clock = background.clock.clone();
    let stop = background.stop.clone();
    background.spawn(async move {
        loop {
            let began = clock.mono();
            let seen = observation(&gateway.load(), &readiness);
            publisher.observe(seen).await;
            let wait = if seen.data.newest.is_some() {
                OBSERVE_EVERY
            } else {
                FIRST_EVERY
            };
            if stop
                .run_until_cancelled(clock.sleep_until(began.plus(wait)))
                .await
                .is_none()
            {
                return;
            }
        }
    });
}

fn observation(gateway: &Gateway, readiness: &Readiness) -> Observation {
    let breaker = gateway.engine.fetcher.status().condition.breaker;
    Observation {
        is_ready: readiness
            .check_from_within(&gateway.leases.serving_facts())
            .is_ok(),
        backend_fails: breaker != BreakerState::Closed,
        data: data_state(&gateway.engine.documents, &gateway.clock),
    }
}

fn data_state(documents: &Documents, clock: &Clock) -> DataState {
    let DataRefresh {
        newest,
        expected,
        stale_since,
    } = documents.data_refresh(clock.now());
    DataState {
        newest,
        expected,
        stale_since,
    }
}
