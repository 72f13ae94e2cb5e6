//! The table of the 13 endpoints of the specification.
//!
//! Everything about an endpoint is derived from its row: the parameters, whether responses may be stored, and the
//! documentation. The syntax of parameters is in `params`, the fields of items in `shapes`. `endpoint_table` also has
//! the rows of the settings, and finds a row by path.

use std::{
    cmp::Ordering,
    fmt,
    hash::{Hash, Hasher},
    sync::{Mutex, OnceLock, PoisonError},
};

use super::{
    params::Param,
    shapes::{self, ItemField},
};

/// Prefix of all data paths.
pub const API_BASE: &str = "/api/v1";
/// The public address of `/`, without the slash. The given service address may end in [`API_BASE`].
pub fn root_of(url: &str) -> &str {
    let url = url.trim_end_matches('/');
    url.strip_suffix(API_BASE).unwrap_or(url)
}

/// The version of the data API, in every body.
pub const API_VERSION: &str = "1.0.0";

/// An endpoint, which is also a metric label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(
    missing_docs,
    reason = "each is described by its row in the table below"
)]
pub enum Route {
    Models,
    Model,
    History,
    Index,
    Alerts,
    Incidents,
    Providers,
    Degradations,
    Recommendations,
    ProviderReliability,
    Transparency,
    Drift,
    Me,
    /// An endpoint that the settings define.
    Configured(ConfiguredRoute),
}

/// A row of the table, which defines an endpoint.
#[derive(Debug)]
pub struct Endpoint {
    /// The endpoint.
    pub route: Route,
    /// The name in metrics and logs, and the `operationId` in the API description.
    pub name: &'static str,
    /// The path below [`API_BASE`], in segments. `:id` is a model id.
    pub segments: &'static [&'static str],
    /// The query parameters. All others are ignored.
    pub takes: &'static [Param],
    /// Whether responses may be stored.
    pub stored: bool,
    /// One line of documentation.
    pub summary: &'static str,
    /// The fields of an item of `data`.
    pub item: &'static [ItemField],
    /// Whether `data` always has exactly one item.
    pub one: bool,
    /// The fields in the short text for language models.
    pub brief: &'static [&'static str],
}

/// The 13 endpoints, in the order of the specification.
#[rustfmt::skip]
pub static ENDPOINTS: [Endpoint; 13] = [
    Endpoint { route: Route::Models, name: "models", segments: &["models"], takes: &[Param::Period, Param::SortBy], stored: true, one: false,
        summary: "Current rankings with scores, trends and confidence intervals.", item: shapes::RANKING,
        brief: &["id", "provider", "currentScore", "trend", "status"] },
    Endpoint { route: Route::Model, name: "model", segments: &["models", ":id"], takes: &[], stored: true, one: true,
        summary: "Detail of one model with its per-axis breakdown.", item: shapes::MODEL,
        brief: &["id", "provider", "currentScore", "trend", "status", "latencyMs", "priceInput", "priceOutput"] },
    Endpoint { route: Route::History, name: "history", segments: &["models", ":id", "history"], takes: &[Param::Period], stored: true, one: false,
        summary: "Score time-series of one model.", item: shapes::HISTORY,
        brief: &["timestamp", "score"] },
    Endpoint { route: Route::Index, name: "index", segments: &["index"], takes: &[], stored: true, one: true,
        summary: "Global intelligence index: the aggregate score across all tracked models, with its history.", item: shapes::INDEX,
        brief: &["value", "trend", "models", "bestModel"] },
    Endpoint { route: Route::Alerts, name: "alerts", segments: &["alerts"], takes: &[], stored: true, one: false,
        summary: "Active alerts for models that score below their own baseline.", item: shapes::ALERT,
        brief: &["modelId", "severity", "currentScore", "drop", "since"] },
    Endpoint { route: Route::Incidents, name: "incidents", segments: &["incidents"], takes: &[Param::Period, Param::Limit], stored: true, one: false,
        summary: "Recorded degradation incidents, newest first.", item: shapes::INCIDENT,
        brief: &["modelId", "kind", "severity", "openedAt", "resolvedAt"] },
    Endpoint { route: Route::Providers, name: "providers", segments: &["providers"], takes: &[], stored: true, one: false,
        summary: "Availability and status of each provider.", item: shapes::PROVIDER,
        brief: &["provider", "status", "availability", "averageScore"] },
    Endpoint { route: Route::Degradations, name: "degradations", segments: &["analytics", "degradations"], takes: &[Param::Period], stored: true, one: false,
        summary: "Models that are degrading now, with magnitude and direction.", item: shapes::DEGRADATION,
        brief: &["modelId", "direction", "magnitude", "currentScore"] },
    Endpoint { route: Route::Recommendations, name: "recommendations", segments: &["analytics", "recommendations"], takes: &[Param::Period], stored: true, one: false,
        summary: "Which model to use now, by task type.", item: shapes::RECOMMENDATION,
        brief: &["task", "modelId", "score", "alternatives"] },
    Endpoint { route: Route::ProviderReliability, name: "provider_reliability", segments: &["analytics", "provider-reliability"], takes: &[Param::Period], stored: true, one: false,
        summary: "Reliability scoring of each provider.", item: shapes::RELIABILITY,
        brief: &["provider", "reliability", "incidents"] },
    Endpoint { route: Route::Transparency, name: "transparency", segments: &["analytics", "transparency"], takes: &[Param::Period], stored: true, one: false,
        summary: "How each score was computed: weights, samples, freshness, method version.", item: shapes::TRANSPARENCY,
        brief: &["modelId", "currentScore", "standardError", "freshnessSeconds"] },
    Endpoint { route: Route::Drift, name: "drift", segments: &["drift", ":id"], takes: &[], stored: true, one: true,
        summary: "Drift signature of one model: Page-Hinkley statistic, regime, per-axis trends.", item: shapes::DRIFT,
        brief: &["modelId", "regime", "currentScore", "baselineScore"] },
    Endpoint { route: Route::Me, name: "me", segments: &["me"], takes: &[], stored: false, one: true,
        summary: "The caller's key, its tier and its current quota.", item: shapes::ME,
        brief: &["tier", "limits", "next_refresh_at", "suggested_poll_seconds"] },
];

