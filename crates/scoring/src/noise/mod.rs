//! The noise of scores and rounds, with which every test of a change is compared.

pub(super) mod cycle;
pub(super) mod outliers;
pub(super) mod peer_noise;
pub(super) mod round_noise;
pub(super) mod score_residuals;
