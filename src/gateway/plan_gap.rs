//! A right that the caller's tier lacks: the error code, the message, and a tier that has the right.

use scoregate_base::{
    plans::{MissingRight, PeriodSet, Rights, Tier},
    routes::{AllowedValues, DocumentKey, Param, Period, codes::ErrorCode},
};

/// The right that a tier lacks for a document. The type owns no heap memory, so refusals own none either, and a hit has
/// nothing to free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanGap {
    missing: MissingRight,
    /// Whether the endpoint is defined in the settings.
    is_configured: bool,
    /// The periods that the caller may request.
    allowed: PeriodSet,
    /// The index of a tier with the right.
    tier: Option<u16>,
}

impl PlanGap {
    /// The right that is missing for a document, if any. Of the tiers that have this right, the tier with the smallest
    /// daily quota is suggested.
    pub(super) fn of(key: &DocumentKey, rights: Rights, tiers: &[Tier]) -> Option<Self> {
        let missing = rights.missing(key)?;
        let with_it = (0..)
            .zip(tiers)
            .filter(|(_, tier)| tier.rights.missing(key).is_none());
        let tier = with_it
            .min_by_key(|(_, tier)| tier.limits.day)
            .map(|(place, _)| place);
        Some(Self {
            missing,
            is_configured: key.route.is_configured(),
            allowed: rights.periods_of(key.route),
            tier,
        })
    }

    /// The error code. The period `latest` of the endpoints in the specification has a separate code.
    pub(super) fn code(self) -> ErrorCode {
        let is_latest = self.missing == MissingRight::Period(Period::Latest) && !self.is_configured;
        if is_latest {
            ErrorCode::LatestRequiresPlan
        } else {
            ErrorCode::PlanRequired
        }
    }

    /// The name of the tier that has the right.
    fn tier(self, tiers: &[Tier]) -> Option<&str> {
        tiers.get(self.place()?).map(|tier| &*tier.name)
    }

    /// The index of the tier.
    pub(super) fn place(self) -> Option<usize> {
        self.tier.map(usize::from)
    }

    /// The name of the tier, for a separate member of the body.
    pub(super) fn tier_field(self, tiers: &[Tier]) -> Option<&str> {
        self.tier(tiers)
            .filter(|_| self.code() == ErrorCode::PlanRequired)
    }

    /// The refused parameter, and the values that this caller may use.
    pub(super) fn param(self) -> Option<(Param, AllowedValues)> {
        let is_period = self.missing != MissingRight::Endpoint;
        is_period.then(|| (Param::Period, allowed(Param::Period, self.allowed)))
    }

    /// The message for the caller.
    pub(super) fn message(self, tiers: &[Tier]) -> String {
        let right = match self.missing {
            MissingRight::Endpoint => "this endpoint".to_owned(),
            MissingRight::Period(period) => {
                format!("the period `{}` of this endpoint", period.word())
            }
        };
        let tier = self
            .tier(tiers)
            .into_iter()
            .map(|tier| format!("Move to the tier `{tier}`, which has this right. "));
        let periods = self
            .param()
            .map(|(_, allowed)| format!("Allowed periods: {allowed}. "));
        let way_out: String = tier.chain(periods).collect();
        format!("{way_out}The tier of this key may not request {right}.")
    }
}

/// The allowed values of a parameter, for a caller with these periods.
pub fn allowed(param: Param, periods: PeriodSet) -> AllowedValues {
    if param == Param::Period {
        return AllowedValues::Words(periods.iter().map(Period::word).collect());
    }
    param.allowed()
}