impl Route {
    /// The row of the endpoint.
    pub fn endpoint(self) -> &'static Endpoint {
        if let Self::Configured(configured) = self {
            return configured.endpoint();
        }
        ENDPOINTS
            .get(self.index())
            .expect("every route has a row: a test checks this")
    }

    /// The position in an `EndpointTable` and in the metrics.
    pub const fn index(self) -> usize {
        match self {
            Self::Models => 0,
            Self::Model => 1,
            Self::History => 2,
            Self::Index => 3,
            Self::Alerts => 4,
            Self::Incidents => 5,
            Self::Providers => 6,
            Self::Degradations => 7,
            Self::Recommendations => 8,
            Self::ProviderReliability => 9,
            Self::Transparency => 10,
            Self::Drift => 11,
            Self::Me => 12,
            Self::Configured(configured) => configured.index(),
        }
    }

    /// Whether the settings define the endpoint.
    pub const fn is_configured(self) -> bool {
        matches!(self, Self::Configured(_))
    }

    /// The name in metrics and logs.
    pub fn name(self) -> &'static str {
        self.endpoint().name
    }

    /// Whether the path contains a model id.
    pub fn names_a_model(self) -> bool {
        self.endpoint().segments.contains(&":id")
    }
}

impl Endpoint {
    /// Whether only paid callers see all fields of the items.
    pub fn has_paid_field(&self) -> bool {
        self.item.iter().any(ItemField::has_paid_part)
    }

    /// The path as documented: `/api/v1/models/{id}/history`.
    pub fn documented_path(&self) -> String {
        let mut path = String::from(API_BASE);
        for segment in self.segments {
            path.push('/');
            path.push_str(if *segment == ":id" { "{id}" } else { segment });
        }
        path
    }
}

/// The route of an endpoint that the settings define. Two routes are equal if their definitions are equal.
///
/// A definition is kept for the lifetime of the process, so that a route remains a small value that refers to its row.
/// Equal definitions are kept once, so reading the same settings again uses no memory.
#[derive(Clone, Copy)]
pub struct ConfiguredRoute(&'static Definition);

struct Definition {
    index: u8,
    /// The definition as text. Definitions are equal if their texts are equal.
    text: String,
    row: OnceLock<Endpoint>,
}

static DEFINITIONS: Mutex<Vec<&'static Definition>> = Mutex::new(Vec::new());

impl ConfiguredRoute {
    /// The row with this position and definition, if there is one.
    pub fn known(index: u8, text: &str) -> Option<&'static Endpoint> {
        let known = DEFINITIONS.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .iter()
            .find(|one| one.index == index && one.text == text)
            .map(|one| Self(one).endpoint())
    }

    /// A row for this position in a table. `text` is the complete definition.
    pub fn define(
        index: u8,
        text: String,
        row: impl FnOnce(Route) -> Endpoint,
    ) -> &'static Endpoint {
        let definition: &'static Definition = Box::leak(Box::new(Definition {
            index,
            text,
            row: OnceLock::new(),
        }));
        let row = definition
            .row
            .get_or_init(|| row(Route::Configured(Self(definition))));
        DEFINITIONS
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(definition);
        row
    }

    /// The row of the endpoint.
    pub fn endpoint(self) -> &'static Endpoint {
        self.0
            .row
            .get()
            .expect("a route exists only together with its row")
    }

    /// The position in the table.
    pub const fn index(self) -> usize {
        self.0.index as usize
    }
}

impl fmt::Debug for ConfiguredRoute {
    /// The complete definition, because this text identifies stored documents.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.text)
    }
}

impl PartialEq for ConfiguredRoute {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for ConfiguredRoute {}

impl Hash for ConfiguredRoute {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.index.hash(state);
    }
}

impl PartialOrd for ConfiguredRoute {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ConfiguredRoute {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.0.index, &self.0.text).cmp(&(other.0.index, &other.0.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_has_exactly_one_row_at_its_index() {
        for row in &ENDPOINTS {
            assert_eq!(
                ENDPOINTS
                    .iter()
                    .filter(|other| other.route == row.route)
                    .count(),
                1
            );
            assert_eq!(ENDPOINTS[row.route.index()].route, row.route);
        }
    }

    #[test]
    fn a_short_text_has_fields_of_the_item() {
        for row in &ENDPOINTS {
            let is_field = |name: &&str| {
                row.item
                    .iter()
                    .any(|field| field.name == *name && !field.paid_only)
            };
            assert!(
                !row.brief.is_empty() && row.brief.iter().all(is_field),
                "{}",
                row.name
            );
        }
    }

    #[test]
    fn responses_about_one_model_have_one_item_except_its_history() {
        for row in &ENDPOINTS {
            if row.route.names_a_model() {
                assert_eq!(row.one, row.route != Route::History);
            }
        }
    }
}
