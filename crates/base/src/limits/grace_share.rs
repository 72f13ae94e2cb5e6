//! Numbered shares of a day's grace: which gateway holds one, and what an application may owe on it.
//!
//! While the ledger is unreachable, applications of paid tiers are delivered units that are charged later: in total one
//! hundredth of their day. The gateways divide it before an outage, once for all applications. A gateway registers for one of
//! N shares of the day, and N is fixed by the first one. On share k an application may owe ⌊(⌊Q/100⌋ + N − 1 − k) / N⌋ units,
//! which grows with Q and adds up to ⌊Q/100⌋. So without any coordination all gateways together never exceed one hundredth
//! of the largest quota of the day.
//!
//! A share has one holder at a time. It is free again only after a holder without uncharged units has returned it. The next
//! process on the same data directory may continue it, with the holder's token: it knows the units that were reserved before
//! they were spent.
//!
//! Pure. An engine locks the rows of the day, applies one claim, and stores the row in the same transaction.

use serde::{Deserialize, Serialize};

use crate::clock::Day;

/// Units are reserved in blocks of this part of what an application may owe on a share.
const BLOCKS: u32 = 8;

/// One of the numbered shares of a day's grace.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub struct GraceShare {
    /// Its number, from 0.
    pub number: u32,
    /// The number of shares of the day.
    pub shares: u32,
}

impl GraceShare {
    /// Units that an application with this much grace on all shares may owe on this one.
    pub fn part(self, grace: u32) -> u32 {
        let shares = self.shares.max(1);
        grace / shares + u32::from(self.number < grace % shares)
    }
}

/// Number of units that are reserved together by an application that may owe `part`. A crash loses at most as many.
pub(super) fn grace_block(part: u32) -> u32 {
    (part / BLOCKS).max(1)
}

/// A share and its holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraceHolder {
    /// The share.
    pub share: GraceShare,
    /// Identifies the holder and the processes that continue it.
    pub token: u64,
    /// Number of the process among them.
    pub life: u32,
    /// The process.
    pub node: u64,
}

/// A request for a share of a day, or for the confirmation of the one that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraceClaim {
    /// The day.
    pub day: Day,
    /// Number of shares, if this is the first holder of the day.
    pub gateways: u32,
    /// The share that the process holds.
    pub held: Option<GraceShare>,
    /// The holder's token. A new one unless a share is held.
    pub token: u64,
    /// Number of the process among those that continue the holder.
    pub life: u32,
    /// The process.
    pub node: u64,
}

impl GraceClaim {
    /// The row to store among `holders`, the rows of the day. `None` if no share is free, or if another process holds the
    /// share of this one: then it must not be used any more.
    pub fn applied_to(&self, holders: &[GraceHolder]) -> Option<GraceHolder> {
        let own = |share| GraceHolder {
            share,
            token: self.token,
            life: self.life,
            node: self.node,
        };
        if let Some(found) = holders.iter().find(|holder| holder.token == self.token) {
            // A copy of the data directory continues an earlier process than the last one.
            let is_next = found.life < self.life || found.node == self.node;
            let is_same = self.held.is_none_or(|held| held == found.share);
            return (is_next && is_same).then(|| own(found.share));
        }
        let shares = holders
            .first()
            .map_or(self.gateways.max(1), |holder| holder.share.shares);
        let is_free = |number: u32| holders.iter().all(|holder| holder.share.number != number);
        match self.held {
            // The ledger lost the row in a failover.
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
            "the day has other shares now"
        );
    }
}
