//! Stage 6: charges the request: a unit of the day for a delivered document, nothing for a 304, a minute token for
//! most refusals.
//!
//! Does not take units or tokens; see `admit`.

use crate::gateway::Refusal;
use scoregate_base::clock::Day;

use super::admit::Admission;

/// Charges or returns the admitted unit and token, and returns the charged day, if any. Without a unit of the day only
/// a 304 is delivered.
pub(crate) fn settle<D>(
    admitted: Admission<'_>,
    delivery: Result<D, Refusal>,
    is_unchanged: impl Fn(&D) -> bool,
) -> Result<(D, Option<Day>), Refusal> {
    match (admitted, delivery) {
        (Admission::ToFetch(hold), Ok(delivery)) => {
            let charged = hold.deliver(is_unchanged(&delivery));
            Ok((delivery, charged))
        }
        (Admission::ToFetch(hold), Err(refusal)) => {
            if refusal.returns_the_token() {
                hold.give_token_back();
            }
            Err(refusal)
        }
        (Admission::ToRevalidate(_), Ok(delivery)) if is_unchanged(&delivery) => {
            Ok((delivery, None))
        }
        (Admission::ToRevalidate(token), _) => Err(token.give_back()),
    }
}
