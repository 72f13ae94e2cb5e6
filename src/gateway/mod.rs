//! The life of a request: one function, top to bottom.
//!
//! [`Gateway::handle`] is the shell: it opens the exchange, has it answered, renders and records, whatever happens
//! inside. `answer` is the line: one call a stage, `?` on each. A file named by a verb is a stage; a file named by a
//! noun is a thing the line uses. A stage never calls another stage.

mod access_log;
mod admit;
mod authenticate;
mod concurrency_limit;
mod cors;
mod credentials;
mod deprecation;
mod error_body;
mod exchange;
mod fetch;
mod guard;
mod header_values;
#[doc(hidden)]
pub mod inspected;
mod me;
mod parse;
mod refusal;
mod request_headers;
mod request_id;
mod resolve;
mod respond;
mod response_head;
#[cfg(test)]
mod schedules;
mod settle;
mod usage;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::Response;
use http::request::Parts;
use http_body_util::Full;

use crate::accounts::{Leases, Roster};
use crate::address::Proxies;
use crate::clock::{Clock, Now};
use crate::documents::{DocumentEngine, FetchPriority, Found};
use crate::instruments::{Instruments, Outcome, Subject};
use crate::keys::KeyForm;
use crate::pages::Pages;
use crate::routes::Route;

use admit::{Admitted, admit};
use authenticate::{Caller, authenticate};
use credentials::Credentials;
use exchange::Exchange;
use fetch::{Served, fetch, look};
use parse::{Ask, Received, Wants, parse};
use request_headers::RequestHeaders;
use resolve::{Target, resolve};
use respond::{Answer, Circumstances, Delivery, respond};
use settle::settle;

pub use access_log::{RequestLog, Sampling};
pub use concurrency_limit::{Capacity, CapacityConfig};
pub use cors::Cors;
pub use deprecation::Retirement;
pub use exchange::{Authenticated, Peer};
pub use guard::{AddressGuard, network};
pub use refusal::{Doubt, Fault, Misplaced, Refusal};
pub use usage::{ApplicationUse, Counted, StrangerUse, Tally, Usage};

/// The page that says nothing but that the process is alive.
const HEALTH: &str = "/healthz";

/// Everything a request may need. Made once by `app`.
pub struct Gateway {
    /// The time.
    pub clock: Clock,
    /// How keys are written.
    pub form: KeyForm,
    /// Who may come in.
    pub roster: Arc<Roster>,
    /// The way to the ledger.
    pub leases: Arc<Leases>,
    /// The documents.
    pub engine: DocumentEngine,
    /// The pages that need no key.
    pub pages: Pages,
    /// Who is believed about his clients.
    pub proxies: Proxies,
    /// What strangers may have refused.
    pub guard: Arc<AddressGuard>,
    /// How much runs at once.
    pub capacity: Arc<Capacity>,
    /// What is counted.
    pub instruments: Arc<Instruments>,
    /// Where requests are told.
    pub request_log: Arc<RequestLog>,
    /// Who asks how much.
    pub usage: Arc<Usage>,
    /// Which pages of other sites may read answers, if any.
    pub cors: Option<Cors>,
    /// What is said of the API's own end.
    pub retirement: Retirement,
    /// The words and numbers that `/me` and the 401 need.
    pub notice: Notice,
}

/// What the gateway says about itself.
#[derive(Clone, Debug)]
pub struct Notice {
    /// The attribution notice.
    pub license: String,
    /// The realm of the keys.
    pub realm: String,
    /// How often the data refreshes.
    pub cadence_seconds: u64,
}

impl Gateway {
    /// Answers a request. Never fails, and never panics: that too is an answer. `authenticated` belongs to the connection.
    pub async fn handle(
        &self,
        head: &Parts,
        has_body: bool,
        peer: Peer,
        authenticated: &Authenticated,
    ) -> Response<Full<Bytes>> {
        let started = self.clock.now();
        let client = Peer { address: self.proxies.client(peer.address, &head.headers), ..peer };
        let headers = RequestHeaders::of(&head.headers);
        let credentials = Credentials::of(headers);
        let mut exchange = Exchange::open(self, started, client, headers, &credentials);
        let request = Received { head, headers, has_body, credentials };
        let answering = self.answer(request, authenticated, &mut exchange);
        let answered = AssertUnwindSafe(answering).catch_unwind().await;
        let answered = answered.unwrap_or_else(|_| {
            self.instruments.panicked();
            Err(Refusal::Internal)
        });
        let answered = answered.map_err(|refusal| self.guarded(refusal, &exchange));
        if let Err(refusal) = &answered {
            tell(refusal, &exchange);
            exchange.refusal = Some(refusal.clone());
        }
        let now = self.clock.later_than(started);
        let response = respond(answered, &exchange, &self.circumstances(head, now));
        exchange.close(response.status(), now);
        response
    }

    /// Drops what is over: documents that are gone, keys that have ended. Called every few seconds.
    pub fn sweep(&self) {
        self.engine.sweep();
        self.roster.sweep(self.clock.now());
        self.instruments.keys(self.roster.len());
        self.capacity.show();
    }

