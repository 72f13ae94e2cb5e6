//! The table of the 13 endpoints, and the function that finds a row by its path.
//!
//! Everything about an endpoint derives from its row: its parameters, whether it may be stored, its documentation.
//! The syntax of parameters is in `params`, the fields of items in `shapes`.

use super::params::{Param, decode_segment};
use super::shapes::{self, ItemField};

/// Prefix of all data paths.
pub const API_BASE: &str = "/api/v1";
/// The version of the data API, in every body.
pub const API_VERSION: &str = "1.0.0";

/// An endpoint; also a metric label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each is a row of the table below, which says it")]
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
}

/// A row: everything known of an endpoint.
#[derive(Debug)]
pub struct Endpoint {
    /// The endpoint.
    pub route: Route,
    /// Its name in metrics, logs and as `operationId` of the API description.
    pub name: &'static str,
    /// Its path below [`API_BASE`], in segments; `:id` is a model id.
    pub segments: &'static [&'static str],
    /// Its query parameters. All others are ignored.
    pub takes: &'static [Param],
    /// Whether its responses may be stored.
    pub stored: bool,
    /// One line of documentation.
    pub summary: &'static str,
    /// The fields of an item of its `data`.
    pub item: &'static [ItemField],
    /// Whether `data` always has exactly one item.
    pub one: bool,
}

/// The 13 endpoints, in the order of the specification.
#[rustfmt::skip]
pub static ENDPOINTS: [Endpoint; 13] = [
    Endpoint { route: Route::Models, name: "models", segments: &["models"], takes: &[Param::Period, Param::SortBy], stored: true, one: false,
        summary: "Current rankings with scores, trends and confidence intervals.", item: shapes::RANKING },
    Endpoint { route: Route::Model, name: "model", segments: &["models", ":id"], takes: &[], stored: true, one: true,
        summary: "Detail of one model with its per-axis breakdown.", item: shapes::MODEL },
    Endpoint { route: Route::History, name: "history", segments: &["models", ":id", "history"], takes: &[Param::Period], stored: true, one: false,
        summary: "Score time-series of one model.", item: shapes::HISTORY },
    Endpoint { route: Route::Index, name: "index", segments: &["index"], takes: &[], stored: true, one: true,
        summary: "Global intelligence index: the aggregate score across all tracked models, with its history.", item: shapes::INDEX },
    Endpoint { route: Route::Alerts, name: "alerts", segments: &["alerts"], takes: &[], stored: true, one: false,
        summary: "Active alerts for models that score below their own baseline.", item: shapes::ALERT },
    Endpoint { route: Route::Incidents, name: "incidents", segments: &["incidents"], takes: &[Param::Period, Param::Limit], stored: true, one: false,
        summary: "Recorded degradation incidents, newest first.", item: shapes::INCIDENT },
    Endpoint { route: Route::Providers, name: "providers", segments: &["providers"], takes: &[], stored: true, one: false,
        summary: "Availability and status of each provider.", item: shapes::PROVIDER },
    Endpoint { route: Route::Degradations, name: "degradations", segments: &["analytics", "degradations"], takes: &[Param::Period], stored: true, one: false,
        summary: "Models that are degrading now, with magnitude and direction.", item: shapes::DEGRADATION },
    Endpoint { route: Route::Recommendations, name: "recommendations", segments: &["analytics", "recommendations"], takes: &[Param::Period], stored: true, one: false,
        summary: "Which model to use now, by task type.", item: shapes::RECOMMENDATION },
    Endpoint { route: Route::ProviderReliability, name: "provider_reliability", segments: &["analytics", "provider-reliability"], takes: &[Param::Period], stored: true, one: false,
        summary: "Reliability scoring of each provider.", item: shapes::RELIABILITY },
    Endpoint { route: Route::Transparency, name: "transparency", segments: &["analytics", "transparency"], takes: &[Param::Period], stored: true, one: false,
        summary: "How each score came to be: weights, samples, freshness, method version.", item: shapes::TRANSPARENCY },
    Endpoint { route: Route::Drift, name: "drift", segments: &["drift", ":id"], takes: &[], stored: true, one: true,
        summary: "Drift signature of one model: Page-Hinkley statistic, regime, per-axis trends.", item: shapes::DRIFT },
    Endpoint { route: Route::Me, name: "me", segments: &["me"], takes: &[], stored: false, one: true,
        summary: "The caller's key, its tier and its current quota.", item: shapes::ME },
];

impl Route {
    /// Its row.
    pub fn endpoint(self) -> &'static Endpoint {
        ENDPOINTS.iter().find(|row| row.route == self).expect("every route has a row: a test walks them")
    }

    /// Its name in metrics and logs.
    pub fn name(self) -> &'static str {
        self.endpoint().name
    }

    /// Whether its path contains a model id.
    pub fn names_a_model(self) -> bool {
        self.endpoint().segments.contains(&":id")
    }
}

impl Endpoint {
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

/// A row, and the raw text in the place of `:id`.
#[derive(Clone, Copy, Debug)]
pub struct RouteMatch<'p> {
    /// The row.
    pub endpoint: &'static Endpoint,
    /// The id as received, still percent-encoded.
    pub raw_id: Option<&'p str>,
}

/// Finds the row of a path. Fixed segments are compared after one percent-decoding; paths are not normalized: a
/// trailing slash, `//` or a dot segment matches no row.
pub fn find(path: &str) -> Option<RouteMatch<'_>> {
    let rest = path.strip_prefix(API_BASE)?.strip_prefix('/')?;
    ENDPOINTS.iter().find_map(|endpoint| {
        let mut raw_id = None;
        let mut parts = rest.split('/');
        for segment in endpoint.segments {
            let part = parts.next()?;
            if *segment == ":id" {
                // An empty or dot segment makes the path wrong, not the id.
                if matches!(part, "" | "." | "..") {
                    return None;
                }
                raw_id = Some(part);
            } else if part != *segment && decode_segment(part).as_deref() != Some(*segment) {
                return None;
            }
        }
        parts.next().is_none().then_some(RouteMatch { endpoint, raw_id })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_has_exactly_one_row_and_every_row_is_found_by_its_path() {
        for row in &ENDPOINTS {
            assert_eq!(ENDPOINTS.iter().filter(|other| other.route == row.route).count(), 1);
            let path = row.documented_path().replace("{id}", "gpt-5");
            let found = find(&path).unwrap();
            assert_eq!(found.endpoint.route, row.route);
            assert_eq!(found.raw_id.is_some(), row.route.names_a_model());
        }
    }

    #[test]
    fn paths_are_never_normalized() {
        for path in [
            "/api/v1",
            "/api/v1/",
            "/api/v1/models/",
            "/api/v1//models",
            "/api/v1/./models",
            "/api/v1/models/..",
            "/API/v1/models",
            "/api/v1/Models",
            "/api/v1/models/x/history/",
            "/api/v1/me/x.css",
            "/api/v1/me;.js",
            "/api/v2/models",
            "//api/v1/models",
            "/api/v1/models/x/y",
            "/api/v1/models/../me",
            "/api/v1/index.html",
        ] {
            assert!(find(path).is_none(), "{path}");
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
