//! Label values that classify requests: closed sets, each with its index.

use http::StatusCode;

use scoregate_base::keys::TierIndex;
use scoregate_base::routes::{ENDPOINTS, Route};
use scoregate_observe::telemetry::metrics::{FixedLabel, MetricLabel, metric_label};

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

metric_label! {
    pub(super) enum StatusClass: "class" {
        Success = "2xx",
        Redirection = "3xx",
        ClientError = "4xx",
        ServerError = "5xx",
    }
}

/// A configured tier, or none.
#[derive(Clone, Copy)]
pub(super) struct TierLabel(pub(super) Option<TierIndex>);

metric_label! {
    /// A pool of concurrency slots.
    pub(crate) enum PoolLabel: "pool" {
        Cached = "cached",
        Waiting = "waiting",
    }
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

impl FixedLabel for RequestSubject {
    fn words() -> Vec<String> {
        let endpoints = ENDPOINTS.iter().map(|endpoint| Self::Endpoint(endpoint.route));
        let all = endpoints.chain([Self::Page, Self::Options, Self::Nothing]);
        all.map(|subject| subject.as_str().to_owned()).collect()
    }
}

fn route_index(route: Route) -> usize {
    route as usize
}

impl MetricLabel for TierLabel {
    const NAME: &'static str = "tier";
    fn index(self) -> usize {
        // `none` is first; `TierIndex` counts the configured tiers.
        self.0.map_or(0, |tier| tier.0 + 1)
    }
}

impl PoolLabel {
    /// The label value, also used in logs.
    pub(crate) fn word(self) -> &'static str {
        Self::WORDS.get(self as usize).copied().unwrap_or_default()
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
