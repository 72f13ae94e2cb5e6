//! The service that the status page describes, and its state.

use scoregate_base::{clock::Wall, routes::API_BASE};
use scoregate_store::StatusMessage;

use super::availability::DayAvailability;

/// The service that the pages describe. All texts are escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusSite {
    /// The name of the service.
    pub service: String,
    /// The public address of the service, for absolute links in the feed.
    pub base_url: Option<String>,
    /// Whether callers can sign up.
    pub sign_up: bool,
}

/// The state of the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DataState {
    /// The time of the newest data. `None` if no data has been received yet, or if the backend lists no models.
    pub newest: Option<Wall>,
    /// The next expected refresh, which may be in the past. `None` if it is unknown.
    pub expected: Option<Wall>,
    /// The refresh that is overdue, if the data is stale.
    pub stale_since: Option<Wall>,
}

/// The state of the service, as seen by one gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceStatus {
    /// Whether this gateway serves requests.
    pub is_ready: bool,
    /// Whether the store of keys and quotas is failing.
    pub store_fails: bool,
    /// Whether the backend fails.
    pub backend_fails: bool,
    /// The state of the data.
    pub data: DataState,
    /// The last days, oldest first.
    pub days: Vec<DayAvailability>,
    /// The end of the counted minutes. `None` until the history has been read.
    pub counted_until: Option<Wall>,
    /// The earliest stored minute.
    pub begun: Option<Wall>,
    /// Messages from the operator, newest first.
    pub messages: Vec<StatusMessage>,
}

impl StatusSite {
    /// The address of a path. It is absolute if the public address is configured.
    pub(super) fn url(&self, path: &str) -> String {
        let url = self
            .base_url
            .as_deref()
            .unwrap_or_default()
            .trim_end_matches('/');
        format!("{}{path}", url.strip_suffix(API_BASE).unwrap_or(url))
    }
}
