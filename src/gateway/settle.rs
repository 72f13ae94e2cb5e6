//! Stage 6: what a request is charged: a unit of the day for a delivered document, nothing for a 304, and the minute's token for
//! most refusals.
//!
//! Not for: what is taken before the document is there (`admit`).

use crate::limits::Rule;

use super::admit::Admitted;
use super::refusal::Refusal;
use super::respond::Delivery;

/// Settles what was admitted by what is delivered. Without a unit of the day only a 304 is delivered.
pub(super) fn settle(
    admitted: Admitted<'_>,
    delivery: Result<Delivery, Refusal>,
) -> Result<Delivery, Refusal> {
    match (admitted, delivery) {
        (Admitted::ToFetch(hold), Ok(delivery)) => {
            if !delivery.not_modified {
                hold.keep();
            }
            Ok(delivery)
        }
        (Admitted::ToFetch(hold), Err(refusal)) => {
            if refusal.returns_the_token() {
                hold.give_token_back();
            }
            Err(refusal)
        }
        (Admitted::ToLook(_), Ok(delivery)) if delivery.not_modified => Ok(delivery),
        (Admitted::ToLook(token), _) => {
            token.give_back();
            Err(Refusal::Limited(Rule::Day))
        }
    }
}
