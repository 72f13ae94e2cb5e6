//! All statistics against an independent implementation: `tests/reference/scoring.py` writes inputs with the results
//! of scipy and river, and ours must agree to 1e-9.

use serde::Deserialize;

use crate::page_hinkley::{PageHinkley, PageHinkleyParameters};
use crate::statistics::{Estimate, SampleSums, holm, line, median};
use crate::student::{self, TailQuantiles};

#[derive(Deserialize)]
struct Reference {
    moments: Vec<Moments>,
    tails: Vec<(f64, f64, f64)>,
    quantiles: Vec<(f64, f64, f64)>,
    comparisons: Vec<Comparison>,
    weighted: Vec<Weighted>,
    holm: Vec<Corrected>,
    lines: Vec<Fitted>,
    medians: Vec<Middle>,
    page_hinkley: Vec<ReferenceWatch>,
}

#[derive(Deserialize)]
struct Moments {
    samples: Vec<f64>,
    mean: f64,
    variance: Option<f64>,
    interval: Option<(f64, f64)>,
}

#[derive(Deserialize)]
struct Comparison {
    before: Vec<f64>,
    now: Vec<f64>,
    welch: Chances,
}

#[derive(Deserialize)]
struct Chances {
    df: f64,
    fall: f64,
    change: f64,
}

#[derive(Deserialize)]
struct Weighted {
    weights: Vec<f64>,
    parts: Vec<Vec<f64>>,
    mean: f64,
    variance: f64,
    df: f64,
}

#[derive(Deserialize)]
struct Corrected {
    chances: Vec<f64>,
    corrected: Vec<f64>,
}

#[derive(Deserialize)]
struct Fitted {
    xs: Vec<f64>,
    ys: Vec<f64>,
    slope: f64,
    p: f64,
}

#[derive(Deserialize)]
struct Middle {
    values: Vec<f64>,
    median: f64,
}

#[derive(Deserialize)]
struct ReferenceWatch {
    minimum: u32,
    delta: f64,
    threshold: f64,
    samples: Vec<f64>,
    rises: Vec<f64>,
    falls: Vec<f64>,
    signals: Vec<usize>,
}

fn reference() -> Reference {
    serde_json::from_str(include_str!("../../../../tests/reference/scoring.json")).unwrap()
}

/// Relative tolerance of 1e-9, however small: p-values matter by their order of magnitude.
fn agrees(found: f64, expected: f64, of: &str) {
    assert!(
        (found - expected).abs() <= 1e-9 * expected.abs(),
        "{of}: {found:e}, and {expected:e} is expected"
    );
}

/// Tolerance of 1e-9, relative, or absolute below 1: a slope near 0 is a difference of large numbers.
fn agrees_or_nearly(found: f64, expected: f64, of: &str) {
    let allowed = 1e-9 * expected.abs().max(1.0);
    assert!(
        (found - expected).abs() <= allowed,
        "{of}: {found:e}, and {expected:e} is expected"
    );
}

fn sums(samples: &[f64]) -> SampleSums {
    samples.iter().copied().collect()
}

fn interval(samples: &[f64]) -> Option<(f64, f64)> {
    let estimate = estimate(samples);
    estimate
        .reach(&TailQuantiles::of(crate::method::INTERVAL_TAIL))
        .map(|reach| (estimate.mean - reach, estimate.mean + reach))
}

fn estimate(samples: &[f64]) -> Estimate {
    sums(samples).estimate().unwrap()
}

#[test]
fn means_variances_and_intervals_match_numpy_and_scipy() {
    for case in reference().moments {
        let of = format!("{} samples about {}", case.samples.len(), case.mean);
        agrees(sums(&case.samples).mean().unwrap(), case.mean, &of);
        let found = sums(&case.samples).variance();
        let expected = case.variance;
        assert_eq!(found.is_some(), expected.is_some());
        if let Some((found, expected)) = found.zip(expected) {
            agrees(found, expected, &of);
        }
        let found = interval(&case.samples);
        let expected = case.interval;
        assert_eq!(found.is_some(), expected.is_some());
        if let Some((found, expected)) = found.zip(expected) {
            agrees_or_nearly(found.0, expected.0, &of);
            agrees_or_nearly(found.1, expected.1, &of);
        }
    }
}

