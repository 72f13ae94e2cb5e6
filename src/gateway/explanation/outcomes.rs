//! The possible outcomes of an explained request.

use http::{HeaderMap, StatusCode};

use crate::gateway::{
    Refusal,
    request::request_id::REQUEST_ID,
    response::{limit_headers::LimitHeaders, reply::Reply, response_context::ResponseContext},
    stages::{authenticate::Caller, guard::guarded, respond::respond},
};
use scoregate_base::{
    clock::Now,
    limits::{LimitRule, LimitStatus},
    routes::prices::PricedEnding,
};

use super::{
    dry_run::{Delivery, DryRun},
    explained::{PossibleOutcome, RuleAmounts},
};

impl DryRun<'_> {
    /// Adds a possible outcome, unless an equal outcome exists.
    pub(super) fn end(
        &mut self,
        conditions: [&str; 2],
        delivery: Result<Delivery, Refusal>,
        caller: Option<&Caller>,
    ) {
        let delivery =
            delivery.map_err(|refusal| guarded(refusal, &self.guard, caller, self.peer, self.now));
        let outcome = self.outcome(conditions, delivery, caller);
        let is_known = self.explanation.outcomes.iter().any(|known| {
            known.status == outcome.status
                && known.code == outcome.code
                && known.outcome == outcome.outcome
                && known.cost == outcome.cost
        });
        if !is_known {
            self.explanation.outcomes.push(outcome);
        }
    }

    fn outcome(
        &self,
        conditions: [&str; 2],
        delivery: Result<Delivery, Refusal>,
        caller: Option<&Caller>,
    ) -> PossibleOutcome {
        let mut outcome = PossibleOutcome {
            condition: joined(conditions),
            status: StatusCode::OK.as_u16(),
            code: None,
            message: None,
            outcome: source(&delivery),
            cost: cost(&delivery),
            left: caller.map(|caller| amounts(&statuses(caller, self.now))),
            headers: Vec::new(),
        };
        let answered = match delivery {
            Ok(Delivery::Fetched { is_unchanged, .. }) => {
                if is_unchanged {
                    outcome.status = StatusCode::NOT_MODIFIED.as_u16();
                }
                // Most headers are unknown because the document is not stored.
                return outcome;
            }
            Ok(Delivery::Reply(reply)) => Ok(reply),
            Err(refusal) => Err(refusal),
        };
        let at = ResponseContext {
            gateway: self.gateway,
            head: self.head,
            started: self.now,
            id: &self.id,
            peer: self.peer,
            caller,
            guard: &self.guard,
            now: self.now,
        };
        if let Err(refusal) = &answered {
            let limits = LimitHeaders::new(&at, answered.as_ref());
            outcome.code = Some(refusal.code().row().word.into());
            outcome.message = Some(refusal.message(&limits.reported, &self.gateway.notice.tiers));
        }
        let response = respond(answered.as_ref(), &at);
        outcome.status = response.status().as_u16();
        outcome.headers = headers(response.headers());
        outcome
    }
}

impl Delivery {
    pub(super) fn is_unchanged(&self) -> bool {
        match self {
            Self::Fetched { is_unchanged, .. } => *is_unchanged,
            Self::Reply(reply) => reply
                .document()
                .is_some_and(|reply| reply.document.is_unchanged),
        }
    }
}

fn joined(conditions: [&str; 2]) -> String {
    let present = conditions.into_iter().filter(|one| !one.is_empty());
    present.collect::<Vec<_>>().join("; ")
}

/// The source of the document.
fn source(delivery: &Result<Delivery, Refusal>) -> Option<String> {
    let source = match delivery.as_ref().ok()? {
        Delivery::Fetched { outcome, .. } => *outcome,
        Delivery::Reply(reply) => reply.document()?.outcome(),
    };
    Some(source.as_str().to_owned())
}

/// The price according to the price table.
fn cost(delivery: &Result<Delivery, Refusal>) -> RuleAmounts {
    let row = match delivery {
        Err(Refusal::ModelUnlisted { .. }) => PricedEnding::Unlisted,
        Err(refusal) => PricedEnding::Error(refusal.code()),
        Ok(delivery) if delivery.is_unchanged() => PricedEnding::NotModified,
        Ok(Delivery::Fetched { .. } | Delivery::Reply(Reply::Document(_))) => PricedEnding::Data,
        Ok(Delivery::Reply(Reply::Me(_))) => PricedEnding::Me,
        Ok(Delivery::Reply(Reply::Options)) => PricedEnding::Options,
        Ok(Delivery::Reply(Reply::Page(_) | Reply::Moved(_) | Reply::Health)) => PricedEnding::Page,
    };
    let price = row.price();
    RuleAmounts {
        minute: price.minute.into(),
        day: price.day.into(),
        guard: price.guard.into(),
    }
}

/// The status of the minute, day and guard limits.
pub fn statuses(caller: &Caller, now: Now) -> [LimitStatus; 3] {
    caller
        .account
        .limit_statuses(LimitRule::Guard, &caller.limits, now)
}

fn amounts(statuses: &[LimitStatus; 3]) -> RuleAmounts {
    let [minute, day, guard] = statuses.map(|status| status.remaining);
    RuleAmounts { minute, day, guard }
}

/// The headers without the request id, which is new for each request.
fn headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let mut shown = Vec::new();
    for (name, value) in headers {
        if *name != REQUEST_ID {
            let value = value.to_str().unwrap_or_default();
            shown.push((name.to_string(), value.to_owned()));
        }
    }
    shown
}