    /// The stages in order.
    async fn answer(
        &self,
        request: Received<'_>,
        authenticated: &Authenticated,
        x: &mut Exchange<'_>,
    ) -> Result<Answer<'_>, Refusal> {
        let ask = parse(request)?;
        if let Some((subject, answer)) = self.without_a_key(&ask) {
            x.subject = subject;
            return Ok(answer);
        }
        let caller = &*x.caller.insert(authenticate(&ask, &self.form, &self.roster, x.started)?);
        authenticated.set();
        let (endpoint, raw_id) = resolve::endpoint(&ask)?;
        x.subject = Subject::Endpoint(endpoint.route);
        if endpoint.route == Route::Me {
            return self.me(&ask, caller, x.peer, x.started);
        }
        let target = &*x.target.insert(resolve(&ask, endpoint, raw_id, caller.rights, &self.form)?);
        let found = self.engine.documents.find(&target.key, x.started.mono);
        let is_servable = found.as_ref().is_some_and(Found::is_servable);
        let _slot = self.capacity.enter(is_servable, &self.clock).await?;
        let admitted = admit(&self.leases, caller, target.conditional, x.started).await?;
        let served = match &admitted {
            Admitted::ToFetch(_) => {
                let priority = FetchPriority::caller(caller.account.id, caller.rights.is_paid(), x.trace);
                fetch(&self.engine, target, found, priority, x.started).await
            }
            Admitted::ToLook(_) => look(found),
        };
        let now = self.clock.later_than(x.started);
        let delivery = served.and_then(|served| {
            let delivery = self.deliver(&ask, caller, target, &served, now)?;
            (x.outcome, x.age) = (Some(served.outcome), Some(served.age(now)));
            Ok(delivery)
        });
        settle(admitted, delivery).map(Answer::Document)
    }

    /// The form of a document that the caller may have. Unless it is a cache hit, the caller is authenticated again: the key may
    /// have been revoked or moved to another tier meanwhile.
    fn deliver(
        &self,
        ask: &Ask<'_>,
        caller: &Caller,
        target: &Target,
        served: &Served,
        now: Now,
    ) -> Result<Delivery, Refusal> {
        if served.outcome == Outcome::Hit {
            return Ok(Delivery::of(served, target, caller, ask.headers.map(), now));
        }
        let caller = authenticate(ask, &self.form, &self.roster, now)?;
        resolve::entitle(&target.key, caller.rights)?;
        Ok(Delivery::of(served, target, &caller, ask.headers.map(), now))
    }

    /// What a response at `now` depends on besides its answer.
    fn circumstances<'r>(&'r self, head: &'r Parts, now: Now) -> Circumstances<'r> {
        Circumstances {
            method: &head.method,
            headers: &head.headers,
            guard: &self.guard,
            realm: &self.notice.realm,
            cors: self.cors.as_ref(),
            retirement: &self.retirement,
            now,
        }
    }

    /// What anybody may have.
    fn without_a_key(&self, ask: &Ask<'_>) -> Option<(Subject, Answer<'_>)> {
        match ask.wants {
            Wants::Options => Some((Subject::Options, Answer::Options)),
            Wants::Answer if ask.path == HEALTH => Some((Subject::Page, Answer::Health)),
            Wants::Answer => {
                let page = self.pages.find(ask.path).map(Answer::Page);
                let answer = page.or_else(|| Pages::moved(ask.path).map(Answer::Moved));
                answer.map(|answer| (Subject::Page, answer))
            }
        }
    }

    /// The one endpoint that the gateway answers itself. It costs a token of the guard.
    fn me(&self, ask: &Ask<'_>, caller: &Caller, peer: Peer, now: Now) -> Result<Answer<'_>, Refusal> {
        if !admit::ask_guard(&self.guard, Some(caller), peer, now) {
            return Err(Refusal::TooManyRefusals);
        }
        let known = me::Known {
            key_prefix: ask.credentials.prefix(),
            license: &self.notice.license,
            next_refresh: self.engine.documents.next_refresh(now.wall),
            cadence_seconds: self.notice.cadence_seconds,
        };
        Ok(Answer::Me(me::describe(caller, &known, now)))
    }

    /// A refusal, or the guard's, if the caller has had too many.
    fn guarded(&self, refusal: Refusal, exchange: &Exchange<'_>) -> Refusal {
        let Exchange { caller, peer, started, .. } = exchange;
        if refusal.asks_the_guard() && !admit::ask_guard(&self.guard, caller.as_ref(), *peer, *started) {
            return Refusal::TooManyRefusals;
        }
        refusal
    }
}

/// The log hears of what is not the caller's doing.
fn tell(refusal: &Refusal, exchange: &Exchange<'_>) {
    let (request, code) = (exchange.id.as_str(), refusal.code().row().word);
    match refusal.fault() {
        Fault::Caller => {}
        Fault::Upstream => tracing::debug!(request, code, "the backend left a request without an answer"),
        // So many of them that to write each down would be more work than it spares: the rooms tell, now and then.
        Fault::Us if *refusal == Refusal::Overloaded => {}
        Fault::Us => tracing::error!(request, code, "we left a request without an answer"),
    }
}
