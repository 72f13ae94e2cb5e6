//! Builds the account pages from the settings.

use std::{net::SocketAddr, sync::Arc};

use crate::{admin::Administration, config::Config, instruments::SiteInstruments, site::Site};
use scoregate_store::Store;

use super::start_context::StartContext;

/// Completes the settings with the address of the public port, which is known only after the port is open.
pub fn locate(config: &mut Config, public: SocketAddr) {
    config.listen = public;
    config.site = config.site.take().map(|site| site.at(public));
}

/// Builds the site, if people can sign up.
pub fn build(
    context: &StartContext,
    store: &Store,
    administration: &Administration,
) -> Option<Arc<Site>> {
    // The metrics exist even without the site, because dashboards use them.
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
