//! The pages of accounts, from the settings.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::admin::Administration;
use crate::config::Config;
use crate::instruments::SiteInstruments;
use crate::site::Site;
use scoregate_store::Store;

use super::start_context::StartContext;

/// Completes the settings with the address of the port, which is only known once it is open.
pub(super) fn locate(config: &mut Config, public: SocketAddr) {
    config.listen = public;
    config.site = config.site.take().map(|site| site.at(public));
}

/// The site, if people can sign up.
pub(super) fn build(
    context: &StartContext,
    store: &Store,
    administration: &Administration,
) -> Option<Arc<Site>> {
    // The metrics exist without the site too, for dashboards.
    let instruments = SiteInstruments::new(&context.registry);
    Some(Arc::new(Site::new(
        context.config.site.clone()?,
        store.clone(),
        Arc::clone(&administration.registrar),
        Arc::clone(&administration.owners),
        context.clock.clone(),
        instruments,
        context.calls.clone(),
    )))
}
