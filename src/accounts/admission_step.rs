//! The step that follows a verdict on a request. Only this module interprets verdicts.

use std::time::Duration;

use scoregate_base::{
    clock::Day,
    limits::{AdmissionVerdict, LeaseAvailability, LimitRule},
};

/// The next step after a verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdmissionStep {
    /// Admission ends.
    End(AdmissionEnd),
    /// More units or tokens are leased, and then the decision is repeated.
    Lease,
    /// Units of grace are reserved, and then the decision is repeated.
    Reserve,
    /// The decision is repeated with the units that may be used without the ledger.
    WithoutLedger,
}

/// The end of admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionEnd {
    /// A token is taken and a unit of the day is held.
    Hold {
        /// The day of the unit.
        day: Day,
        /// The supply after this unit.
        supply: UnitSupply,
    },
    /// A token is taken, and no unit is available.
    Revalidate(Shortage),
    /// Nothing is taken.
    Refuse(Shortage),
}

/// The supply of units after an admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitSupply {
    /// Enough.
    Sufficient,
    /// More units should be leased now.
    Low,
    /// The ledger is unreachable, and the unit is a grace unit.
    Grace,
}

/// The reason why no unit or token is available.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shortage {
    /// This limit is exhausted.
    Limit(LimitRule),
    /// The ledger is unreachable, and no unit is available.
    Units,
    /// The ledger is unreachable, and this gateway has no token left for the minute.
    Token {
        /// Time until the gateway's next token.
        wait: Duration,
    },
}

impl AdmissionStep {
    pub fn of(verdict: AdmissionVerdict, ledger: LeaseAvailability, is_unreachable: bool) -> Self {
        Self::End(match verdict {
            AdmissionVerdict::Admitted { day, runs_low } => {
                let supply = if runs_low {
                    UnitSupply::Low
                } else {
                    UnitSupply::Sufficient
                };
                AdmissionEnd::Hold { day, supply }
            }
            AdmissionVerdict::OnGrace { day } => AdmissionEnd::Hold {
                day,
                supply: UnitSupply::Grace,
            },
            AdmissionVerdict::RevalidateOnly(rule) => {
                AdmissionEnd::Revalidate(Shortage::Limit(rule))
            }
            AdmissionVerdict::RevalidateWithoutUnits => AdmissionEnd::Revalidate(Shortage::Units),
            // This gateway's tokens may be used up before the limit is reached.
            AdmissionVerdict::Refused(LimitRule::Minute)
                if ledger == LeaseAvailability::Reachable && is_unreachable =>
            {
                return Self::WithoutLedger;
            }
            AdmissionVerdict::Refused(rule) => AdmissionEnd::Refuse(Shortage::Limit(rule)),
            AdmissionVerdict::NoToken { wait } => AdmissionEnd::Refuse(Shortage::Token { wait }),
            AdmissionVerdict::NoUnits => AdmissionEnd::Refuse(Shortage::Units),
            AdmissionVerdict::LeaseFirst => return Self::Lease,
            AdmissionVerdict::ReserveFirst => return Self::Reserve,
        })
    }
}
