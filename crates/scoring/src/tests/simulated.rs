//! Tests that the demo's simulated data always contains some events.

use crate::*;
use scoregate_base::routes::{DocumentKey, Period, Route};

use super::fixtures::{HOUR, asked, limit, now};

/// The seed of the demo.
const DEMO_SEED: u64 = 42;
/// The number of hours between tested times, coprime with every cycle, and the number of tested times. With
/// `SCOREGATE_FULL=1`, every hour of 60 days is tested.
const STEPS: (u32, u32) = (37, 24);
const ALL: (u32, u32) = (1, 60 * 24);

#[test]
fn at_any_hour_the_simulated_data_has_an_alert_an_ongoing_incident_and_degradations() {
    let list = |route, period| DocumentKey::over(route, period);
    let limit = Some(limit(100));
    let questions = [
        ("alerts", DocumentKey::plain(Route::Alerts)),
        (
            "incidents",
            DocumentKey {
                limit,
                ..list(Route::Incidents, Period::Latest)
            },
        ),
        (
            "incidents of a day",
            DocumentKey {
                limit,
                ..list(Route::Incidents, Period::Day)
            },
        ),
        ("degradations", list(Route::Degradations, Period::Latest)),
        (
            "degradations of a day",
            list(Route::Degradations, Period::Day),
        ),
    ];
    let mut missing = Vec::new();
    let (hours, steps) = if std::env::var_os("SCOREGATE_FULL").is_some() {
        ALL
    } else {
        STEPS
    };
    for step in 0..steps {
        let scoring = Scoring::demo(DEMO_SEED, now().plus(HOUR * hours * step));
        let is_empty = |question: &&(&str, DocumentKey)| asked(&scoring, &question.1).is_empty();
        missing.extend(
            questions
                .iter()
                .filter(is_empty)
                .map(|(name, _)| (*name, step)),
        );
    }
    assert!(missing.is_empty(), "{missing:?}");
}
