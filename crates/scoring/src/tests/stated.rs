//! Numbers stated in the API description, compared with the constants.

use scoregate_base::routes::shapes::{self, FieldShape, ItemField};

use crate::method;

fn meaning(fields: &'static [ItemField], name: &str) -> &'static str {
    fields
        .iter()
        .find(|field| field.name == name)
        .unwrap()
        .meaning
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
    let test = shapes::DRIFT
        .iter()
        .find(|field| field.name == "pageHinkley")
        .unwrap();
    let FieldShape::Object(fields) = test.shape else {
        panic!("{test:?}")
    };
    let stands = &method::DRIFT_STANDS;
    let stated = format!(
        "for {} hourly rounds, or 72 hours of longer ones (at least {} rounds)",
        stands.hourly, stands.least
    );
    assert!(meaning(fields, "signalled").contains(&stated), "{stated}");
    assert!(meaning(fields, "pValue").contains(&format!("below {}.", method::DRIFT_ALPHA)));
}

#[test]
fn the_baseline_states_its_days() {
    let stated = format!("{} days before", method::BASELINE_HOURS / 24);
    assert!(
        meaning(shapes::DRIFT, "baselineScore").contains(&stated),
        "{stated}"
    );
}
