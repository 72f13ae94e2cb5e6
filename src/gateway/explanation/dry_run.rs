//! Decides a request on copies of the state, and explains each decision.

use http::request::Parts;
use http::{HeaderMap, Response, StatusCode};

use crate::cache::freshness::ttl;
use crate::documents::{FetchError, FetchForesight, FoundDocument, WaitError};
use crate::gateway::guard::AddressGuard;
use crate::gateway::refusal::Refusal;
use crate::gateway::request::credentials::Credentials;
use crate::gateway::request::exchange::Peer;
use crate::gateway::request::request_headers::RequestHeaders;
use crate::gateway::request::request_id::{REQUEST_ID, RequestId};
use crate::gateway::request_path::within_page_bytes;
use crate::gateway::request_services::Gateway;
use crate::gateway::response::limit_headers::LimitHeaders;
use crate::gateway::response::response_context::ResponseContext;
use crate::gateway::stages::admit::{AdmissionEnd, guarded};
use crate::gateway::stages::authenticate::{self, Caller};
use crate::gateway::stages::charge::{self, ChargedRequest};
use crate::gateway::stages::fetch::{
    DocumentSource, Served, fetched, fetched_outcome, source, stored_only,
};
use crate::gateway::stages::parse::{ReceivedRequest, parse};
use crate::gateway::stages::resolve::{self, ResolvedTarget, resolve};
use crate::gateway::stages::respond::{DocumentReply, Reply, respond};
use crate::gateway::stages::settle::settle;
use crate::instruments::CacheOutcome;
use crate::upstream::UpstreamFailure;
use scoregate_base::clock::{Now, Wall};
use scoregate_base::limits::{LimitRule, LimitStatus};
use scoregate_base::routes::prices::PricedEnding;
use scoregate_base::routes::{DocumentKey, Route};

use super::explained::{ExplainedKey, Explanation, PossibleOutcome, RuleAmounts};
use super::possible_admission::PossibleAdmission;

/// A request, the copies on which it is decided, and the explanation so far.
struct DryRun<'r> {
    gateway: &'r Gateway,
    head: &'r Parts,
    headers: RequestHeaders<'r>,
    id: RequestId,
    peer: Peer,
    now: Now,
    guard: AddressGuard,
    explanation: Explanation,
}

/// The content of an answer.
enum Delivery {
    Reply(Reply),
    /// A document that is not stored, or a 304 for it.
    Fetched {
        outcome: CacheOutcome,
        is_unchanged: bool,
    },
}

/// Each way in which a fetch fails, as far as it matters to requests, and whether only fetches for a model do.
const FAILURES: [(&str, WaitError, bool); 5] = [
    (
        "the backend does not have the model",
        WaitError::Fetch(FetchError::NoSuchModel),
        true,
    ),
    (
        "the model is not listed, and another caller is next",
        WaitError::Fetch(FetchError::Unlisted),
        true,
    ),
    (
        "the backend does not answer in time",
        WaitError::TimedOut,
        false,
    ),
    (
        "the answer of the backend is invalid",
        WaitError::Aborted,
        false,
    ),
    (
        "the backend fails",
        WaitError::Fetch(FetchError::Backend(UpstreamFailure::QueueFull)),
        false,
    ),
];

impl Gateway {
    /// Explains how a request with this key would be answered now. It must not contain the key.
    pub fn explain(&self, head: &Parts, key: &ExplainedKey, peer: Peer) -> Explanation {
        let now = self.clock.now();
        let headers = RequestHeaders::of(&head.headers);
        let mut run = DryRun {
            gateway: self,
            head,
            headers,
            id: RequestId::of(headers, &Credentials::of(headers), &self.form, now),
            peer: Peer {
                address: self.proxies.client(peer.address, &head.headers),
                ..peer
            },
            now,
            guard: (*self.guard).clone(),
            explanation: Explanation {
                request: format!("{} {}", head.method, head.uri),
                at: now.wall.rfc3339(),
                ..Explanation::default()
            },
        };
        let mut caller = None;
        match run.decide(key, &mut caller) {
            Ok(None) => {}
            Ok(Some(reply)) => run.end([""; 2], Ok(Delivery::Reply(reply)), caller.as_ref(), None),
            Err(refusal) => run.end([""; 2], Err(refusal), caller.as_ref(), None),
        }
        run.explanation
    }
}

