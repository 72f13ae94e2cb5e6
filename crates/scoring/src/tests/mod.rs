//! Checks real responses against the guarantees of the backend: fields, intervals, determinism, refreshes.

mod dump;
mod failures;
mod few_rounds;
mod fixtures;
mod held_levels;
mod incident_scan;
mod meaning;
mod properties;
mod ranks;
mod reference;
mod responses;
mod simulated;
mod stated;
mod suites;
