//! Addresses in refusals: where a caller without a key can sign up, and where larger plans are available.

use http::{HeaderValue, StatusCode};

use crate::{gateway::Refusal, pages::SiteLinks};
use scoregate_base::{
    limits::{LimitRule, LimitStatus},
    plans::{Tier, TierLimits},
    routes::bodies::{SIGN_UP, UPGRADE},
};

/// The configured addresses.
#[derive(Clone, Debug, Default)]
pub struct RemedyLinks {
    root: String,
    sign_up: Option<RemedyLink>,
    upgrade: Option<RemedyLink>,
    /// The limits of each tier and the address where it can be bought, by the index of the tier.
    plans: Vec<Option<(TierLimits, RemedyLink)>>,
}

/// An address, and the member of the body that contains it.
#[derive(Clone, Debug)]
pub struct RemedyLink {
    pub(crate) member: &'static str,
    pub(crate) url: String,
    /// The value of `Link`, including the deprecation link.
    pub(crate) header: HeaderValue,
}

impl RemedyLink {
    /// Returns `None` if the address is not a valid header value.
    fn new(member: &'static str, url: String, relation: &str, other: &str) -> Option<Self> {
        let header = HeaderValue::try_from(format!("<{url}>; rel=\"{relation}\"{other}")).ok()?;
        Some(Self {
            member,
            url,
            header,
        })
    }
}

impl RemedyLinks {
    /// Creates the links from the public address of the service without a path (empty if unknown), the URLs for sign-up and for
    /// larger plans, and the link that every response contains.
    pub fn new(
        root: &str,
        sign_up: Option<String>,
        links: &SiteLinks,
        tiers: &[Tier],
        of_every_response: Option<&HeaderValue>,
    ) -> Self {
        let other = match of_every_response.and_then(|link| link.to_str().ok()) {
            Some(link) => format!(", {link}"),
            None => String::new(),
        };
        let payment = |url: String| RemedyLink::new(UPGRADE, url, "payment", &other);
        Self {
            plans: tiers
                .iter()
                .map(|tier| {
                    let (_, url) = links.plans.iter().find(|(name, _)| *name == tier.name)?;
                    Some((tier.limits, payment(url.clone())?))
                })
                .collect(),
            root: root.to_owned(),
            sign_up: sign_up.and_then(|url| RemedyLink::new(SIGN_UP, url, "help", &other)),
            upgrade: links.upgrade_url.clone().and_then(payment),
        }
    }

    /// The public address of the service without a path. Empty if unknown.
    pub fn root(&self) -> &str {
        &self.root
    }

    /// The address that helps a caller with this refusal, if known: the sign-up page, the plan that the refusal names,
    /// or the plan with the next higher limit.
    pub(crate) fn of(&self, refusal: &Refusal, limited: &LimitStatus) -> Option<&RemedyLink> {
        if refusal.code().row().status == StatusCode::UNAUTHORIZED {
            return self.sign_up.as_ref();
        }
        let plan = if let Refusal::PlanRequired(gap) = refusal {
            gap.place()
                .and_then(|place| self.plans.get(place)?.as_ref())
        } else {
            let rule = refusal.rule().filter(|rule| *rule != LimitRule::Guard)?;
            let quota = |limits: &TierLimits| {
                if rule == LimitRule::Minute {
                    limits.minute
                } else {
                    limits.day
                }
            };
            let plans = self.plans.iter().flatten();
            plans
                .filter(|(limits, _)| quota(limits) > limited.limit)
                .min_by_key(|(limits, _)| limits.day)
        };
        plan.map(|(_, link)| link).or(self.upgrade.as_ref())
    }
}
