//! Stage 6: charges the request. A delivered document costs a minute token and one unit of the daily quota. A 304 and most
//! refusals at this stage cost only the token.
//!
//! Units and tokens are taken by `admit`, not here.

use crate::gateway::Refusal;
use scoregate_base::clock::Day;

use super::admit::Admission;

/// Charges or returns the unit and the token, and returns the charged day, if any. If the request has no unit of the
/// day, only a 304 is delivered.
pub fn settle<D>(
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
