//! Tiers: a plan's rights, visible fields and limits.
//!
//! The code is pure. `store` has the tiers of applications. `gateway::stages::resolve` checks rights.

mod field_sets;
mod rights;
mod tier;

pub use field_sets::{FieldPaths, FieldSetIndex, FieldSets, MOST_FIELD_SETS};
pub use rights::{DEEP, MissingRight, PeriodSet, Rights};
pub use tier::{Tier, TierIndex, TierLimits, standard_tiers};
