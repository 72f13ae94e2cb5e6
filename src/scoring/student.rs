//! Student's t distribution: its tail and its quantile, for any number of degrees of freedom, whole or not.
//!
//! The tail is the regularised incomplete beta function by Lentz's continued fraction, good to about 1e-12; the
//! quantile is found on that tail by Newton's method to the same accuracy. Not for: what is tested (`statistics.rs`).

/// The chance that a t variable lies above `t`.
pub(super) fn upper_tail(t: f64, df: f64) -> f64 {
    let beyond = 0.5 * incomplete_beta(df / 2.0, 0.5, df / (df + t * t));
    if t >= 0.0 { beyond } else { 1.0 - beyond }
}

/// The value above which a t variable lies with the chance `tail`, which is below one half.
///
/// The tail falls and is convex right of 0, so that Newton's steps from 0 approach the quantile from the left and never
/// pass it.
pub(super) fn quantile(tail: f64, df: f64) -> f64 {
    let scale = (ln_gamma(df.midpoint(1.0)) - ln_gamma(df / 2.0)).exp() / (df * std::f64::consts::PI).sqrt();
    let mut t = 0.0;
    // One degree of freedom, the hardest case, takes 10 steps; the rest of the range is a limit, not an expectation.
    for _ in 0..64 {
        let density = scale * (-df.midpoint(1.0) * (t * t / df).ln_1p()).exp();
        let step = (upper_tail(t, df) - tail) / density;
        t += step;
        if step.abs() < 1e-12 * (1.0 + t) {
            break;
        }
    }
    t
}

/// The regularised incomplete beta function, for `x` from 0 to 1.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let ln_front = a * x.ln() + b * (-x).ln_1p() + ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b);
    // The fraction converges fast on this side only; the other is its mirror image.
    if x < (a + 1.0) / (a + b + 2.0) {
        ln_front.exp() * beta_fraction(a, b, x) / a
    } else {
        1.0 - ln_front.exp() * beta_fraction(b, a, 1.0 - x) / b
    }
}

fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    // Lentz's method divides by what may be zero; this stands in for it.
    let nonzero = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut above = 1.0;
    let mut below = 1.0 / nonzero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = below;
    // It needs about the square root of the larger argument in steps: 500 is enough for 100,000 degrees of freedom.
    for step in 1..500_u32 {
        let turn = f64::from(step);
        let even = turn * (b - turn) * x / ((a + 2.0 * turn - 1.0) * (a + 2.0 * turn));
        below = 1.0 / nonzero(1.0 + even * below);
        above = nonzero(1.0 + even / above);
        fraction *= below * above;
        let odd = -(a + turn) * (a + b + turn) * x / ((a + 2.0 * turn) * (a + 2.0 * turn + 1.0));
        below = 1.0 / nonzero(1.0 + odd * below);
        above = nonzero(1.0 + odd / above);
        let change = below * above;
        fraction *= change;
        if (change - 1.0).abs() < 1e-14 {
            break;
        }
    }
    fraction
}

/// The logarithm of the gamma function for `x` of one half and more, by Lanczos's series (g = 7), good to about 1e-14.
fn ln_gamma(x: f64) -> f64 {
    const SERIES: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let mut divisor = x;
    let mut sum = 0.999_999_999_999_809_9;
    for term in SERIES {
        divisor += 1.0;
        sum += term / divisor;
    }
    let base = x + 7.5;
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * base.ln() - base + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantile_is_that_of_the_tables() {
        for (df, expected) in [
            (1.0, 12.7062),
            (2.0, 4.3027),
            (3.0, 3.1824),
            (5.0, 2.5706),
            (10.0, 2.2281),
            (30.0, 2.0423),
            (100.0, 1.9840),
            (5_000.0, 1.9604),
        ] {
            let found = quantile(0.025, df);
            assert!((found - expected).abs() < 5e-5, "{df}: {found}");
        }
    }

    #[test]
    fn one_degree_of_freedom_is_the_cauchy_distribution_in_closed_form() {
        for t in [-3.0_f64, -0.5, 0.0, 0.1, 1.0, 12.7062, 1e6] {
            let exact = 0.5 - t.atan() / std::f64::consts::PI;
            assert!((upper_tail(t, 1.0) - exact).abs() < 1e-12, "{t}");
        }
    }

    #[test]
    fn the_tail_at_the_quantile_is_the_one_asked_for() {
        for tail in [0.25, 0.05, 0.025, 0.005, 1e-6] {
            for df in [1.0, 1.7, 4.2, 66.6, 2_159.0] {
                let back = upper_tail(quantile(tail, df), df);
                assert!((back / tail - 1.0).abs() < 1e-9, "{tail} {df}: {back}");
            }
        }
    }
}
