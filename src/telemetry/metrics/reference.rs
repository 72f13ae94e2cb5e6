//! The reference of all metrics, generated from the table. `grafana/METRICS.md` is this text; a test fails when it is
//! stale.

use std::fmt::Write as _;

use super::table::{LABELS, METRICS, MetricKind, MetricRow, max_series};

/// The whole page, as Markdown.
pub fn reference() -> String {
    let mut page = format!(
        "# Metrics\n\nMetrics of the side port's `/metrics`. Generated from `src/telemetry/metrics/table.rs` by \
         `SCOREGATE_WRITE=1 cargo test --test suite metrics_reference`; do not edit.\n\n\
         Clients cannot choose the values of any label, so there are at most {} series.\n\n\
         | Metric | Kind | Labels | Meaning |\n|---|---|---|---|\n",
        max_series()
    );
    for row in METRICS {
        let MetricRow { name, meaning, labels, .. } = row;
        let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
        writeln!(page, "| `{name}` | {} | {} | {meaning} |", kind(row), labels.join(", "))
            .expect("writing to a string does not fail");
    }
    page.push_str("\n## Labels\n\n| Label | Maximum values | Values |\n|---|---|---|\n");
    for label in LABELS {
        writeln!(page, "| `{}` | {} | {} |", label.name, label.most, label.meaning)
            .expect("writing to a string does not fail");
    }
    page
}

fn kind(row: &MetricRow) -> &'static str {
    match row.kind {
        MetricKind::Counter => "counter",
        MetricKind::Gauge => "gauge",
        MetricKind::Histogram(_) => "histogram",
    }
}
