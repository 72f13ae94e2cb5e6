//! Changes among many models: chance differences at a level of one in a hundred are not reported, real ones are.

use std::sync::Arc;

use crate::hour::Hour;
use scoregate_base::routes::{DocumentKey, ModelId, Period, Route};

use super::fixtures::{HOUR, asked, now};
use crate::figures::Trend;
use crate::measure::Measure;
use crate::statistics::chance_of_change;
use crate::*;

/// Rounds of one model over eight days: seeded noise, and a gain in the last 20 hours.
fn history(number: u32, gain: f64) -> Vec<Run> {
    let id = format!("m{number:03}");
    let model =
        Arc::new(TestedModel::new(ModelId::new(&id).unwrap(), &id, "p", None, None).unwrap());
    let mut state = u64::from(number) << 32;
    let mut evenly = || {
        // Splitmix64.
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        f64::from(u32::try_from((mixed ^ (mixed >> 31)) >> 40).unwrap()) / f64::from(1 << 24) - 0.5
    };
    let mut runs = Vec::new();
    for ago in (1..=192_u32).rev() {
        for suite in Suite::DEFAULT {
            // Independent noise per suite, as the method assumes.
            let score = 0.6 + 0.1 * evenly() + if ago <= 20 { gain } else { 0.0 };
            let trials = vec![Trial::new([score; 7], 9.0, 0.1).unwrap()];
            let at = now().minus(HOUR * ago);
            runs.push(Run::new(Arc::clone(&model), suite, at, RunOutcome::Scored(trials)).unwrap());
        }
    }
    runs
}

#[test]
fn correction_suppresses_trends_among_many_quiet_models() {
    let runs: Vec<_> = (0..180).flat_map(|number| history(number, 0.0)).collect();
    let snapshot = RunSource::Runs(runs.into()).snapshot(now()).unwrap();
    let mut alone = 0;
    for model_state in &snapshot.model_states {
        for period in [Period::Day, Period::Week] {
            let (now, before) = model_state.over(period).estimates(Measure::Combined);
            let now = now.unwrap();
            let before = before.unwrap();
            alone += u32::from(chance_of_change(before, now) < 0.05);
            assert_eq!(
                model_state.change.trend(period, Measure::Combined),
                Trend::Stable,
                "{}",
                model_state.id()
            );
        }
        assert_eq!(model_state.change.axes, [Trend::Stable; 7]);
        assert!(!model_state.change.has_drifted());
    }
    assert!(alone > 0, "nothing needed a correction");
}

#[test]
fn a_rise_among_quiet_models_is_a_drift_with_its_direction_hour_and_chance() {
    let runs: Vec<_> = (0..12)
        .flat_map(|number| history(number, if number == 5 { 0.15 } else { 0.0 }))
        .collect();
    let scoring = Scoring::open(RunSource::Runs(runs.into()), now()).unwrap();
    for id in scoring.model_ids() {
        let drift = &asked(&scoring, &DocumentKey::of_model(Route::Drift, id.clone()))[0];
        let test = &drift["pageHinkley"];
        if id.as_str() == "m005" {
            assert_eq!(
                (&drift["regime"], &test["state"]),
                (&"drifting".into(), &"signalled".into())
            );
            assert_eq!(
                (&test["signalled"], &test["direction"]),
                (&true.into(), &"up".into())
            );
            assert!(
                test["pValue"].as_f64().unwrap() < 1e-6 && test["noise"].as_f64().unwrap() > 1.0,
                "{test}"
            );
            assert!(test["signalledStatistic"].as_f64() > Some(0.0), "{test}");
            let rose = Hour::of(now()).minus(20).start().rfc3339();
            assert!(test["signalledAt"].as_str() >= Some(&rose), "{test}");
        } else {
            assert_eq!(
                (&drift["regime"], &test["state"]),
                (&"stable".into(), &"quiet".into()),
                "{id}"
            );
        }
    }
}
