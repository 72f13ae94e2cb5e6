//! An application, its secrets, its tier: how a key is written, what is kept of it, and what a tier may have.
//!
//! Pure. Not for: where keys are kept (`store`), nor who is asking right now (`gateway::authenticate`).

mod digest;
mod form;
mod ids;
mod tier;

pub use digest::Digest;
pub use form::{KeyForm, SHOWN_CHARACTERS, shown_prefix};
pub use ids::{ApplicationId, BadId};
pub use tier::{PaidRights, Rights, Tier, TierIndex, TierLimits, standard_tiers};

/// The digits of keys and identifiers.
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
