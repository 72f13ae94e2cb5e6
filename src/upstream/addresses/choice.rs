//! Chooses the address of a request: among those of the highest usable priority, the one of two with fewer requests in
//! flight. Pure: random numbers are arguments.
//!
//! The two are drawn by weight, so an address in slow start gets its share of requests also when few are in flight.

/// The weight of an address that is not in slow start.
pub(super) const FULL_WEIGHT: u32 = 1_000;

/// The condition of an address, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum AddressCondition {
    Good,
    /// A request has just failed there.
    Suspect,
    /// Its health checks fail.
    Unhealthy,
}

/// An address that a request may be sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    /// Its number.
    pub(super) index: usize,
    /// Addresses of a lower number are used first.
    pub(super) priority: u8,
    pub(super) condition: AddressCondition,
    /// Whether its circuit breaker permits a request.
    pub(super) is_permitted: bool,
    /// Whether this fetch has failed there.
    pub(super) is_tried: bool,
    /// Requests in flight.
    pub(super) in_flight: usize,
    /// Share of requests, at most [`FULL_WEIGHT`].
    pub(super) weight: u32,
}

/// The address for a request. `preferred` is drawn if it is usable and not in slow start. A suspect address is used only
/// if there is no other of its priority. Without a usable address, an unhealthy one is used, unless this fetch has failed
/// somewhere: health checks can be wrong.
pub(super) fn choose(
    candidates: &[Candidate],
    preferred: Option<usize>,
    [first, second]: [u32; 2],
) -> Option<usize> {
    let is_first_attempt = !candidates.iter().any(|candidate| candidate.is_tried);
    let healthy = group(candidates, |candidate| {
        candidate.condition < AddressCondition::Unhealthy
    });
    let usable = if healthy.is_empty() && is_first_attempt {
        group(candidates, |_| true)
    } else {
        healthy
    };
    let is_preferred = |candidate: &&Candidate| {
        Some(candidate.index) == preferred && candidate.weight == FULL_WEIGHT
    };
    let one = usable
        .iter()
        .find(is_preferred)
        .or_else(|| draw(&usable, None, first))?;
    let other = draw(&usable, Some(one.index), second);
    let chosen = other
        .filter(|other| other.in_flight < one.in_flight)
        .unwrap_or(one);
    Some(chosen.index)
}

/// The permitted, untried candidates in the best condition, of the highest priority that has some.
fn group(candidates: &[Candidate], is_wanted: impl Fn(&Candidate) -> bool) -> Vec<Candidate> {
    let usable = candidates
        .iter()
        .filter(|one| one.is_permitted && !one.is_tried && is_wanted(one));
    let first = usable
        .clone()
        .map(|one| (one.priority, one.condition))
        .min();
    usable
        .filter(|one| Some((one.priority, one.condition)) == first)
        .copied()
        .collect()
}

