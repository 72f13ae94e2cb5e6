//! The table of error codes: every value of the `code` field of an error and its meaning.
//!
//! For each code, the docs page has an anchor and the API description has a response. The reasons for refusals are in
//! `gateway::Refusal`, which maps each reason to a code.

use http::StatusCode;

/// An error code that clients may rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each has a row below that describes it")]
pub enum ErrorCode {
    BadRequest,
    InvalidModelId,
    InvalidPeriod,
    InvalidSortBy,
    InvalidLimit,
    InvalidParameter,
    ApiKeyRequired,
    InvalidApiKey,
    LatestRequiresPlan,
    PlanRequired,
    NotFound,
    ModelNotFound,
    MethodNotAllowed,
    UriTooLong,
    QuotaExceeded,
    RateLimitExceeded,
    TooManyRefusals,
    HeadersTooLarge,
    InternalError,
    UpstreamInvalid,
    UpstreamUnavailable,
    Overloaded,
    UpstreamTimeout,
}

/// The documentation of a code.
#[derive(Clone, Copy, Debug)]
pub struct CodeRow {
    /// The code.
    pub code: ErrorCode,
    /// The HTTP status.
    pub status: StatusCode,
    /// The value in the body.
    pub word: &'static str,
    /// A short title, the same for every occurrence (`title` of RFC 9457).
    pub title: &'static str,
    /// The condition under which the code is sent.
    pub condition: &'static str,
    /// The remedy for the client.
    pub remedy: &'static str,
}

