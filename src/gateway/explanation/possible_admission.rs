//! The possible outcomes of the admission of a request. There is only one unless the request has to wait for the
//! ledger.

use crate::{
    accounts::{AdmissionEnd, AdmissionStep, Shortage},
    gateway::stages::{admit::decide, authenticate::Caller},
    quota::Leases,
};
use scoregate_base::{
    clock::Now,
    limits::{LeaseAvailability, LimitRule},
};

/// A possible outcome of admission.
#[derive(Debug)]
pub struct PossibleAdmission {
    /// The condition under which this outcome occurs; empty if there is none.
    pub condition: &'static str,
    /// The caller, with a copy of the account after admission.
    pub caller: Caller,
    pub end: AdmissionEnd,
}

const GRANTED: &str = "the ledger grants units";
const UNREACHABLE: &str = "the ledger does not answer";
const RESERVED: &str = "the ledger does not answer, and grace units are reserved";
const SHARED: &str = "other gateways use the remaining units";

impl PossibleAdmission {
    /// All outcomes, starting with the one in which the ledger answers. No unit or token is taken.
    pub fn all(leases: &Leases, caller: &Caller, conditional: bool, now: Now) -> Vec<Self> {
        let reachable = LeaseAvailability::Reachable;
        let mut undecided = vec![("", leases.gateways(), caller.on_a_copy(), reachable)];
        let mut ends = Vec::new();
        let mut refused = Vec::new();
        while let Some((condition, sharing, caller, ledger)) = undecided.pop() {
            let step = decide(leases, sharing, &caller, conditional, now, ledger);
            let without_ledger = leases.without_ledger(&caller.account);
            match step {
                AdmissionStep::End(end) => ends.push(Self {
                    condition,
                    caller,
                    end,
                }),
                AdmissionStep::WithoutLedger => {
                    undecided.push((condition, sharing, caller, without_ledger));
                }
                AdmissionStep::Lease if condition == GRANTED => {}
                AdmissionStep::Lease => {
                    if sharing.is_some() {
                        refused.extend(Self::all_refused(&caller));
                    }
                    let granted = caller.on_a_copy();
                    granted.account.lease_in_full(now.wall.day());
                    undecided.push((UNREACHABLE, sharing, caller, without_ledger));
                    // Only the ledger has the number of tokens that other gateways leave unused. This outcome assumes that other
                    // gateways use no tokens.
                    undecided.push((GRANTED, None, granted, reachable));
                }
                AdmissionStep::Reserve => {
                    let (without, with) = reservations(&caller, ledger);
                    undecided.push((UNREACHABLE, sharing, caller, without));
                    undecided.push((RESERVED, sharing, with, ledger));
                }
            }
        }
        ends.append(&mut refused);
        ends
    }

    /// The possible refusals if other gateways use the remaining tokens and units.
    fn all_refused(caller: &Caller) -> [Self; 2] {
        [LimitRule::Minute, LimitRule::Day].map(|rule| Self {
            condition: SHARED,
            caller: caller.on_a_copy(),
            end: AdmissionEnd::Refuse(Shortage::Limit(rule)),
        })
    }
}

/// The ledger state for the outcome without reserved grace units, and the caller for the outcome with all grace units reserved.
fn reservations(caller: &Caller, ledger: LeaseAvailability) -> (LeaseAvailability, Caller) {
    let reserved = caller.on_a_copy();
    let without = match ledger {
        LeaseAvailability::Reachable => ledger,
        LeaseAvailability::Unreachable { grace, since } => {
            reserved.account.reserve_in_full(grace);
            LeaseAvailability::Unreachable { grace: 0, since }
        }
    };
    (without, reserved)
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;
    use std::sync::Arc;
    use std::time::Duration;

    use tempfile::TempDir;

    use super::*;
    use crate::accounts::{KeyDirectory, TermsByTier, UnitSupply, stored};
    use crate::instruments::LedgerInstruments;
    use crate::quota::LedgerCalls;
    use scoregate_base::clock::{Clock, Wall};
    use scoregate_base::keys::Digest;
    use scoregate_base::plans::standard_tiers;
    use scoregate_observe::telemetry::metrics::MetricsRegistry;
    use scoregate_store::Store;

    #[test]
    fn without_units_the_ledger_decides_and_with_several_gateways_it_may_refuse() {
        let directory = TempDir::new().unwrap();
        let keys = KeyDirectory::default();
        let (clock, _) = Clock::manual(Wall::from_seconds(1_763_726_400));
        let now = clock.now();
        let digest = Digest::of("a key");
        let terms = TermsByTier::new(&standard_tiers(), 60);
        assert!(keys.apply(&stored("pro", &["a key"]), &terms, now.wall.day()));
        let caller = Caller::new(keys.find(&digest).unwrap(), &digest);
        let instruments = LedgerInstruments::new(&MetricsRegistry::default());
        let instruments = Arc::new(instruments);
        let ledger = Arc::new(Store::open(directory.path()).unwrap());
        let calls = || {
            LedgerCalls::new(
                ledger.clone(),
                1,
                Box::new(drop),
                clock.clone(),
                Arc::clone(&instruments),
            )
        };
        let alone = Leases::of(calls());
        let among_three =
            Leases::of(calls().shared(NonZeroU32::new(3).unwrap(), Duration::from_secs(1)));
        let before = caller.account.state().day();
        for (leases, number) in [(alone, 2), (among_three, 4)] {
            let all = PossibleAdmission::all(&leases, &caller, false, now);
            let ends: Vec<_> = all.iter().map(|one| (one.condition, one.end)).collect();
            let held = AdmissionEnd::Hold {
                day: now.wall.day(),
                supply: UnitSupply::Low,
            };
            let minute = Shortage::Limit(LimitRule::Minute);
            let day = Shortage::Limit(LimitRule::Day);
            let expected = [
                (GRANTED, held),
                (UNREACHABLE, AdmissionEnd::Refuse(Shortage::Units)),
                (SHARED, AdmissionEnd::Refuse(minute)),
                (SHARED, AdmissionEnd::Refuse(day)),
            ];
            assert_eq!(ends, expected[..number]);
        }
        assert_eq!(caller.account.state().day(), before);
    }
}
