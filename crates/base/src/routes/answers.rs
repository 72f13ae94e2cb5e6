//! The codes that an endpoint can return, derived from its row.
//!
//! The API description lists a response for each code, and the docs page names the codes. Tests compare real responses
//! with this list.

use super::{
    codes::{CODES, CodeRow, ErrorCode},
    params::Param,
    table::Endpoint,
};

impl Endpoint {
    /// The codes that a GET or HEAD of this endpoint can return, by status.
    pub fn codes(&self) -> impl Iterator<Item = &'static CodeRow> + '_ {
        CODES.iter().filter(|row| self.can_answer(row.code))
    }

    /// Whether a GET or HEAD of this endpoint can return this code.
    pub fn can_answer(&self, code: ErrorCode) -> bool {
        match code {
            ErrorCode::BadRequest
            | ErrorCode::ApiKeyRequired
            | ErrorCode::InvalidApiKey
            | ErrorCode::UriTooLong
            | ErrorCode::TooManyRefusals
            | ErrorCode::HeadersTooLarge
            | ErrorCode::InternalError
            | ErrorCode::Overloaded => true,
            // An empty or dot segment instead of an id results in a different path, so the error is `not_found`.
            ErrorCode::InvalidModelId | ErrorCode::ModelNotFound | ErrorCode::NotFound => {
                self.route.names_a_model()
            }
            ErrorCode::InvalidPeriod => self.takes.contains(&Param::Period),
            ErrorCode::LatestRequiresPlan => {
                self.takes.contains(&Param::Period) && !self.route.is_configured()
            }
            ErrorCode::InvalidSortBy => self.takes.contains(&Param::SortBy),
            ErrorCode::InvalidLimit => self.takes.contains(&Param::Limit),
            ErrorCode::InvalidParameter => self.takes.iter().any(|param| param.own().is_some()),
            // Responses that are not stored need no backend, cost no quota and are the same for all tiers.
            ErrorCode::QuotaExceeded
            | ErrorCode::RateLimitExceeded
            | ErrorCode::UpstreamInvalid
            | ErrorCode::UpstreamUnavailable
            | ErrorCode::UpstreamTimeout
            | ErrorCode::PlanRequired => self.stored,
            // Every endpoint supports GET and HEAD.
            ErrorCode::MethodNotAllowed => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::routes::table::Route;

    fn words(route: Route) -> Vec<&'static str> {
        route.endpoint().codes().map(|row| row.word).collect()
    }

    #[test]
    fn me_has_only_request_key_and_guard_errors() {
        assert_eq!(
            words(Route::Me),
            [
                "bad_request",
                "api_key_required",
                "invalid_api_key",
                "uri_too_long",
                "too_many_refusals",
                "headers_too_large",
                "internal_error",
                "overloaded"
            ]
        );
    }

    #[test]
    fn only_endpoints_with_a_period_can_require_a_plan() {
        assert!(words(Route::History).contains(&"latest_requires_plan"));
        assert!(!words(Route::Model).contains(&"latest_requires_plan"));
        assert!(words(Route::Model).contains(&"model_not_found"));
        assert!(!words(Route::Models).contains(&"model_not_found"));
    }
}
