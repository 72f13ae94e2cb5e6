//! Label values that classify requests: closed sets, each with its index.

use http::StatusCode;

use crate::keys::TierIndex;
use crate::limits::LimitRule;
use crate::routes::codes::{CODES, ErrorCode};
use crate::routes::{ENDPOINTS, Route};
use crate::telemetry::metrics::MetricLabel;

/// The endpoint label of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestSubject {
    /// An endpoint of the API.
    Endpoint(Route),
    /// A page that needs no key.
    Page,
    /// `OPTIONS`.
    Options,
    /// Any other path, or a request refused before its path was read.
    Nothing,
}

/// The class of a status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StatusClass {
    Success,
    Redirection,
    ClientError,
    ServerError,
}

/// A configured tier, or none.
#[derive(Clone, Copy)]
pub(super) struct TierLabel(pub(super) Option<TierIndex>);

/// A pool of concurrency slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PoolLabel {
    Cached,
    Waiting,
}

impl StatusClass {
    pub(crate) fn of(status: StatusCode) -> Self {
        match status.as_u16() {
            500.. => Self::ServerError,
            400..500 => Self::ClientError,
            300..400 => Self::Redirection,
            ..300 => Self::Success,
        }
    }
}

impl RequestSubject {
    /// All label values, in the order of their indexes.
    pub(super) fn words() -> Vec<String> {
        let endpoints = ENDPOINTS.iter().map(|endpoint| Self::Endpoint(endpoint.route));
        let all = endpoints.chain([Self::Page, Self::Options, Self::Nothing]);
        all.map(|subject| subject.as_str().to_owned()).collect()
    }

    /// The endpoint, if there is one.
    pub(crate) const fn endpoint(self) -> Option<Route> {
        match self {
            Self::Endpoint(route) => Some(route),
            Self::Page | Self::Options | Self::Nothing => None,
        }
    }

    /// The label value, also used in logs.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Endpoint(route) => route.name(),
            Self::Page => "page",
            Self::Options => "options",
            Self::Nothing => "none",
        }
    }
}

impl MetricLabel for RequestSubject {
    const NAME: &'static str = "endpoint";
    fn index(self) -> usize {
        match self {
            Self::Endpoint(route) => route_index(route),
            Self::Page => ENDPOINTS.len(),
            Self::Options => ENDPOINTS.len() + 1,
            Self::Nothing => ENDPOINTS.len() + 2,
        }
    }
}

fn route_index(route: Route) -> usize {
    route as usize
}

impl MetricLabel for StatusClass {
    const NAME: &'static str = "class";
    fn index(self) -> usize {
        self as usize
    }
}

impl MetricLabel for TierLabel {
    const NAME: &'static str = "tier";
    fn index(self) -> usize {
        // `none` is first; `TierIndex` counts the configured tiers.
        self.0.map_or(0, |tier| tier.0 + 1)
    }
}

impl MetricLabel for ErrorCode {
    const NAME: &'static str = "code";
    fn index(self) -> usize {
        CODES.iter().position(|row| row.code == self).unwrap_or(usize::MAX)
    }
}

impl MetricLabel for LimitRule {
    const NAME: &'static str = "rule";
    fn index(self) -> usize {
        self as usize
    }
}

impl PoolLabel {
    /// Both, in the order of the variants.
    pub(super) const ALL: [Self; 2] = [Self::Cached, Self::Waiting];

    /// The label value, also used in logs.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Cached => "cached",
            Self::Waiting => "waiting",
        }
    }
}

impl MetricLabel for PoolLabel {
    const NAME: &'static str = "pool";
    fn index(self) -> usize {
        self as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn route_index_is_its_position_in_the_table() {
        for (index, endpoint) in ENDPOINTS.iter().enumerate() {
            assert_eq!(route_index(endpoint.route), index);
        }
    }
}