/// All codes, by status.
#[rustfmt::skip]
pub static CODES: [CodeRow; 23] = [
    CodeRow { code: ErrorCode::BadRequest, status: StatusCode::BAD_REQUEST, word: "bad_request", title: "Malformed request",
        condition: "The request violates a rule of HTTP that this service enforces: one valid Host, an origin-form target, no body.",
        remedy: "Send a plain GET or HEAD without a body." },
    CodeRow { code: ErrorCode::InvalidModelId, status: StatusCode::BAD_REQUEST, word: "invalid_model_id", title: "Malformed model id",
        condition: "The model id in the path is malformed.",
        remedy: "Use an id from the models list: a letter or digit, then up to 127 letters, digits, dots, underscores, colons or hyphens." },
    CodeRow { code: ErrorCode::InvalidPeriod, status: StatusCode::BAD_REQUEST, word: "invalid_period", title: "Invalid period",
        condition: "The period is not one of the allowed values, or is given twice.",
        remedy: "Send the period once: latest, 24h, 7d or 1m." },
    CodeRow { code: ErrorCode::InvalidSortBy, status: StatusCode::BAD_REQUEST, word: "invalid_sort_by", title: "Invalid sort key",
        condition: "The sort key is not one of the allowed values, or is given twice.",
        remedy: "Send the sort key once: combined, reasoning, speed, price, coding, 7axis or tooling." },
    CodeRow { code: ErrorCode::InvalidLimit, status: StatusCode::BAD_REQUEST, word: "invalid_limit", title: "Invalid limit",
        condition: "The limit is not a plain decimal from 1 to 100, or is given twice.",
        remedy: "Send the limit once, as an integer from 1 to 100 without sign or leading zero. Pagination is not available." },
    CodeRow { code: ErrorCode::InvalidParameter, status: StatusCode::BAD_REQUEST, word: "invalid_parameter", title: "Invalid parameter",
        condition: "A parameter of the endpoint does not have one of its allowed values, or is given twice. The four parameters that are common to several endpoints have separate codes.",
        remedy: "Use one of the values in `allowed`, and send the parameter only once." },
    CodeRow { code: ErrorCode::ApiKeyRequired, status: StatusCode::UNAUTHORIZED, word: "api_key_required", title: "API key required",
        condition: "No key was sent.",
        remedy: "Send `Authorization: Bearer KEY` or `X-API-Key: KEY`." },
    CodeRow { code: ErrorCode::InvalidApiKey, status: StatusCode::UNAUTHORIZED, word: "invalid_api_key", title: "Invalid API key",
        condition: "The key is unknown, revoked or expired, or the request names two different keys.",
        remedy: "Check the key for typing errors; create or rotate it in your account." },
    CodeRow { code: ErrorCode::LatestRequiresPlan, status: StatusCode::FORBIDDEN, word: "latest_requires_plan", title: "Period needs another plan",
        condition: "The key's tier may not request the period `latest`.",
        remedy: "Use a period in `allowed`, or move to a plan with this period." },
    CodeRow { code: ErrorCode::PlanRequired, status: StatusCode::FORBIDDEN, word: "plan_required", title: "Request needs another plan",
        condition: "The key's tier may not request this endpoint, or may not request it with this period.",
        remedy: "Use an allowed period, or move to a tier with this right: `tier` names one." },
    CodeRow { code: ErrorCode::NotFound, status: StatusCode::NOT_FOUND, word: "not_found", title: "No such endpoint",
        condition: "The path does not exist. Paths are exact: a path with a trailing or doubled slash is a different path.",
        remedy: "Check the path against the table of endpoints. Pagination and CSV are not available." },
    CodeRow { code: ErrorCode::ModelNotFound, status: StatusCode::NOT_FOUND, word: "model_not_found", title: "No such model",
        condition: "No known model has this id.",
        remedy: "Use ids from the models list. If the response has `Retry-After`, the id could not be looked up yet, and the request is free: try again after that time." },
    CodeRow { code: ErrorCode::MethodNotAllowed, status: StatusCode::METHOD_NOT_ALLOWED, word: "method_not_allowed", title: "Method not allowed",
        condition: "The method is not GET, HEAD or OPTIONS. The service is read-only.",
        remedy: "Use GET or HEAD." },
    CodeRow { code: ErrorCode::UriTooLong, status: StatusCode::URI_TOO_LONG, word: "uri_too_long", title: "Request target too long",
        condition: "The path and query together are longer than 2,048 bytes.",
        remedy: "No endpoint needs more than a few dozen bytes; remove parameters that the endpoint does not have." },
    CodeRow { code: ErrorCode::QuotaExceeded, status: StatusCode::TOO_MANY_REQUESTS, word: "quota_exceeded", title: "Daily quota spent",
        condition: "The daily quota is used up. It resets at 00:00 UTC.",
        remedy: "Wait for the reset, cache responses, or move to a larger plan." },
    CodeRow { code: ErrorCode::RateLimitExceeded, status: StatusCode::TOO_MANY_REQUESTS, word: "rate_limit_exceeded", title: "Too many requests this minute",
        condition: "The key's requests per minute are used up.",
        remedy: "Wait for the number of seconds in `Retry-After`." },
    CodeRow { code: ErrorCode::TooManyRefusals, status: StatusCode::TOO_MANY_REQUESTS, word: "too_many_refusals", title: "Too many refused requests",
        condition: "The guard is used up: in the last minute too many requests were refused or sent to `/me`, or this address downloaded too many pages. Valid API requests are not affected.",
        remedy: "Fix the requests, cache pages, and wait for the number of seconds in `Retry-After`." },
    CodeRow { code: ErrorCode::HeadersTooLarge, status: StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, word: "headers_too_large", title: "Request head too large",
        condition: "The request head is larger than 16 KiB or has more than 64 header fields.",
        remedy: "Send fewer or shorter headers; cookies are not used." },
    CodeRow { code: ErrorCode::InternalError, status: StatusCode::INTERNAL_SERVER_ERROR, word: "internal_error", title: "Internal error",
        condition: "The gateway failed. The error was logged.",
        remedy: "Try again; if the error persists, report the request id." },
    CodeRow { code: ErrorCode::UpstreamInvalid, status: StatusCode::BAD_GATEWAY, word: "upstream_invalid", title: "Invalid response from the data source",
        condition: "The data source sent an invalid response, and no stored document is left.",
        remedy: "Try again later." },
    CodeRow { code: ErrorCode::UpstreamUnavailable, status: StatusCode::SERVICE_UNAVAILABLE, word: "upstream_unavailable", title: "Data source unavailable",
        condition: "The data source is unreachable or returned an error, and no stored document is left.",
        remedy: "Try again after the number of seconds in `Retry-After`." },
    CodeRow { code: ErrorCode::Overloaded, status: StatusCode::SERVICE_UNAVAILABLE, word: "overloaded", title: "Temporarily out of capacity",
        condition: "The gateway is overloaded. The request costs nothing.",
        remedy: "Try again after the number of seconds in `Retry-After`." },
    CodeRow { code: ErrorCode::UpstreamTimeout, status: StatusCode::GATEWAY_TIMEOUT, word: "upstream_timeout", title: "Data source too slow",
        condition: "The data source did not respond in time, and no stored document is left.",
        remedy: "Try again in a moment." },
];

impl CodeRow {
    /// The message of an error without details: the remedy, then the cause.
    pub fn message(&self) -> String {
        [self.remedy, " ", self.condition].concat()
    }
}

impl ErrorCode {
    /// The row of the code.
    pub fn row(self) -> &'static CodeRow {
        CODES
            .get(self as usize)
            .expect("every code has a row, in order: a test checks this")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_the_contract_has_one_row_in_the_order_of_the_statuses() {
        let words: Vec<_> = CODES.iter().map(|row| row.word).collect();
        let mut unique = words.clone();
        unique.sort_unstable();
        unique.dedup();
        assert_eq!(unique.len(), words.len());
        assert!(CODES.is_sorted_by_key(|row| row.status));
        for row in &CODES {
            assert_eq!(row.code.row().word, row.word);
        }
    }
}
