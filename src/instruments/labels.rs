//! Label values that classify requests. Each set is closed, and each value has an index.

use http::StatusCode;

use scoregate_base::{
    plans::TierIndex,
    routes::{EndpointTable, Route},
};
use scoregate_observe::telemetry::metrics::{MetricLabel, metric_label};

/// The endpoint label of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestSubject {
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

/// A configured tier, or no tier.
#[derive(Clone, Copy)]
pub struct TierLabel(pub Option<TierIndex>);

metric_label! {
    /// A pool of concurrency slots.
    pub enum PoolLabel: "pool" {
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
    const OTHERS: [Self; 3] = [Self::Page, Self::Options, Self::Nothing];

    /// The label values for these endpoints, ordered by index.
    pub(super) fn words(endpoints: &EndpointTable) -> Vec<String> {
        let all = endpoints
            .iter()
            .map(|endpoint| Self::Endpoint(endpoint.route));
        Self::OTHERS
            .into_iter()
            .chain(all)
            .map(|subject| subject.as_str().to_owned())
            .collect()
    }

    /// The endpoint, if there is one.
    pub const fn endpoint(self) -> Option<Route> {
        match self {
            Self::Endpoint(route) => Some(route),
            Self::Page | Self::Options | Self::Nothing => None,
        }
    }

    /// The label value, also used in logs.
    pub fn as_str(self) -> &'static str {
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
            Self::Page => 0,
            Self::Options => 1,
            Self::Nothing => 2,
            Self::Endpoint(route) => route.index() + Self::OTHERS.len(),
        }
    }
}

impl MetricLabel for TierLabel {
    const NAME: &'static str = "tier";
    fn index(self) -> usize {
        // `none` is first, and `TierIndex` counts only the configured tiers.
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
    fn the_index_of_a_subject_is_the_position_of_its_word() {
        let endpoints = EndpointTable::default();
        let words = RequestSubject::words(&endpoints);
        let all = endpoints
            .iter()
            .map(|endpoint| RequestSubject::Endpoint(endpoint.route));
        for subject in RequestSubject::OTHERS.into_iter().chain(all) {
            assert_eq!(words[subject.index()], subject.as_str());
        }
    }
}
