//! The life of a request, top to bottom.
//!
//! [`Gateway::handle`] opens the exchange, has it answered, renders and records. `quick` lists the stages of a request that
//! does not have to wait, `answer` those of the others; `begin` is common to both.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use futures_util::FutureExt as _;
use futures_util::future::{Either, ready};
use http::request::Parts;
use http::{Method, Response};
use http_body_util::Full;

use crate::documents::{FetchPriority, FoundDocument};
use crate::instruments::{CacheOutcome, RequestSubject};
use crate::pages::Pages;
use scoregate_base::clock::{Now, Wall};
use scoregate_base::keys::{ApplicationId, Digest};
use scoregate_base::routes::{API_BASE, Route};
use scoregate_observe::traces::{OpenSpan, RequestSpan, TracedSpanKind};

use super::admit::{Admission, admit, guarded};
use super::authenticate::{Caller, authenticate, find};
use super::charge::{ChargedRequest, charge};
use super::connection_trust::ConnectionTrust;
use super::credentials::Credentials;
use super::exchange::{Exchange, Peer};
use super::fetch::{Served, fetch, stored_only};
use super::guard::AddressGuard;
use super::parse::{MethodKind, ParsedRequest, ReceivedRequest, is_well_formed, parse};
use super::refusal::Refusal;
use super::request_headers::RequestHeaders;
use super::request_services::Gateway;
use super::resolve::{ResolvedTarget, resolve};
use super::respond::{DocumentReply, Reply, respond};
use super::response::page_reply::PageReply;
use super::response::response_context::ResponseContext;
use super::settle::settle;
use super::{admit, me, resolve};

/// Liveness: answers as long as the process runs.
const HEALTH: &str = "/healthz";

