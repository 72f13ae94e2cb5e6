//! `GET /v1/keys/requests`: the requests of an application by day, endpoint and outcome, summed over all gateways.
//!
//! The requests are read from the store, where gateways record them every minute. Requests counted by this process are
//! in `usage_view`.

use serde::{Deserialize, Serialize};

use scoregate_base::clock::Wall;
use scoregate_store::{OutcomeCounts, RequestList, RequestQuery};

use super::views::NodesRead;

/// Requests of an application.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ApplicationRequestsView {
    /// The application's id.
    pub application: String,
    /// The first day.
    pub from: String,
    /// The last day.
    pub to: String,
    /// Requests that live gateways answered before this time are included. Null if there is no live gateway; in this
    /// case all recorded requests are included.
    pub recorded_at: Option<String>,
    /// Number of requests.
    pub requests: u64,
    /// The requests by outcome.
    pub outcomes: OutcomeCounts,
    /// The requests of each day, oldest first. Days without requests are included.
    pub days: Vec<DayRequestsView>,
    /// The requests to each endpoint, in descending order of requests.
    pub endpoints: Vec<EndpointRequestsView>,
}

/// Requests of a day.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DayRequestsView {
    /// The day.
    pub day: String,
    /// Number of requests.
    pub requests: u64,
    /// The requests by outcome.
    pub outcomes: OutcomeCounts,
}

/// Requests to an endpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EndpointRequestsView {
    /// The name of the endpoint. `none` for unknown paths.
    pub endpoint: String,
    /// Number of requests.
    pub requests: u64,
    /// The requests by outcome.
    pub outcomes: OutcomeCounts,
}

impl ApplicationRequestsView {
    pub(in crate::admin) fn new(
        query: &RequestQuery,
        requests: &RequestList,
        NodesRead { nodes, at }: &NodesRead,
    ) -> Self {
        let recorded = nodes.live(*at).map(|node| node.usage_recorded_at).min();
        let outcomes = requests.sum();
        let days = requests
            .by_day(query)
            .into_iter()
            .map(|(day, outcomes)| DayRequestsView {
                day: day.to_string(),
                requests: outcomes.total(),
                outcomes,
            });
        let endpoints = requests
            .by_endpoint()
            .into_iter()
            .map(|(endpoint, outcomes)| EndpointRequestsView {
                endpoint: endpoint.to_owned(),
                requests: outcomes.total(),
                outcomes,
            });
        Self {
            application: query.application.to_string(),
            from: query.first.to_string(),
            to: query.last.to_string(),
            recorded_at: recorded.map(Wall::rfc3339),
            requests: outcomes.total(),
            outcomes,
            days: days.collect(),
            endpoints: endpoints.collect(),
        }
    }
}
