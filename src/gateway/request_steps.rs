//! Steps of the request path that consist of several stages.

use crate::{
    accounts::Charge,
    instruments::{CacheOutcome, RequestSubject},
};
use scoregate_base::{clock::Now, routes::Route};
use scoregate_observe::traces::{OpenSpan, RequestSpan, TracedSpanKind};

use super::{
    refusal::Refusal,
    request::{
        connection_trust::ConnectionTrust,
        exchange::Exchange,
        progress::{Identification, Identified, RequestProgress, Waiting, WaitingFor},
    },
    request_services::Gateway,
    response::reply::{DocumentReply, Reply, document_use},
    stages::{
        admit::Admission,
        authenticate::{Caller, authenticate},
        charge::charge,
        fetch::Served,
        me::me,
        parse::ParsedRequest,
        resolve::{Lookup, ResolvedTarget, Wanted, entitle, resolve},
        settle::settle,
    },
};

impl Gateway {
    /// Authenticates the caller and resolves the target. Inlined for the same reason as `resolve`.
    #[inline]
    pub(super) fn identify(
        &self,
        parsed: &ParsedRequest<'_>,
        trust: &ConnectionTrust,
        x: &mut Exchange<'_>,
    ) -> Result<Identification, Refusal> {
        let caller = authenticate(parsed, &self.form, &self.key_directory, x.started)?;
        trust.authenticated(&caller);
        if trust.is_new_origin(&caller.account, x.peer.address, x.started.wall) {
            let agent = parsed.agent();
            let requests = &self.recorders.requests;
            requests.came_from(&caller.account, x.peer.address, agent, x.started.wall);
        }
        x.begin_span(parsed, &self.form);
        let lookup = Lookup::Use(&self.memo);
        match resolve(self, parsed, caller.rights, x.started.mono, lookup) {
            Ok(Wanted::Document(target, found)) => {
                x.subject = RequestSubject::Endpoint(target.key.route);
                Ok(Identification::Document(Identified {
                    caller,
                    target,
                    found,
                }))
            }
            Ok(Wanted::Me) => {
                x.subject = RequestSubject::Endpoint(Route::Me);
                Ok(Identification::Me(caller))
            }
            Err(refusal) => {
                x.caller = Some(caller);
                // Metrics also show the endpoint of a refused request.
                if let Some(route) = self.endpoints.find(parsed.path) {
                    x.subject = RequestSubject::Endpoint(route.endpoint.route);
                }
                Err(refusal)
            }
        }
    }

    /// Identifies the caller and the target of a request that waits, with current keys. Answers `/me`.
    pub(super) async fn identify_later(
        &self,
        waiting: WaitingFor,
        parsed: &ParsedRequest<'_>,
        trust: &ConnectionTrust,
        x: &mut Exchange<'_>,
    ) -> Result<RequestProgress<Identified>, Refusal> {
        let subject = match waiting {
            WaitingFor::Subject(subject) => subject,
            WaitingFor::Keys => {
                self.ensure_fresh_keys(x.started).await?;
                self.identify(parsed, trust, x)?
            }
        };
        match subject {
            Identification::Document(identified) => Ok(RequestProgress::Continues(identified)),
            Identification::Me(caller) => {
                let usage = self.usage(parsed, caller, x).await;
                usage.map(RequestProgress::Done)
            }
        }
    }

    /// The caller's own usage, after the ledger has stated the units of all windows.
    async fn usage(
        &self,
        parsed: &ParsedRequest<'_>,
        caller: Caller,
        x: &mut Exchange<'_>,
    ) -> Result<Reply, Refusal> {
        // The caller is set before the wait, so that a disconnect is counted for its application.
        let caller = &*x.caller.insert(caller);
        if !caller.knows_windows() {
            let stated = self.leases.lease(&caller.account).await;
            if stated.is_err() {
                tracing::debug!(application = %caller.account.id, "ledger unreachable; usage omits the windows longer than a day");
            }
        }
        me(self, parsed.credentials.prefix(), caller, x.started)
    }

