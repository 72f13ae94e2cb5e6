//! Tiers: what a plan may ask and how much of it. The five of the specification are the default.
//!
//! Rights are a type, not a flag: what only paid callers may see can be named only with a [`PaidRights`] in hand, and
//! only a tier gives one out.

/// How much a tier may ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TierLimits {
    /// Requests a minute.
    pub minute: u32,
    /// Requests a UTC day.
    pub day: u32,
}

/// A plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tier {
    /// Its name, as in keys, logs and metrics.
    pub name: String,
    /// What it may ask.
    pub rights: Rights,
    /// How much of it.
    pub limits: TierLimits,
}

/// A tier's place among the configured ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TierIndex(pub usize);

/// What a caller may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rights {
    /// The period `latest` is refused, `latestScore` is left out.
    Free,
    /// Everything.
    Paid(PaidRights),
}

/// The proof that a caller may see everything. Only [`Rights::paid`] makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PaidRights(());

impl Rights {
    /// The rights of a tier that is paid for.
    pub const fn paid() -> Self {
        Self::Paid(PaidRights(()))
    }

    /// Whether the tier is paid for.
    pub const fn is_paid(self) -> bool {
        matches!(self, Self::Paid(_))
    }
}

/// The five tiers of the specification.
pub fn standard_tiers() -> Vec<Tier> {
    let tier = |name: &str, rights, minute, day| Tier {
        name: name.into(),
        rights,
        limits: TierLimits { minute, day },
    };
    vec![
        tier("free", Rights::Free, 1, 10),
        tier("pro", Rights::paid(), 60, 10_000),
        tier("developer", Rights::paid(), 120, 25_000),
        tier("teams", Rights::paid(), 300, 100_000),
        tier("enterprise", Rights::paid(), 1_000, 250_000),
    ]
}
