//! Compares Student's t with scipy, far beyond the tails of published numbers. `tests/reference/scoring.py` writes the
//! values, and the results must agree within 1e-9. `tests/reference/compare.py` compares the published values of all
//! other statistics.

use serde::Deserialize;

use crate::student;

#[derive(Deserialize)]
struct Reference {
    tails: Vec<(f64, f64, f64)>,
    quantiles: Vec<(f64, f64, f64)>,
}

fn reference() -> Reference {
    serde_json::from_str(include_str!("../../../../tests/reference/scoring.json")).unwrap()
}

/// The relative tolerance is 1e-9 even for tiny values, because the order of magnitude of p-values matters.
fn agrees(found: f64, expected: f64, of: &str) {
    assert!(
        (found - expected).abs() <= 1e-9 * expected.abs(),
        "{of}: {found:e}, and {expected:e} is expected"
    );
}

#[test]
fn student_tails_match_scipy() {
    let tails = reference().tails;
    let far = tails.iter().filter(|(.., tail)| *tail < 1e-100).count();
    assert!(far > 3 && tails.len() > 300, "{far} of {}", tails.len());
    for (t, df, tail) in tails {
        let found = student::upper_tail(t, df);
        agrees(found, tail, &format!("t {t} with {df} degrees"));
    }
}

#[test]
fn student_quantiles_match_scipy() {
    for (tail, df, t) in reference().quantiles {
        let found = student::quantile(tail, df);
        agrees(found, t, &format!("tail {tail} with {df} degrees"));
    }
}
