//! What an application may ask, made ready once for each configured tier. Not for: what it has left (`account`).

use std::sync::Arc;

use http::HeaderValue;

use crate::keys::{Rights, Tier, TierIndex};
use crate::limits::{LimitRule, Limits};
use crate::store::OwnLimits;

/// What an application may ask: shared by all applications of a tier that have no limits of their own.
#[derive(Debug)]
pub struct Terms {
    /// The place of its tier among the configured ones.
    pub tier: TierIndex,
    /// The tier's name.
    pub tier_name: String,
    /// What it may see.
    pub rights: Rights,
    /// How much of it.
    pub limits: Limits,
    /// The `RateLimit-Policy` header.
    pub policy: HeaderValue,
}

/// The terms of each configured tier.
#[derive(Debug)]
pub struct TermsByTier {
    each: Vec<Arc<Terms>>,
}

impl TermsByTier {
    /// The terms of these tiers, under this guard.
    pub fn new(tiers: &[Tier], guard: u32) -> Self {
        let make = |(index, tier): (usize, &Tier)| {
            let limits = Limits {
                minute: tier.limits.minute,
                day: tier.limits.day,
                guard,
                grace: grace(tier.rights, tier.limits.day),
            };
            Arc::new(Terms::new(TierIndex(index), tier.name.clone(), tier.rights, limits))
        };
        Self { each: tiers.iter().enumerate().map(make).collect() }
    }

    /// The terms of an application: its tier's own, unless it has limits of its own. `None` if there is no such tier.
    pub fn of(&self, tier: &str, own: OwnLimits) -> Option<Arc<Terms>> {
        let common = self.each.iter().find(|terms| terms.tier_name == tier)?;
        if own == OwnLimits::default() {
            return Some(Arc::clone(common));
        }
        let day = own.day.unwrap_or(common.limits.day);
        let limits = Limits {
            minute: own.minute.unwrap_or(common.limits.minute),
            day,
            guard: common.limits.guard,
            grace: grace(common.rights, day),
        };
        Some(Arc::new(Terms::new(common.tier, common.tier_name.clone(), common.rights, limits)))
    }

    /// The names of the tiers.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.each.iter().map(|terms| terms.tier_name.as_str())
    }
}

/// What may be delivered before it is leased while the ledger is away: a hundredth of a day that is paid for. With
/// several gateways on one ledger each would get its part of that.
fn grace(rights: Rights, day: u32) -> u32 {
    if rights.is_paid() { day / 100 } else { 0 }
}

impl Terms {
    fn new(tier: TierIndex, tier_name: String, rights: Rights, limits: Limits) -> Self {
        let part = |rule: LimitRule, quota: u32| {
            format!("\"{}\";q={quota};w={}", rule.name(), rule.window_seconds())
        };
        let policy =
            format!("{}, {}", part(LimitRule::Minute, limits.minute), part(LimitRule::Day, limits.day));
        let policy = HeaderValue::try_from(policy).expect("rule names and numbers are visible ASCII");
        Self { tier, tier_name, rights, limits, policy }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::standard_tiers;

    #[test]
    fn the_policy_header_says_both_limits() {
        let terms = TermsByTier::new(&standard_tiers(), 60).of("pro", OwnLimits::default()).unwrap();
        assert_eq!(terms.policy, "\"minute\";q=60;w=60, \"day\";q=10000;w=86400");
    }
}
