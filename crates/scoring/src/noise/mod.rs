//! The noise of scores and rounds, against which every change is tested.

pub mod cycle;
pub mod outliers;
pub mod peer_noise;
pub mod round_noise;
pub mod score_residuals;
