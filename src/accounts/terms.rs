//! The terms of an application: rights, limits and prepared headers, built once per configured tier. Remaining
//! allowances are in `account`.

use std::sync::Arc;

use http::HeaderValue;

use scoregate_base::{
    clock::Day,
    limits::{CalendarQuota, LimitRule, LimitStatus, Limits, OwnLimits, Scope},
    plans::{Rights, Tier, TierIndex},
};
use scoregate_store::{AssumedTerms, NoticeTier, notice_kinds};

/// The terms of an application, shared by all applications of a tier without individual limits.
#[derive(Debug)]
pub struct Terms {
    /// Index of the tier.
    pub tier: TierIndex,
    /// Name of the tier.
    pub tier_name: Arc<str>,
    /// Limits that override the limits of the tier.
    pub own: OwnLimits,
    /// The entitlements of the application.
    pub rights: Rights,
    /// The request limits.
    pub limits: Limits,
    /// The `RateLimit-Policy` header for the minute and day limits.
    pub policy: HeaderValue,
}

/// The terms of every configured tier.
#[derive(Debug)]
pub struct TermsByTier {
    each: Vec<Arc<Terms>>,
}

impl TermsByTier {
    /// The terms of these tiers with this guard limit.
    pub fn new(tiers: &[Tier], guard: u32) -> Self {
        for warning in tiers.iter().flat_map(Tier::warnings) {
            tracing::warn!("{warning}");
        }
        Self {
            each: tiers
                .iter()
                .enumerate()
                .map(|(index, tier)| {
                    let limits = Limits {
                        minute: tier.limits.minute,
                        day: tier.limits.day,
                        guard,
                        grace: grace(tier.rights, tier.limits.day),
                        calendar: tier.limits.calendar,
                    };
                    let own = OwnLimits::NONE;
                    Arc::new(Terms::new(
                        TierIndex(index),
                        tier.name.as_str().into(),
                        own,
                        tier.rights,
                        limits,
                    ))
                })
                .collect(),
        }
    }

    /// The terms of an application: the terms of its tier, unless it has individual limits. `None` if the tier is
    /// unknown.
    pub fn of(&self, tier: &str, own: OwnLimits) -> Option<Arc<Terms>> {
        let common = self.each.iter().find(|terms| *terms.tier_name == *tier)?;
        if own.is_empty() {
            return Some(Arc::clone(common));
        }
        let mut limits = own.over(common.limits);
        limits.grace = grace(common.rights, limits.day);
        Some(Arc::new(Terms::new(
            common.tier,
            Arc::clone(&common.tier_name),
            own,
            common.rights,
            limits,
        )))
    }

    /// The tiers and whether they are paid, which determines the default notices to owners.
    pub(crate) fn notice_tiers(&self) -> Vec<NoticeTier> {
        self.each
            .iter()
            .map(|terms| NoticeTier {
                name: Arc::clone(&terms.tier_name),
                limits: terms.limits,
                defaults: notice_kinds(|row| row.by_default && terms.rights.is_paid()),
            })
            .collect()
    }

    /// The names of the tiers.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.each.iter().map(|terms| &*terms.tier_name)
    }
}

/// Units that may be delivered without a lease while the ledger is unreachable: one hundredth of the daily quota of a
/// paid tier. If several gateways use one ledger, each gets a share.
fn grace(rights: Rights, day: u32) -> u32 {
    if rights.is_paid() { day / 100 } else { 0 }
}

impl Terms {
    fn new(
        tier: TierIndex,
        tier_name: Arc<str>,
        own: OwnLimits,
        rights: Rights,
        limits: Limits,
    ) -> Self {
        let policy = format!(
            "\"{}\";q={};w=60, \"{}\";q={};w=86400",
            LimitRule::Minute.name(),
            limits.minute,
            LimitRule::Day.name(),
            limits.day
        );
        let policy =
            HeaderValue::try_from(policy).expect("rule names and numbers are visible ASCII");
        Self {
            tier,
            tier_name,
            own,
            rights,
            limits,
            policy,
        }
    }

    /// The `RateLimit-Policy` header for a day, with the windows that contain the day. Windows of the same kind differ
    /// in length. An owner's limit is in force only if `known` contains its status.
    pub(crate) fn policy_on(&self, day: Day, known: &[LimitStatus]) -> HeaderValue {
        let mut policy = self.policy.as_bytes().to_vec();
        for CalendarQuota { window, quota } in self.limits.calendar.around(day) {
            let is_known = known.iter().any(|status| status.rule == window.rule);
            if window.rule.row().scope == Scope::Owner && !is_known {
                continue;
            }
            let name = window.rule.name();
            let part = format!(", \"{name}\";q={quota};w={}", window.seconds());
            policy.extend(part.into_bytes());
        }
        HeaderValue::try_from(policy).expect("rule names and numbers are visible ASCII")
    }

    /// The terms that reports to the ledger assume.
    pub(crate) fn assumed(&self) -> AssumedTerms {
        AssumedTerms {
            tier: Arc::clone(&self.tier_name),
            own: self.own,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::accounts::terms::*;
    use scoregate_base::plans::standard_tiers;

    #[test]
    fn policy_header_lists_both_limits() {
        let terms = TermsByTier::new(&standard_tiers(), 60)
            .of("pro", OwnLimits::NONE)
            .unwrap();
        assert_eq!(
            terms.policy,
            "\"minute\";q=60;w=60, \"day\";q=10000;w=86400"
        );
    }
}
