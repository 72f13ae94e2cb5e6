//! Tiers: what a plan may request, which fields it sees, and how often.
//!
//! Pure. Which tier an application has is in `store`; rights are checked in `gateway::resolve`.

mod tier;

pub use tier::{PaidRights, Rights, Tier, TierIndex, TierLimits, standard_tiers};
