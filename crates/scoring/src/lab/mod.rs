//! Simulations for benchmarks and tests: how well the detectors perform compared with the statements in `method`.

pub mod detection;
pub(super) mod measured_runs;
pub(super) mod simulated_load;
pub mod simulated_noise;
