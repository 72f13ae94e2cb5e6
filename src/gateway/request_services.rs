//! The services that requests use, built by `app`.

use std::sync::Arc;

use bytes::Bytes;
use http::{Response, request::Parts};
use http_body_util::Full;

use crate::{accounts::KeyDirectory, documents::DocumentEngine, quota::Leases};

use crate::{pages::Pages, status::StatusPublisher};
use scoregate_base::{
    address::Proxies,
    clock::Clock,
    keys::{ApplicationId, Digest, KeyForm},
    routes::EndpointTable,
};

use super::{
    concurrency_limit::ConcurrencyLimit,
    guard::AddressGuard,
    observation::recorders::RequestRecorders,
    request::{
        connection_trust::ConnectionTrust, credentials::Credentials, peer::Peer,
        request_headers::RequestHeaders, target_memo::TargetMemo,
    },
    response::{cors::CorsPolicy, deprecation::Deprecation},
    service_notice::ServiceNotice,
    stages::parse::{ReceivedRequest, is_well_formed},
};

/// The services that requests use. Built by `app`.
pub struct Gateway {
    /// The clock.
    pub clock: Clock,
    /// The format of API keys.
    pub form: KeyForm,
    /// The known API keys and their applications.
    pub key_directory: Arc<KeyDirectory>,
    /// Leases of daily units from the ledger.
    pub leases: Arc<Leases>,
    /// Cached documents and fetches.
    pub engine: DocumentEngine,
    /// The endpoints of the API.
    pub endpoints: EndpointTable,
    /// Public pages, which need no key.
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
    /// The recorders of finished requests.
    pub recorders: RequestRecorders,
    /// CORS policy, if cross-origin reads are allowed.
    pub cors: Option<CorsPolicy>,
    /// The announced deprecation and sunset of the API.
    pub deprecation: Deprecation,
    /// Texts and numbers for `/me` and for 401 responses.
    pub notice: ServiceNotice,
}

impl Gateway {
    /// Answers a request. Always returns a response; a panic becomes a 500. `trust` belongs to the connection.
    pub fn handle<'r>(
        &'r self,
        head: &'r Parts,
        has_body: bool,
        peer: Peer,
        trust: &'r ConnectionTrust,
    ) -> impl Future<Output = Response<Full<Bytes>>> + Send {
        self.serve(ReceivedRequest::new(head, has_body), peer, trust)
    }

    /// Answers a tool call with the result of a GET of `target`. The head of the call must be valid.
    pub fn call<'r>(
        &'r self,
        head: &'r Parts,
        target: &'r str,
        mut peer: Peer,
        trust: &'r ConnectionTrust,
    ) -> impl Future<Output = Response<Full<Bytes>>> + Send {
        peer.is_tool_call = true;
        self.serve(ReceivedRequest::of_tool(head, target), peer, trust)
    }

    /// Whether the size and syntax of a request head are valid. This is the first check of every request. Only a
    /// request outside the API may be a POST with a body.
    pub fn accepts_head(head: &Parts, has_body: bool) -> bool {
        is_well_formed(head, has_body)
    }

    /// The application of the key in a head, for limits that apply before the request is authenticated.
    pub fn application(&self, head: &Parts) -> Option<ApplicationId> {
        let credentials = Credentials::new(RequestHeaders::new(&head.headers));
        let key = credentials.key().ok()?.filter(|key| self.form.fits(key))?;
        let now = self.clock.now().wall;
        let found = self.key_directory.find_valid(&Digest::of(key), now);
        Some(found.ok()?.account.id)
    }

    /// Removes expired documents and keys. Called every few seconds.
    pub fn sweep(&self) {
        self.engine.sweep();
        self.key_directory.sweep(self.clock.now());
        self.recorders.instruments.keys(self.key_directory.len());
        self.capacity.update_gauges();
    }
}
