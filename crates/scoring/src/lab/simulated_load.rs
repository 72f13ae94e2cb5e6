//! Input for load tests: simulated runs with ids.

use scoregate_base::clock::Wall;

use crate::{
    hour::Hour,
    run::{IdentifiedRun, Run},
    simulate::{Simulated, identified, models_named},
};

/// Runs of `models` models over the `hours` hours before the hour of `until`, ordered by hour. If `models` exceeds
/// the number of models in the catalogue, its models are repeated with different names and different noise.
pub fn simulated_records(
    seed: u64,
    models: usize,
    until: Wall,
    hours: u64,
) -> impl Iterator<Item = IdentifiedRun> + Send {
    let again = (0_u64..).flat_map(move |turn| {
        let ending = if turn == 0 {
            String::new()
        } else {
            format!("-{turn}")
        };
        models_named(seed + turn, &ending)
    });
    let models: Vec<Simulated> = again.take(models).collect();
    let of_hour = move |hour: Hour| {
        let rounds: Vec<Vec<Run>> = models.iter().map(|model| model.round(hour)).collect();
        rounds.into_iter().flatten()
    };
    Hour::of(until)
        .last(hours)
        .hours()
        .flat_map(of_hour)
        .map(identified)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_simulated_load_has_the_requested_models_and_unique_run_ids() {
        let noon = Wall::parse_rfc3339("2026-11-21T12:00:00Z").unwrap();
        let records: Vec<IdentifiedRun> = simulated_records(1, 40, noon, 24).collect();
        let ids: BTreeSet<&str> = records.iter().map(|record| record.id.as_str()).collect();
        assert_eq!(ids.len(), records.len());
        let models: BTreeSet<_> = records
            .iter()
            .map(|record| record.run.model().id())
            .collect();
        // Some preview models are absent.
        assert!((34..=40).contains(&models.len()), "{}", models.len());
        assert!(records.is_sorted_by_key(|record| Hour::of(record.run.at())));
    }
}
