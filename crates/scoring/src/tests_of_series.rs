//! Counts of a series over ranges of hours.

use scoregate_base::routes::ModelId;

use super::*;
use crate::{
    measure::Measure,
    presence::SuiteRounds,
    run::{RunFailure, RunOutcome, TestedModel},
    suite::Suite,
};

fn empty(window: HourRange) -> ScoreSeries {
    ScoreSeries::new(Arc::default(), window)
}

fn score(scores: &PeriodScores) -> Option<f64> {
    scores.mean(ScorePart::measure(
        &SuiteTable::default(),
        Measure::Combined,
    ))
}

fn run(suite: Suite, hour: u64, scores: Option<&[f64]>) -> Run {
    let model = TestedModel::new(ModelId::new("m").unwrap(), "M", "p", None, None).unwrap();
    let outcome = match scores {
        Some(scores) => RunOutcome::Scored(
            scores
                .iter()
                .map(|s| Trial::new([*s; 7], 10.0, 0.5).unwrap())
                .collect(),
        ),
        None => RunOutcome::Failed(RunFailure::Throttled),
    };
    Run::new(
        Arc::new(model),
        suite,
        Hour::of(Wall::default()).plus(hour).start(),
        outcome,
    )
    .unwrap()
}

fn series(runs: &[Run]) -> ScoreSeries {
    let mut series = empty(all());
    for run in runs {
        series.add(run);
    }
    series
}

fn all() -> HourRange {
    Hour::of(Wall::default()).plus(10).last(10)
}

#[test]
fn a_range_of_whole_days_equals_the_sum_of_its_hours() {
    let window = Hour::of(Wall::default()).plus(100).last(100);
    let mut runs = empty(window);
    for hour in 0..100 {
        for suite in Suite::DEFAULT {
            runs.add(&run(
                suite,
                hour,
                Some(&[0.25, 0.5]).filter(|_| hour % 7 != 0).map(|s| &s[..]),
            ));
        }
    }
    for (to, from) in [
        (0, 48),
        (0, 24),
        (24, 72),
        (0, 96),
        (0, 120),
        (5, 53),
        (48, 48),
    ] {
        let range = HourRange {
            from: window.to.minus(from),
            to: window.to.minus(to),
        };
        let by_hours = PeriodScores::sum(
            &runs.table,
            SuiteRounds::default(),
            range.hours().filter_map(|hour| runs.at(hour)),
        );
        let found = runs.over(range);
        assert_eq!(
            (found.runs(), found.trials_of_axes()),
            (by_hours.runs(), by_hours.trials_of_axes()),
            "{to} {from}"
        );
        let close = |a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => (a - b).abs() < 1e-9,
            (a, b) => a == b,
        };
        assert!(close(score(&found), score(&by_hours)));
    }
}

#[test]
fn latencies_belong_to_their_range_for_any_import_order() {
    let at = |hour: u64, latency: f64| {
        let run = run(Suite::CODING, hour, None);
        let trials = vec![Trial::new([0.5; 7], latency, 0.0).unwrap()];
        Run::new(
            Arc::clone(run.model()),
            Suite::CODING,
            run.at(),
            RunOutcome::Scored(trials),
        )
        .unwrap()
    };
    for order in [[2, 4, 4, 7], [7, 4, 2, 4]] {
        let mut runs = series(&[]);
        for hour in order {
            runs.add(&at(hour, f64::from(u32::try_from(hour).unwrap())));
        }
        let of = |from: u64, to: u64| {
            let first = Hour::of(Wall::default());
            runs.latencies_of(HourRange {
                from: first.plus(from),
                to: first.plus(to),
            })
            .to_vec()
        };
        assert_eq!(of(0, 10), [2.0, 4.0, 4.0, 7.0]);
        assert_eq!(
            (of(0, 2), of(3, 5), of(5, 7)),
            (vec![], vec![4.0, 4.0], vec![])
        );
        assert_eq!((of(7, 8), of(8, 30)), (vec![7.0], vec![]));
    }
}
