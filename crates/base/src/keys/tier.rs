//! Tiers: the rights and limits of a plan. The five of the specification are the default.
//!
//! Rights are a type, not a flag: data for paid callers requires a [`PaidRights`], which only a tier provides.

/// Limits of a tier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TierLimits {
    /// Requests per minute.
    pub minute: u32,
    /// Requests per UTC day.
    pub day: u32,
}

/// A plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tier {
    /// Its name, as in keys, logs and metrics.
    pub name: String,
    /// Its entitlements.
    pub rights: Rights,
    /// How many requests it may make.
    pub limits: TierLimits,
}

/// Index of a tier among the configured ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TierIndex(pub usize);

/// Entitlements of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rights {
    /// `latest` is refused and `latestScore` is omitted.
    Free,
    /// Everything.
    Paid(PaidRights),
}

/// Proof that a caller may see everything. Only [`Rights::paid`] creates one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PaidRights(());

impl Rights {
    /// The rights of a paid tier.
    pub const fn paid() -> Self {
        Self::Paid(PaidRights(()))
    }

    /// Whether the tier is paid.
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
