//! Numbered shares of a day's grace: which gateway holds a share, and how many units an application may owe on it.
//!
//! While the ledger is unreachable, applications of paid tiers get units that are charged later, in total one hundredth
//! of their daily quota Q. The gateways divide this grace before an outage, once for all applications. A gateway
//! registers for one of N shares of the day. The first gateway determines N. On share k, an application may owe
//! ⌊(⌊Q/100⌋ + N − 1 − k) / N⌋ units. This number increases with Q, and the sum over all shares is ⌊Q/100⌋. All gateways
//! together therefore never exceed one hundredth of the largest quota of the day, without any coordination.
//!
//! A share has one holder at a time. It is free again only after a holder without uncharged units has returned it. The
//! next process with the same data directory may continue the share with the holder's token, because the directory records all
//! reserved units, and units are reserved before they are spent.
//!
//! The code is pure. An engine locks the rows of the day, applies one claim, and stores the row in the same
//! transaction.

use serde::{Deserialize, Serialize};

use crate::clock::Day;

/// Units are reserved in blocks. A share's maximum for an application is divided into this many blocks.
const BLOCKS: u32 = 8;

/// One of the numbered shares of a day's grace.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub struct GraceShare {
    /// The number of the share, from 0.
    pub number: u32,
    /// The number of shares of the day.
    pub shares: u32,
}

impl GraceShare {
    /// Units that an application may owe on this share, if it may owe `grace` units on all shares together.
    pub fn part(self, grace: u32) -> u32 {
        let shares = self.shares.max(1);
        grace / shares + u32::from(self.number < grace % shares)
    }
}

/// Number of units that are reserved together if an application may owe `part` units. A crash loses at most this many
/// units.
pub fn grace_block(part: u32) -> u32 {
    (part / BLOCKS).max(1)
}

/// A share and its holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraceHolder {
    /// The share.
    pub share: GraceShare,
    /// Identifies the holder and the processes that continue its share.
    pub token: u64,
    /// Sequence number of the process among the processes with this token, from 0.
    pub life: u32,
    /// The process.
    pub node: u64,
}

/// A request for a share of a day, or for the confirmation of a held share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraceClaim {
    /// The day.
    pub day: Day,
    /// Number of shares, used if no share of the day is held yet.
    pub gateways: u32,
    /// The share that the process holds.
    pub held: Option<GraceShare>,
    /// The holder's token; a new token if no share is held.
    pub token: u64,
    /// Sequence number of the process among the processes with this token, from 0.
    pub life: u32,
    /// The process.
    pub node: u64,
}

impl GraceClaim {
    /// The row to store, given `holders`, the rows of the day. `None` if no share is free, or if another process holds
    /// this process's share, which must then no longer be used.
    pub fn applied_to(&self, holders: &[GraceHolder]) -> Option<GraceHolder> {
        let own = |share| GraceHolder {
            share,
            token: self.token,
            life: self.life,
            node: self.node,
        };
        if let Some(found) = holders.iter().find(|holder| holder.token == self.token) {
            // A process that uses a copy of the data directory is the successor of an earlier process, not of the last.
            let is_next = found.life < self.life || found.node == self.node;
            let is_same = self.held.is_none_or(|held| held == found.share);
            return (is_next && is_same).then(|| own(found.share));
        }
        let shares = holders
            .first()
            .map_or(self.gateways.max(1), |holder| holder.share.shares);
        let is_free = |number: u32| holders.iter().all(|holder| holder.share.number != number);
        match self.held {
            // The ledger has lost the row in a failover.
            Some(held) => {
                let fits = holders.is_empty() || held.shares == shares;
                (fits && is_free(held.number)).then(|| own(held))
            }
            None => (0..shares)
                .find(|number| is_free(*number))
                .map(|number| own(GraceShare { number, shares })),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_parts_of_all_shares_add_up_and_grow_with_the_quota(grace in 0u32..10_000, more in 0u32..500, shares in 1u32..40) {
            let part = |number, grace| GraceShare { number, shares }.part(grace);
            prop_assert_eq!((0..shares).map(|number| part(number, grace)).sum::<u32>(), grace);
            prop_assert!((0..shares).all(|number| part(number, grace) <= part(number, grace + more)));
        }
    }

    fn claim(node: u64, token: u64) -> GraceClaim {
        GraceClaim {
            day: Day::from_number(20_000),
            gateways: 2,
            held: None,
            token,
            life: 0,
            node,
        }
    }

    #[test]
    fn the_first_holder_fixes_the_number_of_shares_and_each_share_has_one_holder() {
        let first = claim(1, 11).applied_to(&[]).unwrap();
        assert_eq!(
            first.share,
            GraceShare {
                number: 0,
                shares: 2
            }
        );
        let second = GraceClaim {
            gateways: 5,
            ..claim(2, 12)
        }
        .applied_to(&[first])
        .unwrap();
        assert_eq!(
            second.share,
            GraceShare {
                number: 1,
                shares: 2
            }
        );
        assert_eq!(claim(3, 13).applied_to(&[first, second]), None);
        assert_eq!(
            claim(1, 11).applied_to(&[first, second]),
            Some(first),
            "a repeated claim"
        );
        assert_eq!(
            claim(3, 13).applied_to(&[second]).unwrap().share.number,
            0,
            "the lowest free one"
        );
    }

    #[test]
    fn a_share_is_continued_by_the_next_process_and_not_by_one_before_it() {
        let first = claim(1, 11).applied_to(&[]).unwrap();
        let next = GraceClaim {
            held: Some(first.share),
            life: 1,
            ..claim(2, 11)
        };
        let continued = next.applied_to(&[first]).unwrap();
        assert_eq!((continued.share, continued.node), (first.share, 2));
        let copy = GraceClaim {
            held: Some(first.share),
            life: 1,
            ..claim(3, 11)
        };
        assert_eq!(copy.applied_to(&[continued]), None);
        let other = GraceClaim {
            held: Some(first.share),
            ..claim(3, 13)
        };
        assert_eq!(
            other.applied_to(&[continued]),
            None,
            "the share has another token"
        );
        assert_eq!(
            next.applied_to(&[]),
            Some(continued),
            "a failover lost the row"
        );
        let of_three = GraceHolder {
            share: GraceShare {
                number: 1,
                shares: 3,
            },
            ..first
        };
        assert_eq!(
            next.applied_to(&[GraceHolder {
                token: 14,
                ..of_three
            }]),
            None,
            "the day now has a different number of shares"
        );
    }
}