#[test]
fn student_tails_match_scipy() {
    let tails = reference().tails;
    let far = tails.iter().filter(|(.., tail)| *tail < 1e-100).count();
    assert!(far > 3 && tails.len() > 300, "{far} of {}", tails.len());
    for (t, df, tail) in tails {
        agrees(
            student::upper_tail(t, df),
            tail,
            &format!("t {t} with {df} degrees"),
        );
    }
}

#[test]
fn student_quantiles_match_scipy() {
    for (tail, df, t) in reference().quantiles {
        agrees(
            student::quantile(tail, df),
            t,
            &format!("tail {tail} with {df} degrees"),
        );
    }
}

#[test]
fn welch_matches_scipy() {
    for case in reference().comparisons {
        let before = estimate(&case.before);
        let now = estimate(&case.now);
        let of = format!("{} against {}", case.now.len(), case.before.len());
        let difference = Estimate::weighted(&[(1.0, before), (-1.0, now)]);
        agrees(difference.spread.unwrap().df, case.welch.df, &of);
        let difference = Estimate::weighted(&[(1.0, before), (-1.0, now)]);
        agrees(difference.chance_above_zero(), case.welch.fall, &of);
        agrees(difference.chance_from_zero(), case.welch.change, &of);
    }
}

#[test]
fn page_hinkley_matches_river_for_every_sample() {
    let mut signalled = 0;
    for case in reference().page_hinkley {
        let rule = PageHinkleyParameters {
            minimum: case.minimum,
            delta: case.delta,
            lambda: case.threshold,
        };
        let mut test = PageHinkley::new(rule);
        let mut signals = Vec::new();
        for (place, sample) in case.samples.iter().enumerate() {
            signals.extend(test.feed(*sample).then_some(place));
            let [rise, fall] = test.statistics;
            agrees_or_nearly(
                rise,
                case.rises[place],
                &format!("{rule:?} at {place}, a rise"),
            );
            agrees_or_nearly(
                fall,
                case.falls[place],
                &format!("{rule:?} at {place}, a fall"),
            );
        }
        assert_eq!(signals, case.signals, "{rule:?}");
        signalled += signals.len();
    }
    assert!(signalled > 12, "{signalled}");
}

#[test]
fn weighted_sum_matches_the_textbook() {
    for case in reference().weighted {
        let parts: Vec<(f64, Estimate)> = case
            .weights
            .iter()
            .zip(&case.parts)
            .map(|(weight, part)| (*weight, estimate(part)))
            .collect();
        let sum = Estimate::weighted(&parts);
        let of = format!("{} parts", parts.len());
        let spread = sum.spread.unwrap();
        agrees(sum.mean, case.mean, &of);
        agrees(spread.variance, case.variance, &of);
        agrees(spread.df, case.df, &of);
    }
}

#[test]
fn holm_matches_its_definition() {
    for case in reference().holm {
        let found = holm(&case.chances);
        assert_eq!(found.len(), case.corrected.len());
        for (found, expected) in found.into_iter().zip(case.corrected) {
            agrees(found, expected, &format!("{} chances", case.chances.len()));
        }
    }
}

#[test]
fn line_fits_match_scipy() {
    for case in reference().lines {
        let points: Vec<(f64, f64)> = case
            .xs
            .iter()
            .copied()
            .zip(case.ys.iter().copied())
            .collect();
        let found = line(&points, 0.0).unwrap();
        let of = format!("{} points, slope {}", points.len(), case.slope);
        agrees_or_nearly(found.slope, case.slope, &of);
        agrees(found.p, case.p, &of);
    }
}

#[test]
fn median_matches_numpy() {
    for case in reference().medians {
        agrees(median(&case.values).unwrap(), case.median, "median");
    }
}