impl DryRun<'_> {
    /// The stages up to the document. `None` if the outcomes are added already.
    fn decide(
        &mut self,
        key: &ExplainedKey,
        known: &mut Option<Caller>,
    ) -> Result<Option<Reply>, Refusal> {
        let gateway = self.gateway;
        let head = self.head;
        let headers = self.headers;
        let now = self.now;
        let credentials = Credentials::of(headers);
        let parsed = parse(ReceivedRequest {
            head,
            headers,
            has_body: false,
            credentials,
            called: None,
        })?;
        if let Some((_, reply)) = gateway.unauthenticated_reply(&parsed, now.wall) {
            self.explanation.add(
                "parse",
                [("page", format!("{}, needs no key", parsed.path))],
            );
            return within_page_bytes(reply, head, &self.guard, self.peer, now).map(Some);
        }
        let is_current = gateway.key_directory.freshness.is_current(now);
        if !is_current {
            self.end(
                ["the store does not answer", ""],
                Err(Refusal::KeysOutdated),
                None,
                None,
            );
        }
        let found = authenticate::find(&key.digest, &gateway.key_directory, now);
        let validity = if found.is_ok() {
            "valid"
        } else {
            "unknown, expired or revoked"
        };
        self.explanation.add(
            "key",
            [("prefix", key.prefix.clone()), ("state", validity.into())],
        );
        let caller = &*known.insert(Caller::of(found?, &key.digest).on_a_copy());
        self.explain_caller(caller);
        let (endpoint, raw_id) = resolve::endpoint(&parsed, &gateway.endpoints)?;
        self.explanation
            .add("endpoint", [("name", endpoint.route.name().into())]);
        if endpoint.route == Route::Me {
            return gateway.me(&key.prefix, caller, self.peer, now).map(Some);
        }
        let rights = (caller.rights, &*gateway.notice.tiers);
        let target = resolve(&parsed, endpoint, raw_id, rights, &gateway.form)?;
        let found = gateway.engine.documents.peek(&target.key, now.mono);
        self.explain_document(&target, found.as_ref());
        let ready = found
            .as_ref()
            .filter(|found| is_current && target.is_ready(found));
        if !ready.is_some_and(|found| self.hit(caller, &target, found)) {
            self.wait(caller, &target, found.as_ref());
        }
        Ok(None)
    }

    /// A fresh document. `false` if the request has to wait.
    fn hit(&mut self, caller: &Caller, target: &ResolvedTarget, found: &FoundDocument) -> bool {
        let served = Served::hit(found.clone());
        let caller = caller.on_a_copy();
        let reply = DocumentReply::of(served, target, &caller, self.headers.map(), self.now);
        let leases = &self.gateway.leases;
        let route = target.key.route;
        let settled = charge::decide(leases, &caller, route, reply.as_use(target), self.now);
        let Some(ChargedRequest { result, statuses }) = settled.as_ref().map(ChargedRequest::of)
        else {
            return false;
        };
        let delivery = result.map(|_| Delivery::Reply(Reply::Document(reply)));
        self.end([""; 2], delivery, Some(&caller), Some(&statuses));
        true
    }

    /// A request that may have to wait: for a slot, the ledger or the backend.
    fn wait(&mut self, caller: &Caller, target: &ResolvedTarget, found: Option<&FoundDocument>) {
        let gateway = self.gateway;
        if !gateway
            .capacity
            .has_free(found.is_some_and(FoundDocument::is_servable))
        {
            self.end(
                ["no slot is free in time", ""],
                Err(Refusal::Overloaded),
                Some(caller),
                None,
            );
        }
        self.explain_fetch(target, found);
        for admission in
            PossibleAdmission::all(&gateway.leases, caller, target.conditional, self.now)
        {
            let PossibleAdmission {
                condition,
                caller,
                end,
            } = admission;
            for (delivered, delivery) in self.deliveries(&caller, target, &end, found) {
                let caller = caller.on_a_copy();
                let admitted = end.clone().result(&caller.account);
                let settled = admitted
                    .and_then(|admitted| settle(admitted, delivery, Delivery::is_unchanged));
                let settled = settled.map(|(delivery, _)| delivery);
                self.end([condition, delivered], settled, Some(&caller), None);
            }
        }
    }

    /// The possible contents after admission, each with what the backend does.
    fn deliveries(
        &self,
        caller: &Caller,
        target: &ResolvedTarget,
        admission: &AdmissionEnd,
        found: Option<&FoundDocument>,
    ) -> Vec<(&'static str, Result<Delivery, Refusal>)> {
        let document = |served| {
            let reply = DocumentReply::of(served, target, caller, self.headers.map(), self.now);
            Delivery::Reply(Reply::Document(reply))
        };
        let fallback = match admission {
            AdmissionEnd::Refuse(refusal) => return vec![("", Err(refusal.clone()))],
            AdmissionEnd::Revalidate(_) => {
                return vec![("", stored_only(found.cloned()).map(document))];
            }
            AdmissionEnd::Hold(_) => match source(target, found.cloned()) {
                DocumentSource::Nowhere(refusal) => return vec![("", Err(refusal))],
                DocumentSource::Store(served) => return vec![("", Ok(document(served)))],
                DocumentSource::Fetch(fallback) => fallback,
            },
        };
        let outcome = match self.foresight(target, found) {
            FetchForesight::Known(known) => {
                let known = known
                    .map(|stored| (stored, CacheOutcome::Shared))
                    .map_err(WaitError::Fetch);
                return vec![("", fetched(fallback, known).map(document))];
            }
            FetchForesight::Joined => CacheOutcome::Shared,
            FetchForesight::OneByOne | FetchForesight::Open => CacheOutcome::Miss,
        };
        let outcome = fetched_outcome(outcome, fallback.is_some());
        let unchanged = target
            .conditional
            .then_some(("the client has the same document", true));
        let successes = [("the backend answers", false)]
            .into_iter()
            .chain(unchanged);
        let successes = successes.map(|(when, is_unchanged)| {
            (
                when,
                Ok(Delivery::Fetched {
                    outcome,
                    is_unchanged,
                }),
            )
        });
        let names_a_model = target.key.id.is_some();
        let failures = FAILURES
            .into_iter()
            .filter(|(_, _, of_models)| names_a_model || !of_models);
        let failures = failures
            .map(|(when, why, _)| (when, fetched(fallback.clone(), Err(why)).map(document)));
        successes.chain(failures).collect()
    }

    fn foresight(&self, target: &ResolvedTarget, found: Option<&FoundDocument>) -> FetchForesight {
        self.gateway
            .engine
            .fetcher
            .foresee(&target.key, found.map(|found| &*found.stored))
    }

    /// Adds a way in which the request can end, unless the same is there.
    fn end(
        &mut self,
        conditions: [&str; 2],
        delivery: Result<Delivery, Refusal>,
        caller: Option<&Caller>,
        limit_statuses: Option<&[LimitStatus; 2]>,
    ) {
        let delivery =
            delivery.map_err(|refusal| guarded(refusal, &self.guard, caller, self.peer, self.now));
        let at = ResponseContext {
            method: &self.head.method,
            headers: &self.head.headers,
            started: self.now,
            id: &self.id,
            peer: self.peer,
            caller,
            limit_statuses,
            guard: &self.guard,
            notice: &self.gateway.notice,
            cors: self.gateway.cors.as_ref(),
            deprecation: &self.gateway.deprecation,
            now: self.now,
        };
        let refusal = delivery.as_ref().err();
        let code = refusal.map(Refusal::code);
        let ending = Delivery::ending(&delivery);
        let message = refusal.map(|refusal| {
            refusal.message(
                &LimitHeaders::of(&at, Some(refusal)).reported,
                &at.notice.tiers,
            )
        });
        let outcome = delivery.as_ref().ok().and_then(Delivery::outcome);
        let mut response = Response::new(());
        match delivery {
            Ok(Delivery::Fetched {
                is_unchanged: true, ..
            }) => {
                *response.status_mut() = StatusCode::NOT_MODIFIED;
            }
            Ok(Delivery::Fetched { .. }) => {}
            Ok(Delivery::Reply(reply)) => response = respond(&Ok(reply), &at).map(drop),
            Err(refusal) => response = respond(&Err(refusal), &at).map(drop),
        }
        let price = ending.price();
        let outcome = PossibleOutcome {
            condition: conditions
                .into_iter()
                .filter(|one| !one.is_empty())
                .collect::<Vec<_>>()
                .join("; "),
            status: response.status().as_u16(),
            code: code.map(|code| code.row().word.into()),
            message,
            outcome: outcome.map(|outcome| outcome.as_str().into()),
            cost: RuleAmounts {
                minute: price.minute.into(),
                day: price.day.into(),
                guard: price.guard.into(),
            },
            left: caller.map(|caller| amounts(&statuses(caller, self.now))),
            headers: headers(response.headers()),
        };
        let is_known = |known: &PossibleOutcome| {
            (known.status, &known.code, &known.outcome)
                == (outcome.status, &outcome.code, &outcome.outcome)
                && known.cost == outcome.cost
        };
        if !self.explanation.outcomes.iter().any(is_known) {
            self.explanation.outcomes.push(outcome);
        }
    }

    fn explain_caller(&mut self, caller: &Caller) {
        let terms = caller.account.terms();
        let leases = &self.gateway.leases;
        let expires_at = caller.expires_at.map_or("never".into(), Wall::rfc3339);
        let application = [
            ("id", caller.account.id.to_string()),
            ("name", caller.account.name().into()),
            ("tier", terms.tier_name.to_string()),
            ("key expires", expires_at),
        ];
        self.explanation.add("application", application);
        let limit = |status: &LimitStatus| {
            let LimitStatus {
                rule,
                remaining,
                limit,
                reset,
                ..
            } = status;
            (
                rule.name(),
                format!("{remaining} of {limit} left, all at {}", reset.rfc3339()),
            )
        };
        let statuses = statuses(caller, self.now);
        let unspent = caller.account.state().day().unspent();
        let ledger = if leases.is_unreachable() {
            "does not answer"
        } else {
            "answers, as far as known"
        };
        let supply = [
            ("units leased", unspent.to_string()),
            ("ledger", ledger.into()),
        ];
        self.explanation
            .add("limits before", statuses.iter().map(limit).chain(supply));
    }

    fn explain_document(&mut self, target: &ResolvedTarget, found: Option<&FoundDocument>) {
        let shown = target
            .named()
            .map_or("not shown: it contains a key".into(), DocumentKey::address);
        let mut facts = vec![
            ("address", shown),
            ("conditional", target.conditional.to_string()),
        ];
        match found {
            None => facts.push(("cache", "not stored".into())),
            Some(FoundDocument {
                stored,
                due,
                verdict,
            }) => facts.extend([
                ("cache", verdict.as_str().into()),
                ("data of", stored.document.generated_at().rfc3339()),
                ("confirmed", self.now.wall_at(stored.confirmed).rfc3339()),
                (
                    "refresh due",
                    format!(
                        "{}, in {} s",
                        self.now.wall_at(*due).rfc3339(),
                        ttl(*due, self.now.mono)
                    ),
                ),
            ]),
        }
        self.explanation.add("document", facts);
    }

    /// The request that the backend would get, and the knowledge about its answer.
    fn explain_fetch(&mut self, target: &ResolvedTarget, found: Option<&FoundDocument>) {
        if target.names_a_key || found.is_some_and(FoundDocument::is_fresh) {
            return;
        }
        let fetcher = &self.gateway.engine.fetcher;
        let stored = found.map(|found| &*found.stored);
        let foreseen = match self.foresight(target, found) {
            FetchForesight::Known(Ok(_)) => "not asked: a document was stored a moment ago".into(),
            FetchForesight::Known(Err(FetchError::Backend(failure))) => {
                format!("not asked: {failure}")
            }
            FetchForesight::Known(Err(_)) => "not asked: it does not have the model".into(),
            FetchForesight::Joined => "asked already".into(),
            FetchForesight::OneByOne => "asked one at a time: the model is not listed".into(),
            FetchForesight::Open => "asked".into(),
        };
        let breaker = fetcher.status().condition.breaker.as_str().to_owned();
        let facts = [("state", foreseen), ("circuit breaker", breaker)];
        let question = fetcher
            .question(&target.key, stored)
            .into_iter()
            .map(|line| ("request", line));
        self.explanation
            .add("backend", facts.into_iter().chain(question));
    }
}

