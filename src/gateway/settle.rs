//! Stage 6: what a request is charged: a unit of the day for a delivered document, nothing for a 304, and the minute's token for
//! most refusals.
//!
//! Not for: what is taken before the document is there (`admit`).

use crate::limits::LimitRule;

use super::admit::Admission;
use super::refusal::Refusal;
use super::respond::DocumentReply;

/// Settles what was admitted by what is delivered. Without a unit of the day only a 304 is delivered.
pub(super) fn settle(
    admitted: Admission<'_>,
    delivery: Result<DocumentReply, Refusal>,
) -> Result<DocumentReply, Refusal> {
    match (admitted, delivery) {
        (Admission::ToFetch(hold), Ok(delivery)) => {
            if !delivery.not_modified {
                hold.keep();
            }
            Ok(delivery)
        }
        (Admission::ToFetch(hold), Err(refusal)) => {
            if refusal.returns_the_token() {
                hold.give_token_back();
            }
            Err(refusal)
        }
        (Admission::ToLook(_), Ok(delivery)) if delivery.not_modified => Ok(delivery),
        (Admission::ToLook(token), _) => {
            token.give_back();
            Err(Refusal::Limited(LimitRule::Day))
        }
    }
}
