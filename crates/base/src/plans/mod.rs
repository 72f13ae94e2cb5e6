//! Tiers: what a plan may request, which fields it sees, and how often.
//!
//! Pure. Which tier an application has is in `store`; rights are checked in `gateway::resolve`.

mod field_sets;
mod rights;
mod tier;

pub use field_sets::{FieldPaths, FieldSetIndex, FieldSets, MOST_FIELD_SETS};
pub use rights::{MissingRight, PeriodSet, Rights};
pub use tier::{Tier, TierIndex, TierLimits, standard_tiers};
