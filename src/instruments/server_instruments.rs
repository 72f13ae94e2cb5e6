//! All metric handles of a server, by subject.

use std::sync::Arc;

use scoregate_base::routes::EndpointTable;
use scoregate_observe::telemetry::metrics::MetricsRegistry;

use super::{
    capacity::CapacityInstruments, documents::DocumentInstruments, ledger::LedgerInstruments,
    mail::MailInstruments, requests::RequestInstruments, store::StoreInstruments,
};

/// The metric handles of a server. Each part of the server uses the handles for its subject.
pub struct ServerInstruments {
    /// For the request path.
    pub requests: Arc<RequestInstruments>,
    /// For the limit on concurrent requests.
    pub capacity: Arc<CapacityInstruments>,
    /// For documents and the backend.
    pub documents: Arc<DocumentInstruments>,
    /// For quota units.
    pub ledger: Arc<LedgerInstruments>,
    /// For the store and its keys.
    pub store: Arc<StoreInstruments>,
    /// For emails and webhooks.
    pub mail: Arc<MailInstruments>,
}

impl ServerInstruments {
    /// Creates all handles. Existing counts continue. `tiers` and `addresses` are in the configured order.
    pub fn new(
        registry: &MetricsRegistry,
        tiers: &[String],
        endpoints: &EndpointTable,
        addresses: &[String],
    ) -> Self {
        Self {
            requests: Arc::new(RequestInstruments::new(registry, tiers, endpoints)),
            capacity: Arc::new(CapacityInstruments::new(registry)),
            documents: Arc::new(DocumentInstruments::new(registry, addresses)),
            ledger: Arc::new(LedgerInstruments::new(registry)),
            store: Arc::new(StoreInstruments::new(registry)),
            mail: Arc::new(MailInstruments::new(registry)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instruments::UnitUse;

    #[test]
    fn all_instruments_are_declared() {
        let tiers = ["free", "pro", "developer", "teams", "enterprise"].map(String::from);
        let registry = MetricsRegistry::default();
        let endpoints = EndpointTable::default();
        let instruments = ServerInstruments::new(&registry, &tiers, &endpoints, &["a:80".into()]);
        instruments.ledger.units(UnitUse::Leased, 3);
    }
}
