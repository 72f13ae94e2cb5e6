//! Simulations for benches and tests: how well the detectors keep what `method` promises.

pub mod detection;
pub(super) mod measured_runs;
pub(super) mod simulated_load;
pub mod simulated_noise;
