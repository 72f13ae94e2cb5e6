//! Comparisons between models: how sure their order is.

pub(super) mod differences;
mod joint_tail;
pub(super) mod parallel;
pub(super) mod rank_bounds;
