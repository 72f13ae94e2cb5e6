//! The costs of a request, by outcome. A request for data costs a minute token. Delivered data also costs a daily unit. A refused request costs a guard token instead. The arithmetic is in `limits`.

use super::codes::ErrorCode;

/// The possible outcomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PricedEnding {
    /// 200 with data from any source.
    Data,
    /// 304.
    NotModified,
    /// 200 of `/me`.
    Me,
    /// 204 in response to OPTIONS.
    Options,
    /// A page that needs no key.
    Page,
    /// A 404 `model_not_found` with `Retry-After`, because the model is in no list and could not be looked up yet.
    Unlisted,
    /// An error with this code.
    Error(ErrorCode),
}

/// The cost of some outcomes.
#[derive(Debug)]
pub struct Price {
    /// Description of the outcomes, for the documentation.
    pub outcome: &'static str,
    /// The outcomes.
    pub endings: &'static [PricedEnding],
    /// Tokens of the application's minute.
    pub minute: u8,
    /// Units of the application's day.
    pub day: u8,
    /// Tokens of the guard.
    pub guard: u8,
}

/// All prices. HEAD costs the same as GET.
#[rustfmt::skip]
pub static PRICES: [Price; 5] = [
    Price { outcome: "200 with data, cached or not", minute: 1, day: 1, guard: 0,
        endings: &[PricedEnding::Data] },
    Price { outcome: "304; 404 `model_not_found`; any 5xx other than `overloaded`", minute: 1, day: 0, guard: 0,
        endings: &[PricedEnding::NotModified, PricedEnding::Error(ErrorCode::ModelNotFound), PricedEnding::Error(ErrorCode::InternalError),
            PricedEnding::Error(ErrorCode::UpstreamInvalid), PricedEnding::Error(ErrorCode::UpstreamUnavailable), PricedEnding::Error(ErrorCode::UpstreamTimeout)] },
    Price { outcome: "A refused request: 400, 401, 403, 404 `not_found`, 405, 414, 431", minute: 0, day: 0, guard: 1,
        endings: &[PricedEnding::Error(ErrorCode::BadRequest), PricedEnding::Error(ErrorCode::InvalidModelId), PricedEnding::Error(ErrorCode::InvalidPeriod),
            PricedEnding::Error(ErrorCode::InvalidSortBy), PricedEnding::Error(ErrorCode::InvalidLimit), PricedEnding::Error(ErrorCode::InvalidParameter),
            PricedEnding::Error(ErrorCode::ApiKeyRequired),
            PricedEnding::Error(ErrorCode::InvalidApiKey), PricedEnding::Error(ErrorCode::LatestRequiresPlan), PricedEnding::Error(ErrorCode::PlanRequired), PricedEnding::Error(ErrorCode::NotFound),
            PricedEnding::Error(ErrorCode::MethodNotAllowed), PricedEnding::Error(ErrorCode::UriTooLong), PricedEnding::Error(ErrorCode::HeadersTooLarge)] },
    // On a 429 of the guard, the bucket is empty, so no token is left to take.
    Price { outcome: "429; 503 `overloaded`; 404 `model_not_found` with `Retry-After`; OPTIONS; the pages that need no key", minute: 0, day: 0, guard: 0,
        endings: &[PricedEnding::Error(ErrorCode::QuotaExceeded), PricedEnding::Error(ErrorCode::RateLimitExceeded), PricedEnding::Error(ErrorCode::TooManyRefusals),
            PricedEnding::Error(ErrorCode::Overloaded), PricedEnding::Unlisted, PricedEnding::Options, PricedEnding::Page] },
    Price { outcome: "`/me`", minute: 0, day: 0, guard: 1,
        endings: &[PricedEnding::Me] },
];

impl PricedEnding {
    /// The cost of an outcome.
    pub fn price(self) -> &'static Price {
        let row = PRICES.iter().find(|row| row.endings.contains(&self));
        row.expect("every outcome has a price: a test checks this")
    }
}

#[cfg(test)]
mod tests {
    use crate::routes::codes::CODES;

    use super::*;

    #[test]
    fn every_way_a_request_can_end_has_exactly_one_price() {
        let codes = CODES.iter().map(|row| PricedEnding::Error(row.code));
        let others = [
            PricedEnding::Data,
            PricedEnding::NotModified,
            PricedEnding::Me,
            PricedEnding::Options,
            PricedEnding::Page,
            PricedEnding::Unlisted,
        ];
        for ending in codes.chain(others) {
            assert_eq!(
                PRICES
                    .iter()
                    .filter(|row| row.endings.contains(&ending))
                    .count(),
                1,
                "{ending:?}"
            );
        }
    }

    #[test]
    fn only_delivered_data_costs_a_unit_of_the_day() {
        for row in &PRICES {
            assert_eq!(
                row.day == 1,
                row.endings == [PricedEnding::Data],
                "{}",
                row.outcome
            );
        }
        assert_eq!(PricedEnding::NotModified.price().minute, 1);
    }
}
