//! The noise of scores and rounds, which every test of a change is measured against.

pub(super) mod cycle;
pub(super) mod outliers;
pub(super) mod peer_noise;
pub(super) mod round_noise;
pub(super) mod score_residuals;
