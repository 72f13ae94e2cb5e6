//! The simulator: benchmark runs that are generated from a seed, for the models of a catalogue.

mod catalogue;
mod sample_runs;

pub use sample_runs::models;
pub use sample_runs::sample_runs;
#[cfg(any(test, feature = "lab"))]
pub use sample_runs::{Simulated, SplitMix64, identified, models_named};
