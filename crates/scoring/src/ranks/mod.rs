//! Comparisons between models: how certain their order is.

pub mod differences;
mod joint_tail;
pub mod parallel;
pub mod rank_bounds;
