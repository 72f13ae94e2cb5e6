//! A scrape contains exactly the metrics of the table, each with its meaning.

use std::collections::BTreeSet;

use scoregate_observe::telemetry::metrics::METRICS;

use crate::world::World;

#[tokio::test]
async fn a_scrape_has_exactly_the_metrics_of_the_table_with_their_meanings() {
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
    for row in METRICS {
        let help = format!("# HELP {} {}\n", row.name, row.meaning);
        assert!(text.contains(&help), "{help}");
    }
    // All handles are created at the start, so that a rate has a first value.
    assert_eq!(
        known.difference(&names).collect::<Vec<_>>(),
        Vec::<&&str>::new()
    );
}
