//! Everything that requests use, built by `app`.

use std::sync::Arc;

use crate::accounts::{KeyDirectory, Leases};
use crate::documents::DocumentEngine;
use crate::gateway::request::target_memo::TargetMemo;
use crate::pages::Pages;
use crate::status::StatusPublisher;
use scoregate_base::address::Proxies;
use scoregate_base::clock::Clock;
use scoregate_base::keys::KeyForm;
use scoregate_base::routes::EndpointTable;

use super::concurrency_limit::ConcurrencyLimit;
use super::guard::AddressGuard;
use super::observation::recorders::RequestRecorders;
use super::response::cors::CorsPolicy;
use super::response::deprecation::Deprecation;
use super::service_notice::ServiceNotice;

/// Everything a request may need. Built once by `app`.
pub struct Gateway {
    /// The clock.
    pub clock: Clock,
    /// The format of API keys.
    pub form: KeyForm,
    /// Known API keys and the applications they belong to.
    pub key_directory: Arc<KeyDirectory>,
    /// Leases of daily units from the ledger.
    pub leases: Arc<Leases>,
    /// Cached documents and fetches.
    pub engine: DocumentEngine,
    /// The endpoints of the API.
    pub endpoints: EndpointTable,
    /// Public pages; no key required.
    pub pages: Pages,
    /// The status page, if it is served.
    pub status: Option<Arc<StatusPublisher>>,
    /// Trusted proxies.
    pub proxies: Proxies,
    /// Recently resolved targets.
    pub memo: TargetMemo,
    /// Limits refusals per address.
    pub guard: Arc<AddressGuard>,
    /// Limits concurrent requests.
    pub capacity: Arc<ConcurrencyLimit>,
    /// Where requests are recorded.
    pub recorders: RequestRecorders,
    /// CORS policy, if cross-origin reads are allowed.
    pub cors: Option<CorsPolicy>,
    /// Deprecation and sunset of the API, if announced.
    pub deprecation: Deprecation,
    /// Texts and numbers for `/me` and for 401 responses.
    pub notice: ServiceNotice,
}