impl Gateway {
    /// Answers a request. Never fails and never panics: a panic becomes a 500. `trust` belongs to the connection.
    pub fn handle<'r>(
        &'r self,
        head: &'r Parts,
        has_body: bool,
        peer: Peer,
        trust: &'r ConnectionTrust,
    ) -> impl Future<Output = Response<Full<Bytes>>> + Send {
        self.serve(head, (has_body, None), peer, trust)
    }

    /// Answers a call of a tool by the result of a GET of `target`. Its head is valid.
    pub fn call<'r>(
        &'r self,
        head: &'r Parts,
        target: &'r str,
        peer: Peer,
        trust: &'r ConnectionTrust,
    ) -> impl Future<Output = Response<Full<Bytes>>> + Send {
        let peer = Peer {
            is_tool_call: true,
            ..peer
        };
        self.serve(head, (false, Some(target)), peer, trust)
    }

    fn serve<'r>(
        &'r self,
        head: &'r Parts,
        (has_body, called): (bool, Option<&'r str>),
        peer: Peer,
        trust: &'r ConnectionTrust,
    ) -> impl Future<Output = Response<Full<Bytes>>> + Send {
        let started = self.clock.now();
        let client = Peer {
            address: self.proxies.client(peer.address, &head.headers),
            ..peer
        };
        let headers = RequestHeaders::of(&head.headers);
        let credentials = Credentials::of(headers);
        let mut exchange = Exchange::open(
            &self.recorders,
            &self.form,
            started,
            client,
            headers,
            &credentials,
        );
        let request = ReceivedRequest {
            head,
            headers,
            has_body,
            credentials,
            called,
        };
        let mut parsed = None;
        let mut answered = Ok(None);
        let quick = || answered = self.quick(request, &mut parsed, trust, &mut exchange);
        if catch_unwind(AssertUnwindSafe(quick)).is_err() {
            answered = self.panicked();
        }
        if matches!(answered, Ok(None))
            && let Some(parsed) = parsed
        {
            return Either::Right(Box::pin(self.handle_waiting(parsed, trust, exchange)));
        }
        let answered = answered.and_then(|reply| reply.ok_or(Refusal::Internal));
        Either::Left(ready(self.close(answered, head, &mut exchange)))
    }

    /// Answers a request that waits.
    async fn handle_waiting(
        &self,
        parsed: ParsedRequest<'_>,
        trust: &ConnectionTrust,
        exchange: Exchange<'_>,
    ) -> Response<Full<Bytes>> {
        // Dropped after the exchange, which is recorded before.
        let _in_progress = self.recorders.instruments.request_waits();
        let mut exchange = exchange;
        let answering = AssertUnwindSafe(self.answer(&parsed, trust, &mut exchange));
        let answered = answering
            .catch_unwind()
            .await
            .unwrap_or_else(|_| self.panicked());
        self.close(answered, parsed.head, &mut exchange)
    }

    /// Renders the response and records it.
    fn close(
        &self,
        mut answered: Result<Reply, Refusal>,
        head: &Parts,
        exchange: &mut Exchange<'_>,
    ) -> Response<Full<Bytes>> {
        if let Err(refusal) = &mut answered {
            let Exchange {
                ref caller,
                peer,
                started,
                ..
            } = *exchange;
            *refusal = guarded(refusal.clone(), &self.guard, caller.as_ref(), peer, started);
            exchange.log(refusal);
        }
        let now = self.clock.later_than(exchange.started);
        let response = respond(&answered, &ResponseContext::of(self, head, exchange, now));
        exchange.close(answered.err(), response.status(), now);
        response
    }

    fn panicked<T>(&self) -> Result<T, Refusal> {
        self.recorders.instruments.panicked();
        Err(Refusal::Internal)
    }

    /// Whether size and syntax of a request head are valid. The first check of every request; others than those of the
    /// API may be a POST with a body.
    pub fn accepts_head(head: &Parts, has_body: bool) -> bool {
        is_well_formed(head, has_body)
    }

    /// The application of the key in a head, for limits that apply before the request is authenticated.
    pub fn application(&self, head: &Parts) -> Option<ApplicationId> {
        let credentials = Credentials::of(RequestHeaders::of(&head.headers));
        let key = credentials.key().ok()?.filter(|key| self.form.fits(key))?;
        let found = find(&Digest::of(key), &self.key_directory, self.clock.now());
        Some(found.ok()?.account.id)
    }

    /// Removes expired documents and keys. Called every few seconds.
    pub fn sweep(&self) {
        self.engine.sweep();
        self.key_directory.sweep(self.clock.now());
        self.recorders.instruments.keys(self.key_directory.len());
        self.capacity.update_gauges();
    }

    /// The stages of a request that does not have to wait, in order: pages, hits, 304s and most refusals. `None` if it has to.
    fn quick<'r>(
        &self,
        request: ReceivedRequest<'r>,
        parsed: &mut Option<ParsedRequest<'r>>,
        trust: &ConnectionTrust,
        x: &mut Exchange<'_>,
    ) -> Result<Option<Reply>, Refusal> {
        let parsed = parsed.insert(parse(request)?);
        if let Some((subject, reply)) = self.unauthenticated_reply(parsed, x.started.wall) {
            x.subject = subject;
            let reply = within_page_bytes(reply, parsed.head, &self.guard, x.peer, x.started);
            return reply.map(Some);
        }
        if !self.key_directory.freshness.is_current(x.started) {
            return Ok(None);
        }
        match self.begin(parsed, trust, x)? {
            None => self.hit(parsed, trust, x),
            me => Ok(me),
        }
    }

    /// Identifies the caller and finds the document. Answers `/me`.
    fn begin(
        &self,
        parsed: &ParsedRequest<'_>,
        trust: &ConnectionTrust,
        x: &mut Exchange<'_>,
    ) -> Result<Option<Reply>, Refusal> {
        let caller = authenticate(parsed, &self.form, &self.key_directory, x.started)?;
        trust.authenticated(&caller);
        let address = x.peer.address;
        let at = x.started.wall;
        if trust.is_new_origin(&caller.account, address, at) {
            self.recorders
                .requests
                .came_from(&caller.account, address, parsed.agent(), at);
        }
        x.begin_span(parsed.head, &parsed.credentials);
        let caller = &*x.caller.insert(caller);
        let documents = &self.engine.documents;
        let rights = caller.rights;
        let now = x.started.mono;
        if let Some((key, mark, stored)) = self.memo.recall(parsed.target, rights, now) {
            x.subject = RequestSubject::Endpoint(key.route);
            let target = &*x
                .target
                .insert(ResolvedTarget::of(parsed, (key, mark), &self.form));
            if let Some(stored) = stored {
                x.found = Some(documents.judge(&target.key, stored, now));
                return Ok(None);
            }
        } else {
            let (endpoint, raw_id) = resolve::endpoint(parsed, &self.endpoints)?;
            x.subject = RequestSubject::Endpoint(endpoint.route);
            if endpoint.route == Route::Me {
                return self
                    .me(parsed.credentials.prefix(), caller, x.peer, x.started)
                    .map(Some);
            }
            x.target = Some(resolve(
                parsed,
                endpoint,
                raw_id,
                (rights, &self.notice.tiers),
                &self.form,
            )?);
        }
        if let Some(target) = &x.target {
            x.found = documents.find(&target.key, now);
            if let Some(found) = x.found.as_ref().filter(|_| !target.names_a_key) {
                self.memo.remember(
                    parsed,
                    rights,
                    (&target.key, target.mark),
                    &found.stored,
                    now,
                );
            }
        }
        Ok(None)
    }

    /// Serves a fresh document or its 304, or refuses by a limit. `None` if the request has to wait; then nothing is taken.
    fn hit(
        &self,
        parsed: &ParsedRequest<'_>,
        trust: &ConnectionTrust,
        x: &mut Exchange<'_>,
    ) -> Result<Option<Reply>, Refusal> {
        let (Some(caller), Some(target)) = (&x.caller, &x.target) else {
            return Ok(None);
        };
        let Some(found) = x.found.take_if(|found| target.is_ready(found)) else {
            return Ok(None);
        };
        let FoundDocument { due, verdict, .. } = found;
        let served = Served::hit(found);
        let age = served.age(x.started);
        let reply = DocumentReply::of(served, target, caller, parsed.headers.map(), x.started);
        let counter = &self.recorders.requests;
        let route = target.key.route;
        let charged = charge(
            &self.leases,
            counter,
            caller,
            route,
            reply.as_use(target),
            x.started,
        );
        let Some(ChargedRequest { result, statuses }) = charged else {
            x.found = Some(FoundDocument {
                stored: reply.into_stored(),
                due,
                verdict,
            });
            return Ok(None);
        };
        (x.limit_statuses, x.is_counted) = (Some(statuses), true);
        x.charged = result?;
        trust.admitted(caller);
        reply.count_use();
        (x.outcome, x.age) = (Some(CacheOutcome::Hit), Some(age));
        Ok(Some(Reply::Document(reply)))
    }

    /// The stages of a request that may have to wait, in order.
    async fn answer(
        &self,
        parsed: &ParsedRequest<'_>,
        trust: &ConnectionTrust,
        x: &mut Exchange<'_>,
    ) -> Result<Reply, Refusal> {
        if x.caller.is_none() {
            self.ensure_fresh_keys(x.started).await?;
            if let Some(reply) = self.begin(parsed, trust, x)? {
                return Ok(reply);
            }
        }
        let (Some(caller), Some(target)) = (&x.caller, &x.target) else {
            return Err(Refusal::Internal);
        };
        let found = x.found.take();
        let is_servable = found.as_ref().is_some_and(FoundDocument::is_servable);
        let mut slot = self.capacity.enter(is_servable, &self.clock).await?;
        let mut lease_wait = None;
        let before_waiting = || {
            self.capacity.move_to_waiting(&mut slot);
            self.begin_lease_wait(&mut lease_wait, x.span.as_deref());
        };
        let admitted = admit(
            &self.leases,
            caller,
            target.conditional,
            x.started,
            before_waiting,
        )
        .await;
        drop(lease_wait);
        let admitted = admitted.inspect(|_| trust.admitted(caller))?;
        self.check_key_again(parsed, x.started).await?;
        let served = match &admitted {
            Admission::ToFetch(_) => {
                let id = caller.account.id;
                let is_paid = caller.rights.is_paid();
                let priority =
                    FetchPriority::caller(id, is_paid, x.trace.as_ref(), x.span.as_ref());
                fetch(&self.engine, target, found, priority, x.started).await
            }
            Admission::ToRevalidate(_) => {
                if let Some(found) = &found {
                    found.stored.used();
                }
                stored_only(found)
            }
        };
        let now = self.clock.later_than(x.started);
        let delivery = served.and_then(|served| {
            let source = (Some(served.outcome), Some(served.age(now)));
            let reply = self.deliver(parsed, caller, target, served, now)?;
            (x.outcome, x.age) = source;
            x.document = Some(reply.as_use(target));
            Ok(reply)
        });
        let settled = settle(admitted, delivery, |reply| reply.not_modified)
            .inspect_err(|refusal| self.count_without_ledger(refusal));
        let (reply, charged) = settled?;
        x.charged = charged;
        Ok(Reply::Document(reply))
    }

    /// Begins the span of the wait for units of a sampled request, at its first wait.
    fn begin_lease_wait(&self, wait: &mut Option<OpenSpan>, request: Option<&RequestSpan>) {
        if let (None, Some(request)) = (&wait, request) {
            *wait = Some(request.child("lease wait", TracedSpanKind::Internal, self.clock.now()));
        }
    }

    /// Waits for changes of keys made elsewhere after a pause of this process or of the store.
    async fn ensure_fresh_keys(&self, now: Now) -> Result<(), Refusal> {
        let ensured = self.key_directory.freshness.ensure(&self.clock, now).await;
        ensured.map_err(|_| Refusal::KeysOutdated)
    }

    /// Checks the key again if the store has become reachable during admission: it may have been revoked meanwhile.
    async fn check_key_again(
        &self,
        parsed: &ParsedRequest<'_>,
        started: Now,
    ) -> Result<(), Refusal> {
        if self.key_directory.freshness.is_current(started) {
            return Ok(());
        }
        self.ensure_fresh_keys(self.clock.now()).await?;
        authenticate(parsed, &self.form, &self.key_directory, self.clock.now()).map(drop)
    }

    /// Counts a refusal for lack of the ledger.
    fn count_without_ledger(&self, refusal: &Refusal) {
        if matches!(refusal, Refusal::LedgerUnavailable { .. }) {
            self.leases.refused();
        }
    }

    /// Returns the document in the form that the caller may see. Unless it is a cache hit, the caller is
    /// authenticated again: the key may have been revoked or moved to another tier since admission.
    fn deliver(
        &self,
        parsed: &ParsedRequest<'_>,
        caller: &Caller,
        target: &ResolvedTarget,
        served: Served,
        now: Now,
    ) -> Result<DocumentReply, Refusal> {
        if served.outcome == CacheOutcome::Hit {
            return Ok(DocumentReply::of(
                served,
                target,
                caller,
                parsed.headers.map(),
                now,
            ));
        }
        let caller = authenticate(parsed, &self.form, &self.key_directory, now)?;
        resolve::entitle(&target.key, caller.rights, &self.notice.tiers)?;
        Ok(DocumentReply::of(
            served,
            target,
            &caller,
            parsed.headers.map(),
            now,
        ))
    }

    /// Pages and redirects that need no key.
    pub(super) fn unauthenticated_reply(
        &self,
        parsed: &ParsedRequest<'_>,
        now: Wall,
    ) -> Option<(RequestSubject, Reply)> {
        match parsed.method {
            MethodKind::Options => Some((RequestSubject::Options, Reply::Options)),
            MethodKind::Answer if parsed.path.starts_with(API_BASE) => None,
            MethodKind::Answer if parsed.path == HEALTH => {
                Some((RequestSubject::Page, Reply::Health))
            }
            MethodKind::Answer => {
                let status = || self.status.as_ref()?.find(parsed.path);
                let page = self.pages.find(parsed.path, now).or_else(status);
                let page = page.map(|page| Reply::Page(PageReply::of(page, parsed.headers.map())));
                let moved = || Pages::moved(parsed.path).map(Reply::Moved);
                page.or_else(moved)
                    .map(|answer| (RequestSubject::Page, answer))
            }
        }
    }

    /// `/me`, the only endpoint that the gateway answers itself. It costs a token of the guard.
    pub(super) fn me(
        &self,
        key_prefix: &str,
        caller: &Caller,
        peer: Peer,
        now: Now,
    ) -> Result<Reply, Refusal> {
        if !admit::take_guard_token(&self.guard, Some(caller), peer, now) {
            return Err(Refusal::TooManyRefusals);
        }
        let known = me::MeContext {
            key_prefix,
            license: &self.notice.license,
            next_refresh: self.engine.documents.next_refresh(now.wall),
            cadence_seconds: self.notice.cadence_seconds,
            advice: self.recorders.requests.advice(&caller.account, now.wall),
        };
        Ok(Reply::Me(me::describe(caller, known, now)))
    }
}

/// Refuses a page if its address got too many bytes of pages.
pub(super) fn within_page_bytes(
    reply: Reply,
    head: &Parts,
    guard: &AddressGuard,
    peer: Peer,
    now: Now,
) -> Result<Reply, Refusal> {
    if let Reply::Page(page) = &reply
        && head.method != Method::HEAD
    {
        admit::take_page(guard, page.bytes(), peer, now)?;
    }
    Ok(reply)
}
