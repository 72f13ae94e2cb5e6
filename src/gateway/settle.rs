//! Stage 6: charges the request: a unit of the day for a delivered document, nothing for a 304, a minute token for
//! most refusals.
//!
//! Does not take units or tokens; see `admit`.

use scoregate_base::clock::Day;

use super::admit::Admission;
use super::refusal::Refusal;
use super::respond::DocumentReply;

/// Charges or returns what was admitted, and names the charged day, if any. Without a unit of the day only a 304 is
/// delivered.
pub(super) fn settle(
    admitted: Admission<'_>,
    delivery: Result<DocumentReply, Refusal>,
) -> Result<(DocumentReply, Option<Day>), Refusal> {
    match (admitted, delivery) {
        (Admission::ToFetch(hold), Ok(delivery)) => {
            let charged = (!delivery.not_modified).then_some(hold.day);
            if charged.is_some() {
                hold.keep();
            }
            Ok((delivery, charged))
        }
        (Admission::ToFetch(hold), Err(refusal)) => {
            if refusal.returns_the_token() {
                hold.give_token_back();
            }
            Err(refusal)
        }
        (Admission::ToRevalidate(_), Ok(delivery)) if delivery.not_modified => Ok((delivery, None)),
        (Admission::ToRevalidate(token), _) => Err(token.give_back()),
    }
}
