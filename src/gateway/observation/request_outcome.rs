//! How a request ended, as it is counted for the developer of its application. Refusals without a key are in `usage`.

use http::StatusCode;

use crate::gateway::refusal::{Refusal, Responsibility};
use scoregate_store::RequestOutcome;

/// The outcome of a request. It has no status if its client disconnected before the response.
pub(crate) fn outcome(refusal: Option<&Refusal>, status: Option<StatusCode>) -> RequestOutcome {
    let Some(status) = status else {
        return RequestOutcome::Disconnected;
    };
    let Some(refusal) = refusal else {
        let is_unchanged = status == StatusCode::NOT_MODIFIED;
        return if is_unchanged {
            RequestOutcome::NotModified
        } else {
            RequestOutcome::Ok
        };
    };
    match (refusal.rule(), refusal.responsibility()) {
        (Some(rule), _) => RequestOutcome::of_limit(rule),
        (None, Responsibility::Caller) => RequestOutcome::ClientError,
        (None, Responsibility::Upstream | Responsibility::Us) => RequestOutcome::ServerError,
    }
}
