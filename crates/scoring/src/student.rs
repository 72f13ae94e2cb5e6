//! Student's t distribution: tail probability and quantile, for any positive number of degrees of freedom.
//!
//! The tail is the regularised incomplete beta function, computed with Lentz's continued fraction. Its relative error
//! is about 1e-12, even far out in the tail. The quantile is computed with Halley's method, starting from an asymptotic
//! expansion.

use std::{cell::Cell, f64::consts::PI};

/// Number of bits of an index into the table of quantiles.
const HASH_BITS: u32 = 10;

/// The probability that a t variable is above `t`.
pub fn upper_tail(t: f64, df: f64) -> f64 {
    let beyond = 0.5 * beyond(t.abs(), df);
    if t >= 0.0 { beyond } else { 1.0 - beyond }
}

/// The value that a t variable exceeds with probability `tail`, which must be below one half.
pub fn quantile(tail: f64, df: f64) -> f64 {
    let scale = gamma_ratio(df / 2.0) / (df * PI).sqrt();
    let mut t = first_guess(tail, df, scale);
    // The loop takes two or three steps in practice. Its range is only a safety limit.
    for _ in 0..64 {
        let density = scale * (-df.midpoint(1.0) * (t * t / df).ln_1p()).exp();
        let newton = (upper_tail(t, df) - tail) / density;
        // The relative derivative of the density.
        let bend = (df + 1.0) * t / (df + t * t);
        let step = newton / (1.0 - (newton * bend / 2.0).clamp(-1.0, 0.5));
        t = (t + step).max(0.0);
        // Convergence is cubic, so the error after this step is below 1e-14.
        if step.abs() < 1e-5 * t {
            break;
        }
    }
    t
}

/// Public for benchmarks: the value that a t variable exceeds with probability `tail`.
#[cfg(any(test, feature = "lab"))]
pub fn t_quantile(tail: f64, df: f64) -> f64 {
    quantile(tail, df)
}

/// Quantiles for one tail probability. They are cached, because most scores share a few values of the degrees of
/// freedom.
#[derive(Clone, Debug)]
pub struct TailQuantiles {
    tail: f64,
    /// Degrees of freedom and their quantiles, by a hash of the degrees of freedom.
    known: Vec<Cell<(f64, f64)>>,
}

impl TailQuantiles {
    /// Quantiles that are exceeded with probability `tail`.
    pub fn of(tail: f64) -> Self {
        Self {
            tail,
            known: vec![Cell::new((f64::NAN, f64::NAN)); 1 << HASH_BITS],
        }
    }

    /// The quantile for these degrees of freedom.
    pub fn with(&self, df: f64) -> f64 {
        let hash = df.to_bits().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - HASH_BITS);
        let Some(known) = usize::try_from(hash)
            .ok()
            .and_then(|hash| self.known.get(hash))
        else {
            return quantile(self.tail, df);
        };
        let (degrees, value) = known.get();
        if degrees.to_bits() == df.to_bits() {
            return value;
        }
        let value = quantile(self.tail, df);
        known.set((df, value));
        value
    }
}

/// Correct to a few hundredths. With few degrees of freedom the tail follows a power law; with many it is nearly
/// normal.
fn first_guess(tail: f64, df: f64, scale: f64) -> f64 {
    if df < 3.0 {
        return df.sqrt() * (scale / (tail * df.sqrt())).powf(1.0 / df);
    }
    let z = normal_quantile(tail);
    let z2 = z * z;
    // The Cornish-Fisher expansion in the reciprocal of the degrees of freedom.
    let first = z * (z2 + 1.0) / 4.0;
    let second = z * ((5.0 * z2 + 16.0) * z2 + 3.0) / 96.0;
    let third = z * (((3.0 * z2 + 19.0) * z2 + 17.0) * z2 - 15.0) / 384.0;
    z + (first + (second + third / df) / df) / df
}

/// The normal quantile, accurate to 0.0005 (Hastings), which is sufficient for a first guess.
fn normal_quantile(tail: f64) -> f64 {
    let u = (-2.0 * tail.ln()).sqrt();
    let above = 2.515_517 + u * (0.802_853 + u * 0.010_328);
    let below = 1.0 + u * (1.432_788 + u * (0.189_269 + u * 0.001_308));
    u - above / below
}

/// The probability that a t variable is farther from 0 than `t`: the incomplete beta function of `df / (df + t²)` with
/// parameters `df / 2` and one half.
fn beyond(t: f64, df: f64) -> f64 {
    let a = df / 2.0;
    let near = t * t / (df + t * t);
    let far = df / (df + t * t);
    // Logarithms of values near 1, and a ratio instead of a difference of large logarithms, preserve all digits.
    let front = gamma_ratio(a) / PI.sqrt() * (-a * (t * t / df).ln_1p()).exp() * near.sqrt();
    // The fraction converges fast only on one side. The other side is its mirror image.
    if far < (a + 1.0) / (a + 2.5) {
        front * beta_fraction(a, 0.5, far) / a
    } else {
        1.0 - front * beta_fraction(0.5, a, near) / 0.5
    }
}

fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    let mut above = 1.0;
    let mut below = 1.0 / nonzero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = below;
    // The number of steps is about the square root of the larger argument. 500 are enough for 100,000 degrees of
    // freedom.
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
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    fraction
}

/// Lentz's method divides by values that may be zero. These values are replaced.
fn nonzero(value: f64) -> f64 {
    if value.abs() < 1e-300 { 1e-300 } else { value }
}

/// Γ(`x` + 1/2) / Γ(`x`) for any positive `x`, with a relative error of about 1e-15.
fn gamma_ratio(x: f64) -> f64 {
    // The series is for large arguments. Each step raises a smaller argument by one.
    let mut x = x;
    let mut factor = 1.0;
    while x < 20.0 {
        factor *= x / (x + 0.5);
        x += 1.0;
    }
    let r = 1.0 / (x * x);
    let series = 1.0 / 8.0
        - r * (1.0 / 192.0 - r * (1.0 / 640.0 - r * (17.0 / 14_336.0 - r * 31.0 / 18_432.0)));
    factor * x.sqrt() * (-series / x).exp()
}
