//! Drift of one model: its signature, and the Page-Hinkley statistic.

mod page_hinkley;
mod signature;

#[cfg(test)]
pub(crate) use page_hinkley::{PageHinkley, PageHinkleyParameters};
pub(crate) use signature::{DriftResult, DriftState, watch};
