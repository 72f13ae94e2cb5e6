//! Comparisons between models: how certain their order is.

pub(super) mod differences;
mod joint_tail;
pub(super) mod parallel;
pub(super) mod rank_bounds;
