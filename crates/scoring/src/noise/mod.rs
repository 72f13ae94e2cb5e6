//! The noise of scores and rounds, against which every change is tested.

pub(super) mod cycle;
pub(super) mod outliers;
pub(super) mod peer_noise;
pub(super) mod round_noise;
pub(super) mod score_residuals;
