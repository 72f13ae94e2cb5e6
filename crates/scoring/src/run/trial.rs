//! A trial.

use crate::suite::Axis;

use super::{BadRun, bad_run::check_amount};

/// One attempt at a task: scores on the axes of its suite, and latency and cost if measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    scores: [Option<f64>; 7],
    latency_ms: Option<f64>,
    cost: Option<f64>,
}

impl Trial {
    /// A trial with a score on every axis, in the order of [`Axis::ALL`], each from 0 to 1.
    pub fn new(
        scores: [f64; 7],
        latency_ms: impl Into<Option<f64>>,
        cost: impl Into<Option<f64>>,
    ) -> Result<Self, BadRun> {
        Self::on_axes(scores.map(Some), latency_ms.into(), cost.into())
    }

    /// A trial with scores on some axes.
    pub fn on_axes(
        scores: [Option<f64>; 7],
        latency_ms: Option<f64>,
        cost: Option<f64>,
    ) -> Result<Self, BadRun> {
        for (axis, score) in Axis::ALL.into_iter().zip(scores) {
            // `contains` is false for NaN, which must be rejected too.
            if let Some(score) = score.filter(|score| !(0.0..=1.0).contains(score)) {
                let problem = format!("{score} is not a score; write a number from 0 to 1");
                return Err(BadRun::new(format!("scores.{}", axis.word()), problem));
            }
        }
        for (field, amount) in [("latencyMs", latency_ms), ("cost", cost)] {
            let checked = amount.map_or(Ok(()), check_amount);
            checked.map_err(|problem| BadRun::new(field, problem))?;
        }
        Ok(Self {
            scores,
            latency_ms,
            cost,
        })
    }

    /// The scores, in the order of [`Axis::ALL`].
    pub fn scores(&self) -> &[Option<f64>; 7] {
        &self.scores
    }

    /// The latency in milliseconds.
    pub fn latency_ms(&self) -> Option<f64> {
        self.latency_ms
    }

    /// The cost in US dollars.
    pub fn cost(&self) -> Option<f64> {
        self.cost
    }
}