/// Draws a candidate by weight.
fn draw(usable: &[Candidate], without: Option<usize>, random: u32) -> Option<&Candidate> {
    let others = || usable.iter().filter(|one| Some(one.index) != without);
    let total: u64 = others().map(|one| u64::from(one.weight)).sum();
    let mut point = (u64::from(random) * total) >> 32;
    others().find(|one| {
        let weight = u64::from(one.weight);
        let is_here = point < weight;
        point = point.saturating_sub(weight);
        is_here
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::AddressCondition::{Good, Suspect, Unhealthy};
    use super::*;

    fn usable(index: usize) -> Candidate {
        Candidate {
            index,
            priority: 0,
            condition: Good,
            is_permitted: true,
            is_tried: false,
            in_flight: 0,
            weight: FULL_WEIGHT,
        }
    }

    #[test]
    fn the_one_of_two_with_fewer_requests_is_chosen() {
        let busy = Candidate {
            in_flight: 2,
            ..usable(0)
        };
        for draws in [[0, 0], [u32::MAX, 0], [0, u32::MAX]] {
            assert_eq!(choose(&[busy, usable(1)], None, draws), Some(1));
            assert_eq!(choose(&[busy, usable(1)], Some(0), draws), Some(1));
        }
        assert_eq!(choose(&[usable(0), usable(1)], Some(1), [0, 0]), Some(1));
    }

    #[test]
    fn a_standby_is_used_when_no_address_above_it_is_usable() {
        let standby = Candidate {
            priority: 1,
            ..usable(2)
        };
        let busy = Candidate {
            in_flight: 100,
            ..usable(0)
        };
        assert_eq!(choose(&[busy, standby], Some(2), [0, 0]), Some(0));
        for unusable in [
            Candidate {
                condition: Unhealthy,
                ..busy
            },
            Candidate {
                is_permitted: false,
                ..busy
            },
            Candidate {
                is_tried: true,
                ..busy
            },
        ] {
            assert_eq!(choose(&[unusable, standby], None, [0, 0]), Some(2));
        }
    }

    #[test]
    fn an_unhealthy_address_is_used_only_if_there_is_no_other_and_the_fetch_has_not_failed_yet() {
        let ill = |index| Candidate {
            condition: Unhealthy,
            ..usable(index)
        };
        let refused = Candidate {
            is_permitted: false,
            ..usable(1)
        };
        assert_eq!(choose(&[ill(0), refused], None, [0, 0]), Some(0));
        assert_eq!(choose(&[ill(0), usable(1)], None, [0, 0]), Some(1));
        assert_eq!(
            choose(
                &[
                    ill(0),
                    Candidate {
                        is_tried: true,
                        ..usable(1)
                    }
                ],
                None,
                [0, 0]
            ),
            None
        );
        assert_eq!(choose(&[], None, [0, 0]), None);
    }

    #[test]
    fn an_address_in_slow_start_gets_its_share() {
        let slow = Candidate {
            weight: FULL_WEIGHT / 4,
            ..usable(0)
        };
        let draws = (0..1_000_u32).map(|step| step * (u32::MAX / 1_000));
        let chosen = draws
            .filter(|draw| choose(&[slow, usable(1)], Some(0), [*draw, 0]) == Some(0))
            .count();
        assert!((190..=210).contains(&chosen), "{chosen} of 1000");
    }

    #[test]
    fn an_address_where_a_request_has_just_failed_is_used_only_without_another_of_its_priority() {
        let suspect = Candidate {
            condition: Suspect,
            ..usable(0)
        };
        let busy = Candidate {
            in_flight: 9,
            ..usable(1)
        };
        assert_eq!(choose(&[suspect, busy], Some(0), [0, 0]), Some(1));
        assert_eq!(
            choose(
                &[
                    suspect,
                    Candidate {
                        priority: 1,
                        ..busy
                    }
                ],
                None,
                [0, 0]
            ),
            Some(0)
        );
    }

    fn any_candidate() -> impl Strategy<Value = Candidate> {
        let condition = prop_oneof![Just(Good), Just(Suspect), Just(Unhealthy)];
        let state = (0..3_u8, condition, any::<bool>(), any::<bool>());
        (state, 0..5_usize, 1..=FULL_WEIGHT).prop_map(|(state, in_flight, weight)| {
            let (priority, condition, is_permitted, is_tried) = state;
            Candidate {
                index: 0,
                priority,
                condition,
                is_permitted,
                is_tried,
                in_flight,
                weight,
            }
        })
    }

    proptest! {
        #[test]
        fn every_choice_is_usable_and_none_of_a_higher_priority_is(
            mut all in proptest::collection::vec(any_candidate(), 0..6),
            preferred in proptest::option::of(0..6_usize),
            draws in any::<[u32; 2]>(),
        ) {
            for (index, one) in all.iter_mut().enumerate() {
                one.index = index;
            }
            let may = |one: &&Candidate| one.is_permitted && !one.is_tried;
            let has_healthy = all.iter().filter(may).any(|one| one.condition < Unhealthy);
            let is_first = !all.iter().any(|one| one.is_tried);
            let Some(chosen) = choose(&all, preferred, draws).map(|index| all[index]) else {
                prop_assert!(!has_healthy);
                prop_assert!(!is_first || !all.iter().any(|one| one.is_permitted));
                return Ok(());
            };
            prop_assert!(may(&&chosen));
            prop_assert!(chosen.condition < Unhealthy || (!has_healthy && is_first));
            let rank = |one: &Candidate| (one.priority, one.condition);
            let is_rival = |one: &&Candidate| may(one) && (one.condition < Unhealthy || !has_healthy);
            prop_assert!(all.iter().filter(is_rival).all(|one| rank(one) >= rank(&chosen)));
            let in_group: Vec<_> =
                all.iter().filter(is_rival).filter(|one| rank(one) == rank(&chosen)).collect();
            let most = in_group.iter().map(|one| one.in_flight).max();
            let is_alone_the_busiest = in_group.len() > 1
                && Some(chosen.in_flight) == most
                && in_group.iter().filter(|one| Some(one.in_flight) == most).count() == 1;
            prop_assert!(!is_alone_the_busiest, "{:?} of {:?}", chosen, in_group);
        }
    }
}