impl Delivery {
    fn is_unchanged(&self) -> bool {
        match self {
            Self::Fetched { is_unchanged, .. } => *is_unchanged,
            Self::Reply(Reply::Document(reply)) => reply.not_modified,
            Self::Reply(_) => false,
        }
    }

    fn outcome(&self) -> Option<CacheOutcome> {
        match self {
            Self::Fetched { outcome, .. } => Some(*outcome),
            Self::Reply(Reply::Document(reply)) => Some(reply.outcome),
            Self::Reply(_) => None,
        }
    }

    /// The row of the table of prices.
    fn ending(delivery: &Result<Self, Refusal>) -> PricedEnding {
        match delivery {
            Err(Refusal::ModelUnlisted { .. }) => PricedEnding::Unlisted,
            Err(refusal) => PricedEnding::Error(refusal.code()),
            Ok(delivery) if delivery.is_unchanged() => PricedEnding::NotModified,
            Ok(Self::Fetched { .. } | Self::Reply(Reply::Document(_))) => PricedEnding::Data,
            Ok(Self::Reply(Reply::Me(_))) => PricedEnding::Me,
            Ok(Self::Reply(Reply::Options)) => PricedEnding::Options,
            Ok(Self::Reply(Reply::Page(_) | Reply::Moved(_) | Reply::Health)) => PricedEnding::Page,
        }
    }
}

/// The status of the three rules.
fn statuses(caller: &Caller, now: Now) -> [LimitStatus; 3] {
    caller
        .account
        .limit_statuses(LimitRule::Guard, &caller.limits, now)
}

fn amounts(statuses: &[LimitStatus; 3]) -> RuleAmounts {
    let [minute, day, guard] = statuses.map(|status| status.remaining);
    RuleAmounts { minute, day, guard }
}

/// The headers, without the id, which is a new one for each request.
fn headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let shown = headers.iter().filter(|(name, _)| **name != REQUEST_ID);
    shown
        .map(|(name, value)| {
            (
                name.to_string(),
                value.to_str().unwrap_or_default().to_owned(),
            )
        })
        .collect()
}
