//! Access to single stages: for the fuzz targets in `tests/fuzz/` (parsers of untrusted bytes) and for
//! `benches/hot_path` (each stage of a cache hit).
//!
//! Not a stable interface: it changes with the stages.

use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::cache;
use crate::documents::{FetchPriority, FoundDocument};
use crate::gateway::request::credentials::Credentials;
use crate::gateway::request::exchange::{Exchange, Peer};
use crate::gateway::request::request_headers::RequestHeaders;
use crate::gateway::stages::admit::{Admission, admit};
use crate::gateway::stages::authenticate::{Caller, authenticate};
use crate::gateway::stages::fetch::{Served, fetch};
use crate::gateway::stages::parse::{ParsedRequest, ReceivedRequest, parse};
use crate::gateway::stages::resolve::{ResolvedTarget, endpoint, resolve};
use crate::gateway::stages::respond::{DocumentReply, Reply, respond};
use scoregate_base::clock::Now;
use scoregate_base::keys::KeyForm;
use scoregate_base::plans::Rights;
use scoregate_base::routes::{DocumentKey, EndpointTable};

use super::Gateway;
use super::refusal::{MisplacedKey, Refusal};
use super::response::response_context::ResponseContext;

fn parsed(head: &Parts) -> Result<ParsedRequest<'_>, Refusal> {
    let headers = RequestHeaders::of(&head.headers);
    let credentials = Credentials::of(headers);
    parse(ReceivedRequest {
        head,
        headers,
        has_body: false,
        credentials,
        called: None,
    })
}

/// Resolves the requested document.
pub fn document(head: &Parts, rights: Rights) -> Result<DocumentKey, Refusal> {
    let request = parsed(head)?;
    let (endpoint, raw_id) = endpoint(&request, &EndpointTable::default())?;
    resolve(
        &request,
        endpoint,
        raw_id,
        (rights, &[]),
        &KeyForm::new("sg_live", false),
    )
    .map(|target| target.key)
}

/// The key in the headers.
pub fn key(headers: &HeaderMap) -> Result<&str, Refusal> {
    Credentials::of(RequestHeaders::of(headers))
        .key()?
        .ok_or(Refusal::KeyMissing(MisplacedKey::Nowhere))
}

/// Whether a copy with this tag would get a 304.
pub fn is_current(headers: &HeaderMap, etag: &HeaderValue) -> bool {
    cache::is_current(headers, etag)
}

/// A cache hit, with the result of each stage, so that every stage can be repeated by itself.
pub struct CacheHit<'r> {
    gateway: &'r Gateway,
    head: &'r Parts,
    request: ParsedRequest<'r>,
    caller: Caller,
    target: ResolvedTarget,
    served: Served,
    exchange: Exchange<'r>,
    now: Now,
}

impl<'r> CacheHit<'r> {
    /// Runs all stages once.
    pub async fn of(gateway: &'r Gateway, head: &'r Parts, peer: Peer) -> Result<Self, Refusal> {
        let now = gateway.clock.now();
        let request = parsed(head)?;
        let mut exchange = Exchange::open(
            &gateway.recorders,
            &gateway.form,
            now,
            peer,
            request.headers,
            &request.credentials,
        );
        let caller = authenticate(&request, &gateway.form, &gateway.key_directory, now)?;
        let (found, raw_id) = endpoint(&request, &gateway.endpoints)?;
        let target = resolve(
            &request,
            found,
            raw_id,
            (caller.rights, &gateway.notice.tiers),
            &gateway.form,
        )?;
        let served = fetch(
            &gateway.engine,
            &target,
            None,
            FetchPriority::BACKGROUND,
            now,
        )
        .await?;
        exchange.caller = Some(caller.clone());
        Ok(Self {
            gateway,
            head,
            request,
            caller,
            target,
            served,
            exchange,
            now,
        })
    }

    /// Parses the head.
    pub fn parse(&self) -> bool {
        parsed(self.head).is_ok()
    }

    /// Finds the application of the key.
    pub fn authenticate(&self) -> bool {
        authenticate(
            &self.request,
            &self.gateway.form,
            &self.gateway.key_directory,
            self.now,
        )
        .is_ok()
    }

    /// Resolves the document.
    pub fn resolve(&self) -> bool {
        let found = endpoint(&self.request, &self.gateway.endpoints);
        found.is_ok_and(|(endpoint, raw_id)| {
            let rights = (self.caller.rights, &*self.gateway.notice.tiers);
            resolve(&self.request, endpoint, raw_id, rights, &self.gateway.form).is_ok()
        })
    }

    /// Takes a concurrency slot.
    pub async fn enter(&self) -> bool {
        self.gateway
            .capacity
            .enter(true, &self.gateway.clock)
            .await
            .is_ok()
    }

    /// Takes and returns a token and a unit.
    pub async fn admit(&self) -> bool {
        let admitted = admit(&self.gateway.leases, &self.caller, false, self.now, || {}).await;
        let Ok(Admission::ToFetch(hold)) = admitted else {
            return false;
        };
        hold.give_token_back();
        true
    }

    /// Reads the document from the cache.
    pub async fn fetch(&self) -> bool {
        let found = self
            .gateway
            .engine
            .documents
            .find(&self.target.key, self.now.mono);
        let is_servable = found.as_ref().is_some_and(FoundDocument::is_servable);
        let served = fetch(
            &self.gateway.engine,
            &self.target,
            found,
            FetchPriority::BACKGROUND,
            self.now,
        )
        .await;
        is_servable && served.is_ok()
    }

    /// Builds the response.
    pub fn respond(&self) -> bool {
        let served = self.served.clone();
        let delivery = DocumentReply::of(
            served,
            &self.target,
            &self.caller,
            self.request.headers.map(),
            self.now,
        );
        let response = respond(
            &Ok(Reply::Document(delivery)),
            &ResponseContext::of(self.gateway, self.head, &self.exchange, self.now),
        );
        response.status() == StatusCode::OK
    }

    /// Records the request in metrics and log.
    pub fn observe(&self) -> bool {
        let mut exchange = Exchange::open(
            &self.gateway.recorders,
            &self.gateway.form,
            self.now,
            self.exchange.peer,
            self.request.headers,
            &self.request.credentials,
        );
        exchange.caller = Some(self.caller.clone());
        exchange.outcome = Some(self.served.outcome);
        exchange.age = Some(self.served.age(self.now));
        exchange.close(None, StatusCode::OK, self.now);
        exchange.ended.is_some()
    }
}
