//! Names of metrics: every queried metric exists, and every existing metric is used.

use std::collections::BTreeSet;

use scoregate_observe::telemetry::metrics::{METRICS, MetricKind};

use super::{
    dashboards::{in_tree, panels, variables},
    promql::metrics,
    rules::rules,
};

/// Series that Prometheus adds itself.
const ADDED_BY_PROMETHEUS: [&str; 2] = ["up", "ALERTS"];

/// The metric of the table that a series belongs to.
fn row_of(series: &str) -> Option<&'static str> {
    let is_of = |name: &str, kind| match kind {
        MetricKind::Histogram(_) => ["_bucket", "_sum", "_count"]
            .iter()
            .any(|part| series.strip_suffix(part) == Some(name)),
        MetricKind::Counter | MetricKind::Gauge => series == name,
    };
    METRICS
        .iter()
        .find(|row| is_of(row.name, row.kind))
        .map(|row| row.name)
}

/// Every metric used by panels, rules and variables.
fn queried_metrics() -> BTreeSet<String> {
    let queries = panels().into_iter().flat_map(|panel| panel.queries);
    let queries = queries.chain(rules().into_iter().map(|rule| rule.query));
    let named = queries.flat_map(|query| metrics(&query));
    named
        .chain(variables().into_iter().map(|(metric, _)| metric))
        .collect()
}

#[test]
fn every_queried_metric_exists() {
    let recorded: BTreeSet<String> = rules().into_iter().map(|rule| rule.name).collect();
    let is_known = |name: &String| {
        ADDED_BY_PROMETHEUS.contains(&name.as_str())
            || recorded.contains(name)
            || row_of(name).is_some()
    };
    let unknown: Vec<String> = queried_metrics()
        .into_iter()
        .filter(|name| !is_known(name))
        .collect();
    assert!(unknown.is_empty(), "{unknown:#?}");
}

#[test]
fn every_metric_is_used_or_has_a_reason_not_to_be() {
    let queried_metrics = queried_metrics();
    let used_metrics: BTreeSet<&str> = queried_metrics
        .iter()
        .filter_map(|name| row_of(name))
        .collect();
    let marked = std::fs::read_to_string(in_tree("grafana/not_looked_at.toml")).unwrap();
    let marked: toml::Table = marked.parse().unwrap();
    for row in METRICS {
        let reason = marked.get(row.name).map(|reason| reason.as_str().unwrap());
        assert!(
            used_metrics.contains(row.name) != reason.is_some(),
            "{}: {reason:?}",
            row.name
        );
        assert!(
            reason.is_none_or(|reason| reason.len() > 20),
            "{}: {reason:?} is not a reason",
            row.name
        );
    }
    for name in marked.keys() {
        assert!(
            METRICS.iter().any(|row| row.name == name),
            "there is no {name}"
        );
    }
}

#[test]
fn every_recorded_series_is_queried() {
    let queried_metrics = queried_metrics();
    let unused: Vec<_> = rules()
        .into_iter()
        .filter(|rule| !rule.is_alert && !queried_metrics.contains(&rule.name))
        .collect();
    assert!(unused.is_empty(), "{unused:#?}");
}