    /// Charges and answers a request whose document is ready. Any other request has to wait.
    #[inline]
    pub(super) fn charge_ready<'r>(
        &self,
        parsed: ParsedRequest<'r>,
        identified: Identified,
        trust: &ConnectionTrust,
        x: &mut Exchange<'_>,
    ) -> Result<RequestProgress<Box<Waiting<'r>>>, Refusal> {
        let Some(found) = identified.ready() else {
            return Ok(Waiting::for_document(parsed, identified));
        };
        let Identified { caller, target, .. } = &identified;
        let headers = parsed.headers.map();
        let document = document_use(&found.stored, target, caller.rights, headers);
        match charge(&self.leases, caller, document.is_unchanged, x.started) {
            Charge::Waits => Ok(Waiting::for_document(parsed, identified)),
            Charge::Refused(rule) => {
                x.identified(identified);
                Err(Refusal::Limited(rule))
            }
            Charge::Paid {
                day,
                runs_low,
                statuses,
            } => {
                // Units are leased in the background, so that later requests need not wait.
                if runs_low {
                    self.leases.lease_ahead(&caller.account);
                }
                trust.admitted(caller);
                found.stored.used();
                let served = Served::hit(found);
                let mut reply = DocumentReply::new(served, target, caller, document, x.started);
                reply.charged = day;
                reply.limit_statuses = Some(statuses);
                x.identified(identified);
                Ok(RequestProgress::Done(Reply::Document(reply)))
            }
        }
    }

    /// Waits until key changes made elsewhere have been read, after this process or the store was paused.
    async fn ensure_fresh_keys(&self, now: Now) -> Result<(), Refusal> {
        let ensured = self.key_directory.freshness.ensure(&self.clock, now).await;
        ensured.map_err(|_| Refusal::KeysOutdated)
    }

    /// Checks the key again if the store became reachable during admission: the key may have been revoked in the
    /// meantime.
    pub(super) async fn check_key_again(
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

    /// Returns the document in the form that the caller may see. Unless it is a cache hit, the caller is
    /// authenticated again: the key may have been revoked or moved to another tier since admission.
    pub(super) fn deliver(
        &self,
        parsed: &ParsedRequest<'_>,
        caller: &Caller,
        target: &ResolvedTarget,
        served: Served,
        started: Now,
    ) -> Result<DocumentReply, Refusal> {
        let now = self.clock.later_than(started);
        let again;
        let mut caller = caller;
        if served.outcome != CacheOutcome::Hit {
            again = authenticate(parsed, &self.form, &self.key_directory, now)?;
            entitle(&target.key, again.rights, &self.notice.tiers)?;
            caller = &again;
        }
        let headers = parsed.headers.map();
        let document = document_use(&served.stored, target, caller.rights, headers);
        Ok(DocumentReply::new(served, target, caller, document, now))
    }

    /// The span for a sampled request's wait for units.
    pub(super) fn lease_wait(&self, request: Option<&RequestSpan>) -> Option<OpenSpan> {
        let now = self.clock.now();
        Some(request?.child("lease wait", TracedSpanKind::Internal, now))
    }

    /// Settles the request, and counts a refusal that the unreachable ledger caused.
    pub(super) fn settle(
        &self,
        admitted: Admission<'_>,
        delivery: Result<DocumentReply, Refusal>,
    ) -> Result<Reply, Refusal> {
        match settle(admitted, delivery, |reply| reply.document.is_unchanged) {
            Ok((mut reply, charged)) => {
                reply.charged = charged;
                Ok(Reply::Document(reply))
            }
            Err(refusal) => {
                if matches!(refusal, Refusal::LedgerUnavailable { .. }) {
                    self.leases.refused();
                }
                Err(refusal)
            }
        }
    }
}
