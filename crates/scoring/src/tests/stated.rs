//! Numbers stated in the API description, compared with the constants.

use scoregate_base::routes::shapes::{self, FieldShape, ItemField};

use super::super::method;

fn meaning(fields: &'static [ItemField], name: &str) -> &'static str {
    fields.iter().find(|field| field.name == name).unwrap().meaning
}

#[test]
fn reliability_states_its_weights_and_what_counts_as_unsteady() {
    let meaning = meaning(shapes::RELIABILITY, "reliability");
    let [availability, steadiness, incidents] = method::RELIABILITY_WEIGHTS;
    for stated in [
        format!("availability {availability},"),
        format!(
            "steadiness {steadiness} (1 for no deviation, 0 for {} points or more)",
            method::UNSTEADY_POINTS
        ),
        format!("absence of incidents {incidents} "),
    ] {
        assert!(meaning.contains(&stated), "{stated}: {meaning}");
    }
}

#[test]
fn the_drift_test_states_how_long_a_signal_stands_and_when_it_is_a_change() {
    let test = shapes::DRIFT.iter().find(|field| field.name == "pageHinkley").unwrap();
    let FieldShape::Object(fields) = test.shape else { panic!("{test:?}") };
    assert!(meaning(fields, "signalled").contains(&format!("for {} rounds", method::DRIFT_STANDS.hourly)));
    assert!(meaning(fields, "pValue").contains(&format!("below {}.", method::DRIFT_ALPHA)));
}

#[test]
fn a_degradation_states_the_part_of_a_period_that_determines_its_direction() {
    let [latest, day, week, month] = method::MOVEMENT_HOURS;
    assert_eq!(latest, day);
    let stated = format!("({day} hours; {} days for 7d, {} days for 1m)", week / 24, month / 24);
    assert!(meaning(shapes::DEGRADATION, "direction").contains(&stated), "{stated}");
    assert!(
        meaning(shapes::DRIFT, "baselineScore")
            .contains(&format!("{} days before", method::BASELINE_HOURS / 24))
    );
}
