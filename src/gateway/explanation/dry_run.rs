//! Runs a request through the same stages as `request_path`, with copies of the state.

use http::request::Parts;

use crate::{
    accounts::{AdmissionEnd, Charge},
    documents::{FetchError, FetchForesight, FoundDocument, WaitError},
    gateway::{
        AddressGuard, Gateway, Peer, Refusal,
        request::{
            progress::{Identified, RequestProgress},
            request_headers::RequestHeaders,
            request_id::RequestId,
        },
        response::reply::{DocumentReply, Reply, document_use},
        stages::{
            admit::Admission,
            authenticate::Caller,
            charge::charge,
            fetch::{DocumentSource, Served, fetched, fetched_outcome, source, stored_only},
            find_page::{find_page, within_page_bytes},
            me::me,
            parse::{ReceivedRequest, parse},
            resolve::{Lookup, ResolvedTarget, Wanted, resolve},
            settle::settle,
        },
    },
    instruments::CacheOutcome,
    upstream::UpstreamFailure,
};
use scoregate_base::clock::Now;

use super::{
    explained::{ExplainedKey, Explanation},
    possible_admission::PossibleAdmission,
};

/// A request, the copies of the state, and the explanation so far.
pub struct DryRun<'r> {
    pub gateway: &'r Gateway,
    pub head: &'r Parts,
    pub headers: RequestHeaders<'r>,
    pub id: RequestId,
    pub peer: Peer,
    pub now: Now,
    pub guard: AddressGuard,
    /// The caller, with a copy of its account. Set when the key has been found.
    known: Option<Caller>,
    pub explanation: Explanation,
}

/// The content of an answer.
pub enum Delivery {
    Reply(Reply),
    /// A document that is not stored, or a 304 for it.
    Fetched {
        outcome: CacheOutcome,
        is_unchanged: bool,
    },
}

