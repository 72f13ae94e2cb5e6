//! The pages of accounts, from the settings.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio_util::task::TaskTracker;

use crate::admin::Administration;
use crate::config::Config;
use crate::instruments::SiteInstruments;
use crate::site::Site;
use scoregate_base::clock::Clock;
use scoregate_observe::telemetry::metrics::MetricsRegistry;
use scoregate_store::Store;

/// Completes the settings with the address of the port, which is only known once it is open. Returns the address.
pub(super) fn located(config: &mut Config, public: SocketAddr) -> SocketAddr {
    config.listen = public;
    config.site = config.site.take().map(|site| site.at(public));
    public
}

/// The site, if people can sign up.
pub(super) fn build(
    config: &Config,
    store: &Arc<dyn Store>,
    administration: &Administration,
    clock: &Clock,
    registry: &MetricsRegistry,
    tasks: &TaskTracker,
) -> Option<Arc<Site>> {
    // The metrics exist without the site too, for dashboards.
    let instruments = SiteInstruments::new(registry);
    let site = config.site.clone()?;
    let store = Arc::clone(store);
    let registrar = Arc::clone(&administration.registrar);
    let owners = Arc::clone(&administration.owners);
    let clock = clock.clone();
    let tasks = tasks.clone();
    Some(Arc::new(Site::new(
        site,
        store,
        registrar,
        owners,
        clock,
        instruments,
        tasks,
    )))
}

/// Applies other settings.
pub(super) fn renew(site: Option<&Arc<Site>>, config: &Config) {
    if let Some(site) = site
        && let Some(config) = &config.site
    {
        site.set_config(config.clone());
    }
}
