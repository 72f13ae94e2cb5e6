//! Health checks that gateways share: one gateway checks an address, and the others record its result.
//!
//! A result is published like a document without content, with the reason of a failure as its label. While the store
//! cannot be reached, every gateway checks for itself.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use scoregate_base::clock::{Clock, Wall};
use scoregate_store::{
    ClaimState, EngineClock, Publication, SharedDocumentState, SharedDocuments, StoreError,
};

/// The longest wait between two looks at a check that another gateway makes, if no notification arrives.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Time to publish a result that arrives in the last moment.
const CLAIM_MARGIN: Duration = Duration::from_secs(2);
/// Maximum length of a published reason.
const MAX_REASON_CHARACTERS: usize = 300;

/// The result of a health check.
pub(super) type CheckResult = Result<(), String>;

/// Health checks shared with other gateways.
pub(super) struct SharedChecks {
    shared: Arc<dyn SharedDocuments>,
    /// A result counts for this part of the interval, so that every gateway records each result once.
    valid_for: Duration,
    claim_duration: Duration,
    clock: Clock,
}

/// The next step.
#[derive(Debug, PartialEq, Eq)]
enum CheckStep {
    /// Another gateway has checked the address.
    Known(CheckResult),
    /// Claim the check.
    Claim,
    /// Another gateway checks it, for at most this time.
    Wait(Duration),
}

impl SharedChecks {
    /// Checks every `interval` that take at most `timeout`.
    pub(super) fn new(
        shared: Arc<dyn SharedDocuments>,
        interval: Duration,
        timeout: Duration,
        clock: Clock,
    ) -> Self {
        Self {
            shared,
            valid_for: interval * 3 / 4,
            claim_duration: timeout + CLAIM_MARGIN,
            clock,
        }
    }

    /// The result of a check of this address, made by another gateway or by `check`.
    pub(super) async fn result(
        &self,
        address: &str,
        check: impl Future<Output = CheckResult>,
    ) -> CheckResult {
        let name = format!("check {address}");
        let (number, claimed_at) = match self.claim(&name).await {
            Ok(Ok(known)) => return known,
            Ok(Err((number, clock))) => (number, clock.at),
            Err(error) => {
                tracing::debug!(%error, "health checks are not shared");
                return check.await;
            }
        };
        let result = check.await;
        if let Err(error) = self.publish(&name, number, claimed_at, &result).await {
            tracing::debug!(%error, "a health check was not shared");
        }
        result
    }

    /// The result of another gateway, or the number of this gateway's claim.
    async fn claim(
        &self,
        name: &str,
    ) -> Result<Result<CheckResult, (u64, EngineClock)>, StoreError> {
        loop {
            let published = self.shared.published();
            let state = self.shared.state(name).await?;
            match step(&state, self.valid_for) {
                CheckStep::Known(result) => return Ok(Ok(result)),
                CheckStep::Claim => {
                    let claimed = self
                        .shared
                        .claim(name, state.number, self.claim_duration)
                        .await?;
                    if let Some(claimed) = claimed {
                        return Ok(Err(claimed));
                    }
                }
                CheckStep::Wait(left) => {
                    let left = left.clamp(Duration::from_millis(1), POLL_INTERVAL);
                    if let Ok(hint) = self.clock.within(left, published).await {
                        hint?;
                    }
                }
            }
        }
    }

    async fn publish(
        &self,
        name: &str,
        number: u64,
        confirmed: Wall,
        result: &CheckResult,
    ) -> Result<bool, StoreError> {
        let reason = result
            .as_ref()
            .err()
            .map(|reason| reason.chars().take(MAX_REASON_CHARACTERS).collect());
        let label = reason.unwrap_or_default();
        let content = Some(Bytes::new());
        self.shared
            .publish(
                name,
                Publication {
                    number,
                    content,
                    confirmed,
                    due: confirmed,
                    label,
                },
            )
            .await
    }
}

fn step(state: &SharedDocumentState, valid_for: Duration) -> CheckStep {
    let is_valid = |confirmed: Wall| confirmed.plus(valid_for) >= state.clock.at;
    match (
        state
            .published
            .as_ref()
            .filter(|check| is_valid(check.confirmed)),
        state.claim,
    ) {
        (Some(check), _) if check.label.is_empty() => CheckStep::Known(Ok(())),
        (Some(check), _) => CheckStep::Known(Err(check.label.clone())),
        (None, ClaimState::Held(left)) => CheckStep::Wait(left),
        (None, ClaimState::Free | ClaimState::Failed(_)) => CheckStep::Claim,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scoregate_base::clock::Mono;
    use scoregate_store::PublishedDocument;

    const MINUTE: Duration = Duration::from_mins(1);

    #[test]
    fn a_recent_result_is_used_and_an_old_one_leads_to_a_claim() {
        let now = Wall::from_seconds(1_000_000);
        let clock = EngineClock {
            at: now,
            sent: Mono::default(),
            received: Mono::default(),
        };
        let state = |age: u32, label: &str, claim| SharedDocumentState {
            number: 7,
            claim,
            published: Some(PublishedDocument {
                number: 7,
                confirmed: now.minus(MINUTE * age),
                due: now,
                label: label.into(),
            }),
            refresh: None,
            clock,
        };
        let step = |age, label: &str, claim| step(&state(age, label, claim), MINUTE);
        assert_eq!(
            step(1, "", ClaimState::Held(MINUTE)),
            CheckStep::Known(Ok(()))
        );
        assert_eq!(
            step(1, "status 500", ClaimState::Free),
            CheckStep::Known(Err("status 500".into()))
        );
        assert_eq!(step(2, "", ClaimState::Free), CheckStep::Claim);
        assert_eq!(
            step(2, "", ClaimState::Held(MINUTE)),
            CheckStep::Wait(MINUTE)
        );
    }
}
