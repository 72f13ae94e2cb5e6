//! Drift of one model: its signature, and the Page-Hinkley statistic.

mod page_hinkley;
mod signature;

pub use signature::{DriftResult, DriftState, watch};