/// The fetch failures that lead to different answers, and whether each is possible only for a document of a model.
const FAILURES: [(&str, WaitError, bool); 5] = [
    (
        "the backend does not have the model",
        WaitError::Fetch(FetchError::NoSuchModel),
        true,
    ),
    (
        "the model is not listed, and it is another caller's turn",
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
    /// Explains how a request with this key would be answered now. The head must not contain the key.
    pub fn explain(&self, head: &Parts, key: &ExplainedKey, mut peer: Peer) -> Explanation {
        let now = self.clock.now();
        let request = ReceivedRequest::new(head, false);
        peer.address = self.proxies.client(peer.address, &head.headers);
        let mut run = DryRun {
            gateway: self,
            head,
            headers: request.headers,
            id: RequestId::new(request.headers, &request.credentials, &self.form, now),
            peer,
            now,
            // The guard is copied, so that the explanation takes no token.
            guard: (*self.guard).clone(),
            known: None,
            explanation: Explanation {
                request: format!("{} {}", head.method, head.uri),
                at: now.wall.rfc3339(),
                ..Explanation::default()
            },
        };
        let decided = run.decide(request, key);
        let caller = run.known.clone();
        match decided {
            Ok(RequestProgress::Continues(())) => {}
            Ok(RequestProgress::Done(reply)) => {
                run.end([""; 2], Ok(Delivery::Reply(reply)), caller.as_ref());
            }
            Err(refusal) => run.end([""; 2], Err(refusal), caller.as_ref()),
        }
        run.explanation
    }
}

impl DryRun<'_> {
    /// Runs the stages up to the document. If the result is `Continues`, the possible outcomes have already been added.
    fn decide(
        &mut self,
        request: ReceivedRequest<'_>,
        key: &ExplainedKey,
    ) -> Result<RequestProgress<()>, Refusal> {
        let now = self.now;
        let gateway = self.gateway;
        let parsed = parse(request)?;
        if let Some((_, page)) = find_page(gateway, &parsed, now.wall) {
            let page_of = format!("{}, needs no key", parsed.path);
            self.explanation.add("parse", [("page", page_of)]);
            let page = within_page_bytes(page, self.head, &self.guard, self.peer, now);
            return page.map(RequestProgress::Done);
        }
        let is_current = gateway.key_directory.freshness.is_current(now);
        if !is_current {
            let condition = ["the store does not answer", ""];
            self.end(condition, Err(Refusal::KeysOutdated), None);
        }
        let caller = self.caller(key)?;
        if let Some(route) = gateway.endpoints.find(parsed.path) {
            let name = route.endpoint.route.name().to_owned();
            self.explanation.add("endpoint", [("name", name)]);
        }
        match resolve(gateway, &parsed, caller.rights, now.mono, Lookup::Peek)? {
            Wanted::Me => me(gateway, &key.prefix, &caller, now).map(RequestProgress::Done),
            Wanted::Document(target, found) => {
                let identified = Identified {
                    caller,
                    target,
                    found,
                };
                self.answer(&identified, is_current);
                Ok(RequestProgress::Continues(()))
            }
        }
    }

    /// The caller, with a copy of its account.
    fn caller(&mut self, key: &ExplainedKey) -> Result<Caller, Refusal> {
        let directory = &self.gateway.key_directory;
        let found = directory.find_valid(&key.digest, self.now.wall);
        self.explain_key(key, found.as_ref().err().copied());
        let found = found.map_err(Refusal::KeyInvalid)?;
        let caller = Caller::new(found, &key.digest).on_a_copy();
        self.explain_caller(&caller);
        self.known = Some(caller.clone());
        Ok(caller)
    }

    /// Runs the stages that follow the document lookup.
    fn answer(&mut self, identified: &Identified, is_current: bool) {
        self.explain_document(&identified.target, identified.found.as_ref());
        if !is_current || !self.charge_ready(identified) {
            self.wait(identified);
        }
    }

    /// Answers with a fresh document. Returns `false` if the request has to wait.
    fn charge_ready(&mut self, identified: &Identified) -> bool {
        let Some(found) = identified.ready() else {
            return false;
        };
        let target = &identified.target;
        // Another copy is needed: the charge changes the account, and other outcomes are tried afterwards.
        let caller = identified.caller.on_a_copy();
        let headers = self.headers.map();
        let document = document_use(&found.stored, target, caller.rights, headers);
        let leases = &self.gateway.leases;
        let delivery = match charge(leases, &caller, document.is_unchanged, self.now) {
            Charge::Waits => return false,
            Charge::Refused(rule) => Err(Refusal::Limited(rule)),
            Charge::Paid { .. } => Ok(self.reply(Served::hit(found), target, &caller)),
        };
        self.end([""; 2], delivery, Some(&caller));
        true
    }

    /// Explains a request that may have to wait for a slot, the ledger or the backend.
    fn wait(&mut self, identified: &Identified) {
        let gateway = self.gateway;
        let Identified { caller, target, .. } = identified;
        if !gateway.capacity.has_free(identified.is_servable()) {
            let condition = ["no slot becomes free in time", ""];
            self.end(condition, Err(Refusal::Overloaded), Some(caller));
        }
        self.explain_fetch(target, identified.found.as_ref());
        let leases = &gateway.leases;
        for admission in PossibleAdmission::all(leases, caller, target.conditional, self.now) {
            for (delivered, delivery) in self.deliveries(&admission, identified) {
                let caller = admission.caller.on_a_copy();
                let admitted = Admission::new(admission.end, &caller.account);
                let settled = admitted
                    .and_then(|admitted| settle(admitted, delivery, Delivery::is_unchanged));
                let settled = settled.map(|(delivery, _)| delivery);
                self.end([admission.condition, delivered], settled, Some(&caller));
            }
        }
    }

    /// The possible answers after admission, each with its condition.
    fn deliveries(
        &self,
        admission: &PossibleAdmission,
        identified: &Identified,
    ) -> Vec<(&'static str, Result<Delivery, Refusal>)> {
        let caller = &admission.caller;
        let target = &identified.target;
        let found = identified.found.clone();
        let served = match &admission.end {
            AdmissionEnd::Refuse(shortage) => Err((*shortage).into()),
            AdmissionEnd::Revalidate(_) => stored_only(found),
            AdmissionEnd::Hold { .. } => match source(target, found) {
                DocumentSource::Nowhere(refusal) => Err(refusal),
                DocumentSource::Store(served) => Ok(served),
                DocumentSource::Fetch(fallback) => {
                    let known = identified.found.as_ref();
                    // Only the state of the fetcher is read: an explanation must not cause a request to the backend.
                    match self.foresight(target, known) {
                        FetchForesight::Known(known) => fetched(
                            fallback,
                            known
                                .map(|stored| (stored, CacheOutcome::Shared))
                                .map_err(WaitError::Fetch),
                        ),
                        FetchForesight::Joined => {
                            return self.fetches(
                                CacheOutcome::Shared,
                                fallback.as_ref(),
                                target,
                                caller,
                            );
                        }
                        FetchForesight::OneByOne | FetchForesight::Open => {
                            return self.fetches(
                                CacheOutcome::Miss,
                                fallback.as_ref(),
                                target,
                                caller,
                            );
                        }
                    }
                }
            },
        };
        vec![("", served.map(|served| self.reply(served, target, caller)))]
    }

    /// The possible answers after a fetch.
    fn fetches(
        &self,
        outcome: CacheOutcome,
        fallback: Option<&FoundDocument>,
        target: &ResolvedTarget,
        caller: &Caller,
    ) -> Vec<(&'static str, Result<Delivery, Refusal>)> {
        let outcome = fetched_outcome(outcome, fallback.is_some());
        let mut deliveries = vec![(
            "the backend answers",
            Ok(Delivery::Fetched {
                outcome,
                is_unchanged: false,
            }),
        )];
        if target.conditional {
            let unchanged = Delivery::Fetched {
                outcome,
                is_unchanged: true,
            };
            deliveries.push(("the client has the same document", Ok(unchanged)));
        }
        for (when, why, is_of_a_model) in FAILURES {
            if target.key.id.is_some() || !is_of_a_model {
                let served = fetched(fallback.cloned(), Err(why));
                let delivery = served.map(|served| self.reply(served, target, caller));
                deliveries.push((when, delivery));
            }
        }
        deliveries
    }

    fn reply(&self, served: Served, target: &ResolvedTarget, caller: &Caller) -> Delivery {
        let headers = self.headers.map();
        let document = document_use(&served.stored, target, caller.rights, headers);
        let reply = DocumentReply::new(served, target, caller, document, self.now);
        Delivery::Reply(Reply::Document(reply))
    }

    pub fn foresight(
        &self,
        target: &ResolvedTarget,
        found: Option<&FoundDocument>,
    ) -> FetchForesight {
        self.gateway
            .engine
            .fetcher
            .foresee(&target.key, found.map(|found| &*found.stored))
    }
}
