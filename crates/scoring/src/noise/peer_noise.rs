//! The usual noise of the models in a snapshot, for models with little history.
//!
//! Models are peers if their rounds have the same length. The medians of the peers, which do not depend on a few unusual models,
//! are averaged with the model's own noise. This noise is included from the model's second round on. A model with enough rounds is
//! not affected.

use super::round_noise::{RoundNoise, ratio, share_of_mean};
use crate::{
    method,
    round_length::RoundLength,
    statistics::{Spread, median},
};

/// Number of scores that have separate noise: the measures, then the axes.
pub const PARTS: usize = 12;

/// The noise of a score, in two numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TypicalNoise {
    /// The variance of a round.
    pub single: f64,
    /// The long-run variance of a round: the variance of a daily mean, scaled as if the day's rounds were independent.
    pub long_run: f64,
}

/// The noise of one model's scores.
#[derive(Clone, Copy, Debug)]
pub struct ModelNoise {
    /// The length of the model's rounds.
    pub length: RoundLength,
    /// The noise of each score; `None` if there are too few rounds.
    pub parts: [Option<TypicalNoise>; PARTS],
}

/// The usual noise of the peers, for each round length.
#[derive(Clone, Debug)]
pub struct PeerNoise {
    usual: [ModelNoise; 8],
}

impl TypicalNoise {
    /// The noise of these rounds. The variance of a round is at least `least`.
    pub(crate) fn of(noise: &RoundNoise, least: f64) -> Self {
        let long_run = noise.of_mean(method::NOISE_BLOCK).variance * ratio(method::NOISE_BLOCK, 1);
        Self {
            single: noise.of_mean(1).variance.max(least),
            long_run: long_run.max(least),
        }
    }

    /// The variance of the mean of `rounds` consecutive rounds, as in an autoregression with these two variances.
    pub(crate) fn of_mean(self, rounds: usize) -> f64 {
        self.single * share_of_mean(self.correlation(), rounds)
    }

    /// This noise, which was measured on `rounds` rounds, with the correlation increased by a multiple of its standard error.
    pub(crate) fn cautious(self, rounds: usize) -> Self {
        let measured = self.correlation();
        let error = ((1.0 - measured * measured) * ratio(1, rounds)).sqrt();
        let correlation = (measured + method::CHANGE_CORRELATION_ERRORS * error)
            .min(method::NOISE_CORRELATION_MOST);
        Self {
            long_run: self.single * (1.0 + correlation) / (1.0 - correlation),
            ..self
        }
    }

    fn correlation(self) -> f64 {
        let share = self.long_run / self.single;
        ((share - 1.0) / (share + 1.0)).clamp(0.0, method::NOISE_CORRELATION_MOST)
    }

    /// The noise of the mean of `rounds` rounds of a model with these peers.
    pub(crate) fn combined(self, own: Option<Spread>, rounds: usize, least: f64) -> Spread {
        let own_df = own.map_or(0.0, |own| own.df);
        let peers_df = method::PEERS_FREEDOM * (1.0 - own_df / method::PEERS_FREEDOM_ENDS);
        let peers = || self.of_mean(rounds).max(least);
        match own {
            None => Spread {
                variance: peers(),
                df: peers_df,
            },
            Some(own) if peers_df <= 0.0 => own,
            Some(own) => {
                let df = own.df + peers_df;
                let sum = own.df * own.variance.max(least) + peers_df * peers();
                Spread {
                    variance: sum / df,
                    df,
                }
            }
        }
    }
}

impl PeerNoise {
    /// Determines the peers' noise from these models.
    pub(crate) fn among(models: impl Iterator<Item = ModelNoise>) -> Self {
        let models: Vec<ModelNoise> = models.collect();
        let usual = method::ROUND_HOURS.map(RoundLength::of).map(|length| {
            let mut usual = ModelNoise {
                length,
                parts: [None; PARTS],
            };
            for (index, part) in usual.parts.iter_mut().enumerate() {
                let peers = models.iter().filter(|model| model.length == length);
                let known: Vec<TypicalNoise> =
                    peers.filter_map(|model| *model.parts.get(index)?).collect();
                *part = usual_noise(&known);
            }
            usual
        });
        Self { usual }
    }

    /// The usual noise of a score with rounds of this length; `None` if there are too few peers.
    pub(crate) fn of(&self, length: RoundLength, part: usize) -> Option<TypicalNoise> {
        *self
            .usual
            .iter()
            .find(|usual| usual.length == length)?
            .parts
            .get(part)?
    }
}

fn usual_noise(known: &[TypicalNoise]) -> Option<TypicalNoise> {
    let usual = |of: fn(&TypicalNoise) -> f64| median(&known.iter().map(of).collect::<Vec<f64>>());
    let enough = known.len() >= method::PEERS_LEAST;
    let usual = TypicalNoise {
        single: usual(|noise| noise.single)?,
        long_run: usual(|noise| noise.long_run)?,
    };
    enough.then_some(usual)
}
