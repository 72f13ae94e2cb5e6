//! The simulated data of the demo: something happens at any hour.

use scoregate_base::routes::{DocumentKey, Period, Route};

use super::super::*;
use super::fixtures::{HOUR, asked, limit, now};

/// The seed of the demo.
const DEMO_SEED: u64 = 42;
/// Hours between the tested instants: coprime with every cycle.
const STEP: u32 = 37;

#[test]
fn at_any_hour_the_simulated_data_has_an_alert_an_ongoing_incident_and_degradations() {
    let list = |route, period| DocumentKey::over(route, period);
    let limit = Some(limit(100));
    let questions = [
        ("alerts", DocumentKey::plain(Route::Alerts)),
        ("incidents", DocumentKey { limit, ..list(Route::Incidents, Period::Latest) }),
        ("incidents of a day", DocumentKey { limit, ..list(Route::Incidents, Period::Day) }),
        ("degradations", list(Route::Degradations, Period::Latest)),
        ("degradations of a day", list(Route::Degradations, Period::Day)),
    ];
    let mut missing = Vec::new();
    for step in 0..12 {
        let scoring = Scoring::demo(DEMO_SEED, now().plus(HOUR * STEP * step));
        let is_empty = |question: &&(&str, DocumentKey)| asked(&scoring, &question.1).is_empty();
        missing.extend(questions.iter().filter(is_empty).map(|(name, _)| (*name, step)));
    }
    assert!(missing.is_empty(), "{missing:?}");
}
