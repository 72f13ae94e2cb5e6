//! The significance level per comparison at which all comparisons of a ranking hold jointly. It is based on the range
//! of normal variables, as in Tukey's test, and is applied stepwise, since models that certainly differ need no further
//! comparison.

use std::f64::consts::{PI, SQRT_2};

use crate::method;

/// Number of nodes of the integral over the largest variable, and the range of that variable.
const NODES: u32 = 160;
const LARGEST: [f64; 2] = [-8.0, 8.0];

/// Limits for the quantile of the range with any number of models, and the number of bisection steps, which give six
/// digits.
const RANGE: [f64; 2] = [1.0, 11.0];
const STEPS: u32 = 22;

/// The probability outside each bound of a comparison, chosen so that all bounds hold with a probability of 95 %. For
/// each model, `earlier` contains the number of models before it that it is compared with.
pub fn joint_tail(earlier: &[usize]) -> f64 {
    let most = earlier.iter().copied().max().unwrap_or_default();
    let mut models = vec![0.0; most + 1];
    for count in earlier {
        models.get_mut(*count).into_iter().for_each(|of| *of += 1.0);
    }
    let level = (-2.0 * method::INTERVAL_TAIL).ln_1p();
    let [mut low, mut high] = RANGE;
    for _ in 0..STEPS {
        let range = f64::midpoint(low, high);
        if held(range, &models) < level {
            low = range;
        } else {
            high = range;
        }
    }
    1.0 - normal_below(high / SQRT_2)
}

/// The logarithm of the probability that no two compared variables are further apart than `range`. Each model contributes the
/// probability that its variable is within `range` of the variables before it, given that those are within `range` of each other.
fn held(range: f64, models: &[f64]) -> f64 {
    let [from, to] = LARGEST;
    let width = (to - from) / f64::from(NODES);
    let mut nodes: Vec<[f64; 2]> = (0..=NODES)
        .map(|node| {
            let largest = from + width * f64::from(node);
            let density = (-largest * largest / 2.0).exp() / (2.0 * PI).sqrt();
            let within = normal_below(largest) - normal_below(largest - range);
            [density * width, within]
        })
        .collect();
    let mut count = 1.0;
    let mut before = 0.0;
    let mut held = 0.0;
    for models in models.iter().skip(1) {
        count += 1.0;
        let mut all = 0.0;
        for [share, within] in &mut nodes {
            *share *= *within;
            all += *share;
        }
        let now = (count * all).ln();
        held += models * (now - before);
        before = now;
    }
    held
}

/// The normal distribution function, correct to 1e-7 (Abramowitz and Stegun 7.1.26).
fn normal_below(z: f64) -> f64 {
    let x = z.abs() / SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let series = t
        * (0.254_829_592
            + t * (-0.284_496_736
                + t * (1.421_413_741 + t * (-1.453_152_027 + t * 1.061_405_429))));
    let beyond = 0.5 * series * (-x * x).exp();
    if z < 0.0 { beyond } else { 1.0 - beyond }
}
