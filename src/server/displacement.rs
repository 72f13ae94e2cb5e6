//! Chooses the connection that is closed for a new one when all slots are taken.
//!
//! The functions are pure, and compute the rank of a connection from its state. `connection_slots` closes the connection.

use std::time::Duration;

use scoregate_base::clock::Mono;

/// Minimum time before a connection is closed because it is idle or slow. A client that has just connected is about to
/// send a request, and a client that has just received a response may send another request.
const GRACE_PERIOD: Duration = Duration::from_secs(1);
/// A client that has not read a byte for this time is stalled. The time is short because new callers are waiting.
const STALLED: Duration = Duration::from_millis(250);
/// A client that has not read a byte for this time has stopped reading.
const HUNG: Duration = Duration::from_secs(5);

/// The state of a connection that determines its rank.
#[derive(Clone, Copy, Debug)]
pub struct DisplacementInput {
    /// Whether a valid key was sent on the connection.
    pub is_authenticated: bool,
    /// When the connection was accepted.
    pub opened: Mono,
    /// Start of the current period without an open request.
    pub idle: Option<Mono>,
    /// When the client last read a byte, if response bytes are waiting.
    pub unread: Option<Mono>,
    /// Response bytes that the client has read.
    pub taken: u64,
}

/// The reason why a connection may be closed. Connections of the first variant are closed first; within a variant,
/// connections with the lowest value are closed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DisplacementRank {
    /// No key, and the client has stopped reading.
    Hung(Mono),
    /// No open request.
    Idle(Mono),
    /// No key, and the client is stalled.
    Stalled(Mono),
    /// No key. Ranked by progress in bytes per second.
    WithoutKey(u64),
    /// A key, and the client has stopped reading.
    HungWithKey(Mono),
}

impl DisplacementInput {
    /// The ranks of a connection, with the time from which each rank applies. A connection that has a key and makes
    /// progress has no rank.
    pub fn ranks(self, now: Mono) -> impl Iterator<Item = (Mono, DisplacementRank)> {
        let Self {
            is_authenticated,
            opened,
            idle,
            unread,
            ..
        } = self;
        let unread = unread.filter(|_| idle.is_none());
        let idle = idle.map(|since| (since.plus(GRACE_PERIOD), DisplacementRank::Idle(since)));
        let stalled = unread.filter(|_| !is_authenticated);
        let stalled = stalled.map(|since| (since.plus(STALLED), DisplacementRank::Stalled(since)));
        let hung = if is_authenticated {
            DisplacementRank::HungWithKey
        } else {
            DisplacementRank::Hung
        };
        let hung = unread.map(|since| (since.plus(HUNG), hung(since)));
        let slow = (!is_authenticated).then(|| {
            (
                opened.plus(GRACE_PERIOD),
                DisplacementRank::WithoutKey(self.rate(now)),
            )
        });
        [hung, idle, stalled, slow].into_iter().flatten()
    }

    /// Bytes read per second since the connection was opened.
    fn rate(self, now: Mono) -> u64 {
        let millis = u64::try_from(now.since(self.opened).as_millis()).unwrap_or(u64::MAX);
        self.taken.saturating_mul(1_000) / millis.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Mono {
        Mono::from_nanos(millis * 1_000_000)
    }

    const NEW: DisplacementInput = DisplacementInput {
        is_authenticated: false,
        opened: Mono::from_nanos(0),
        idle: None,
        unread: None,
        taken: 0,
    };

    /// The rank of a connection at the time `now`.
    fn rank(displacement_input: DisplacementInput, now: Mono) -> Option<DisplacementRank> {
        displacement_input
            .ranks(now)
            .filter(|(from, _)| *from <= now)
            .map(|(_, rank)| rank)
            .min()
    }

    #[test]
    fn a_new_connection_is_not_displaced() {
        let idle = DisplacementInput {
            idle: Some(at(0)),
            ..NEW
        };
        assert_eq!(
            (rank(idle, at(999)), rank(idle, at(1_000))),
            (None, Some(DisplacementRank::Idle(at(0))))
        );
        let unread = DisplacementInput {
            unread: Some(at(100)),
            ..NEW
        };
        assert_eq!(
            (rank(unread, at(349)), rank(unread, at(350))),
            (None, Some(DisplacementRank::Stalled(at(100))))
        );
        assert_eq!(
            (rank(NEW, at(999)), rank(NEW, at(1_000))),
            (None, Some(DisplacementRank::WithoutKey(0)))
        );
    }

    #[test]
    fn a_connection_with_a_key_is_closed_only_if_it_is_idle_or_has_stopped_to_read() {
        let with_key = DisplacementInput {
            is_authenticated: true,
            ..NEW
        };
        assert_eq!(rank(with_key, at(1_000_000)), None);
        let unread = DisplacementInput {
            unread: Some(at(0)),
            ..with_key
        };
        assert_eq!(
            (rank(unread, at(4_999)), rank(unread, at(5_000))),
            (None, Some(DisplacementRank::HungWithKey(at(0))))
        );
        let idle = DisplacementInput {
            idle: Some(at(0)),
            ..with_key
        };
        assert_eq!(rank(idle, at(1_000)), Some(DisplacementRank::Idle(at(0))));
    }

    #[test]
    fn displacement_order_is_hung_idle_stalled_slow_hung_with_a_key() {
        let now = at(10_000);
        let with_key = DisplacementInput {
            is_authenticated: true,
            ..NEW
        };
        let in_order = [
            DisplacementInput {
                unread: Some(at(4_000)),
                ..NEW
            },
            DisplacementInput {
                idle: Some(at(1_000)),
                ..with_key
            },
            DisplacementInput {
                idle: Some(at(2_000)),
                ..NEW
            },
            DisplacementInput {
                unread: Some(at(9_000)),
                taken: 1_000_000,
                ..NEW
            },
            DisplacementInput {
                unread: Some(at(9_900)),
                taken: 10,
                ..NEW
            },
            DisplacementInput {
                unread: Some(at(9_900)),
                taken: 1_000_000,
                ..NEW
            },
            DisplacementInput {
                unread: Some(at(4_000)),
                ..with_key
            },
        ];
        let ranks = in_order.map(|displacement_input| rank(displacement_input, now).unwrap());
        assert!(ranks.is_sorted(), "{ranks:?}");
    }
}
