//! The simulator: benchmark runs that are generated from a seed, for the models of a catalogue.

mod catalogue;
mod sample_runs;

pub(crate) use sample_runs::models;
pub use sample_runs::sample_runs;
#[cfg(any(test, feature = "lab"))]
pub(crate) use sample_runs::{Simulated, SplitMix64, identified, models_named};
