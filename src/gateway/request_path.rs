//! The path of a request, from top to bottom. `begin` lists the stages of a request that does not have to wait: pages,
//! hits, 304s and most refusals. `answer` lists the stages of the other requests. `request_steps` has the steps that
//! consist of several stages. [`Gateway::serve`] calls them all.

use std::panic::{AssertUnwindSafe, catch_unwind};

use bytes::Bytes;
use futures_util::{
    FutureExt as _,
    future::{Either, ready},
};
use http::{Response, request::Parts};
use http_body_util::Full;

use super::{
    refusal::Refusal,
    request::{
        connection_trust::ConnectionTrust,
        exchange::Exchange,
        peer::Peer,
        progress::{Identification, RequestProgress, Waiting, WaitingFor},
    },
    request_services::Gateway,
    response::{reply::Reply, response_context::ResponseContext},
    stages::{
        admit::{Admission, admit},
        fetch::{fetch, revalidate},
        find_page::{find_page, within_page_bytes},
        guard::guarded,
        me::me,
        parse::{ReceivedRequest, parse},
        respond::respond,
    },
};

impl Gateway {
    /// Opens the exchange and answers the request. The future is boxed only if the request has to wait.
    pub(super) fn serve<'r>(
        &'r self,
        request: ReceivedRequest<'r>,
        mut peer: Peer,
        trust: &'r ConnectionTrust,
    ) -> impl Future<Output = Response<Full<Bytes>>> + Send {
        let started = self.clock.now();
        let head = request.head;
        peer.address = self.proxies.client(peer.address, &head.headers);
        let mut x = Exchange::open(&self.recorders, &self.form, started, peer, &request);
        // A panic must end only this request, which gets a 500.
        let begun = AssertUnwindSafe(|| self.begin(request, trust, &mut x));
        let begun = catch_unwind(begun).unwrap_or_else(|_| Err(self.panicked()));
        let response = match begun {
            Ok(RequestProgress::Continues(waiting)) => {
                return Either::Right(Box::pin(self.wait(*waiting, trust, x)));
            }
            Ok(RequestProgress::Done(reply)) => self.close(Ok(&reply), head, &mut x),
            Err(refusal) => self.close(Err(refusal), head, &mut x),
        };
        Either::Left(ready(response))
    }

    async fn wait(
        &self,
        waiting: Waiting<'_>,
        trust: &ConnectionTrust,
        exchange: Exchange<'_>,
    ) -> Response<Full<Bytes>> {
        // Dropped after the exchange, so that the exchange is recorded first.
        let _in_progress = self.recorders.instruments.request_waits();
        let mut x = exchange;
        let head = waiting.parsed.head;
        let answering = AssertUnwindSafe(self.answer(waiting, trust, &mut x));
        let answered = answering.catch_unwind().await;
        match answered.unwrap_or_else(|_| Err(self.panicked())) {
            Ok(reply) => self.close(Ok(&reply), head, &mut x),
            Err(refusal) => self.close(Err(refusal), head, &mut x),
        }
    }

    /// Renders the response and records it. Reply and exchange are borrowed: moving them would copy 500 bytes per hit.
    fn close(
        &self,
        answered: Result<&Reply, Refusal>,
        head: &Parts,
        x: &mut Exchange<'_>,
    ) -> Response<Full<Bytes>> {
        let refused;
        let answered = match answered {
            Ok(reply) => Ok(reply),
            Err(refusal) => {
                let caller = x.caller.as_ref();
                refused = guarded(refusal, &self.guard, caller, x.peer, x.started);
                x.log(&refused);
                Err(&refused)
            }
        };
        // The headers describe the status at the time of sending, which may be on a later day than the start.
        let now = self.clock.later_than(x.started);
        let response = respond(answered, &ResponseContext::new(self, head, x, now));
        x.finish(answered, response.status(), now);
        response
    }

    fn panicked(&self) -> Refusal {
        self.recorders.instruments.panicked();
        Refusal::Internal
    }

    /// Runs the stages, in order, up to the first stage that has to wait. A request that has to wait has taken no unit and no
    /// token.
    fn begin<'r>(
        &self,
        request: ReceivedRequest<'r>,
        trust: &ConnectionTrust,
        x: &mut Exchange<'_>,
    ) -> Result<RequestProgress<Box<Waiting<'r>>>, Refusal> {
        let parsed = parse(request)?;
        if let Some((subject, page)) = find_page(self, &parsed, x.started.wall) {
            x.subject = subject;
            let page = within_page_bytes(page, parsed.head, &self.guard, x.peer, x.started);
            return page.map(RequestProgress::Done);
        }
        // Checked before the key is looked up, because another gateway may have revoked the key.
        if !self.key_directory.freshness.is_current(x.started) {
            return Ok(Waiting::continues(parsed, WaitingFor::Keys));
        }
        match self.identify(&parsed, trust, x)? {
            Identification::Me(caller) if !caller.knows_windows() => {
                let subject = Identification::Me(caller);
                Ok(Waiting::continues(parsed, WaitingFor::Subject(subject)))
            }
            Identification::Me(caller) => {
                let caller = x.caller.insert(caller);
                let usage = me(self, parsed.credentials.prefix(), caller, x.started);
                usage.map(RequestProgress::Done)
            }
            Identification::Document(identified) => self.charge_ready(parsed, identified, trust, x),
        }
    }

    /// Runs the remaining stages, in order.
    async fn answer(
        &self,
        waiting: Waiting<'_>,
        trust: &ConnectionTrust,
        x: &mut Exchange<'_>,
    ) -> Result<Reply, Refusal> {
        let Waiting { parsed, found } = waiting;
        let identified = self.identify_later(found, &parsed, trust, x).await?;
        let identified = match identified {
            RequestProgress::Done(me) => return Ok(me),
            RequestProgress::Continues(identified) => identified,
        };
        let is_servable = identified.is_servable();
        let caller = x.caller.insert(identified.caller);
        let target = x.target.insert(identified.target);
        // The slot is taken before the budget is charged, so a request that gets no slot costs nothing.
        let mut slot = self.capacity.enter(is_servable, &self.clock).await?;
        let mut wait = None;
        let admitted = admit(&self.leases, caller, target.conditional, x.started, || {
            self.capacity.move_to_waiting(&mut slot);
            wait = wait.take().or_else(|| self.lease_wait(x.span.as_deref()));
        })
        .await;
        drop(wait);
        let admitted = admitted?;
        trust.admitted(caller);
        self.check_key_again(&parsed, x.started).await?;
        let found = identified.found;
        let served = match &admitted {
            Admission::ToFetch(_) => {
                let priority = caller.fetch_priority(x.trace.as_ref(), x.span.as_ref());
                fetch(&self.engine, target, found, priority, x.started).await
            }
            Admission::ToRevalidate(_) => revalidate(found),
        };
        let delivery =
            served.and_then(|served| self.deliver(&parsed, caller, target, served, x.started));
        self.settle(admitted, delivery)
    }
}
