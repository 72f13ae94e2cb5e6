//! The metrics page equals the page generated from the table, and a scrape contains exactly the metrics of the table.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use scoregate_observe::telemetry::metrics::{LABELS, METRICS, MetricKind, MetricRow, max_series};

use crate::world::World;

/// The page, as Markdown.
fn reference() -> String {
    let mut page = format!(
        "# Metrics\n\n| Sections | [all metrics](#all-metrics), [labels](#labels) |\n|---|---|\n\n\
         The side port serves these metrics at `/metrics`. This page is generated from \
         `crates/observe/src/telemetry/metrics/table.rs` by \
         `SCOREGATE_WRITE=1 cargo test --test suite metrics_reference`; do not edit it.\n\n## All metrics\n\n\
         Clients cannot choose the values of any label, so there are at most {} series.\n\n\
         | Metric | Kind | Labels | Meaning |\n|---|---|---|---|\n",
        max_series()
    );
    for row in METRICS {
        let MetricRow {
            name,
            meaning,
            labels,
            ..
        } = row;
        let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
        writeln!(
            page,
            "| `{name}` | {} | {} | {meaning} |",
            kind(row),
            labels.join(", ")
        )
        .unwrap();
    }
    page.push_str("\n## Labels\n\n| Label | Maximum values | Values |\n|---|---|---|\n");
    for label in LABELS {
        writeln!(
            page,
            "| `{}` | {} | {} |",
            label.name, label.most, label.meaning
        )
        .unwrap();
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

#[test]
fn metrics_reference_equals_the_page_generated_from_the_table() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("grafana/METRICS.md");
    if std::env::var_os("SCOREGATE_WRITE").is_some() {
        std::fs::write(&file, reference()).unwrap();
    }
    let found = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        found == reference(),
        "grafana/METRICS.md is stale: SCOREGATE_WRITE=1 cargo test --test suite metrics_reference"
    );
}

#[tokio::test]
async fn metrics_reference_contains_every_scraped_metric() {
    let world = World::new().await;
    let pro = world.customer("pro").await;
    assert_eq!(world.get_as(&pro, "/api/v1/models").await.status, 200);
    let text = world.scrape().await;
    let kinds = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let names: BTreeSet<&str> = kinds.map(|line| line.split(' ').next().unwrap()).collect();
    let known: BTreeSet<&str> = METRICS.iter().map(|row| row.name).collect();
    assert_eq!(
        names.difference(&known).collect::<Vec<_>>(),
        Vec::<&&str>::new()
    );
    // All handles are created at the start, so that a rate has a first value.
    assert_eq!(
        known.difference(&names).collect::<Vec<_>>(),
        Vec::<&&str>::new()
    );
}
