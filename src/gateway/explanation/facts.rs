//! The decisions of the stages, as stated in an explanation.

use crate::{
    accounts::KeyFault,
    cache::freshness::ttl,
    documents::{FetchError, FetchForesight, FoundDocument},
    gateway::stages::{authenticate::Caller, resolve::ResolvedTarget},
};
use scoregate_base::{
    clock::Wall,
    limits::{LimitStatus, WindowUnits},
    routes::DocumentKey,
};

use super::{dry_run::DryRun, explained::ExplainedKey, outcomes::statuses};

impl DryRun<'_> {
    pub(super) fn explain_key(&mut self, key: &ExplainedKey, fault: Option<KeyFault>) {
        let state = fault.map_or("valid", KeyFault::word);
        let facts = [("prefix", key.prefix.clone()), ("state", state.into())];
        self.explanation.add("key", facts);
    }

    pub(super) fn explain_caller(&mut self, caller: &Caller) {
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
        let mut limits = statuses(caller, self.now).to_vec();
        limits.extend(caller.account.window_statuses(&caller.limits, self.now));
        let granted = caller.account.granted(&caller.limits, self.now);
        let unspent = caller.account.state().day().unspent();
        let ledger = if leases.is_unreachable() {
            "does not answer"
        } else {
            "reachable"
        };
        let supply = [
            ("units leased", unspent.to_string()),
            ("ledger", ledger.into()),
        ];
        let limits = limits.iter().map(|status| limit(status, &granted));
        self.explanation.add("limits before", limits.chain(supply));
    }

    pub(super) fn explain_document(
        &mut self,
        target: &ResolvedTarget,
        found: Option<&FoundDocument>,
    ) {
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

    /// The request that the backend would get, and the expected answer, if known.
    pub(super) fn explain_fetch(&mut self, target: &ResolvedTarget, found: Option<&FoundDocument>) {
        if target.names_a_key || found.is_some_and(FoundDocument::is_fresh) {
            return;
        }
        let fetcher = &self.gateway.engine.fetcher;
        let stored = found.map(|found| &*found.stored);
        let foreseen = match self.foresight(target, found) {
            FetchForesight::Known(Ok(_)) => {
                "not queried: a document was stored a moment ago".into()
            }
            FetchForesight::Known(Err(FetchError::Backend(failure))) => {
                format!("not queried: {failure}")
            }
            FetchForesight::Known(Err(_)) => "not queried: it does not have the model".into(),
            FetchForesight::Joined => "already being queried".into(),
            FetchForesight::OneByOne => {
                "queried for one model at a time: the model is not listed".into()
            }
            FetchForesight::Open => "queried".into(),
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

/// The status of a limit, with the units granted to all gateways if it is a calendar limit.
fn limit(status: &LimitStatus, granted: &[WindowUnits]) -> (&'static str, String) {
    let units = granted
        .iter()
        .find(|units| units.window.rule == status.rule);
    let granted = units.map_or_else(String::new, |units| format!(", {} granted", units.granted));
    let left = format!("{} of {} left{granted}", status.remaining, status.limit);
    (
        status.rule.name(),
        format!("{left}, all at {}", status.reset.rfc3339()),
    )
}
