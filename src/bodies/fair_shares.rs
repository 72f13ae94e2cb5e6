//! A limit that is shared fairly. When it is used up, a party that needs a share displaces the party that holds the
//! most.

use std::{
    collections::{BTreeMap, HashMap},
    net::IpAddr,
    sync::Arc,
};

use parking_lot::Mutex;
use tokio::sync::Notify;

use scoregate_base::{
    keys::ApplicationId,
    limits::{NetworkBlock, NetworkBlocks},
};

/// The holder of an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// A client without a key. Its amounts count towards the networks that contain its address.
    Client(IpAddr),
    /// The application of a valid key.
    Application(ApplicationId),
}

/// A party whose amounts are summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Party {
    All,
    WithoutKey,
    Network(NetworkBlock),
    Application(ApplicationId),
}

/// A limit, and the amounts held under it.
pub struct FairShares {
    limit: usize,
    /// The limit for all clients without a key together.
    without_key: usize,
    /// Locked, because a decision reads and changes several sums.
    held: Mutex<HeldShares>,
}

#[derive(Default)]
struct HeldShares {
    next: u64,
    /// Ordered from the oldest to the newest.
    shares: BTreeMap<u64, HeldShare>,
    /// A party that holds nothing has no entry.
    sums: HashMap<Party, usize>,
}

struct HeldShare {
    holder: Holder,
    amount: usize,
    displaced: Arc<Notify>,
}

/// An amount that is held. It is released when the share is dropped or displaced.
pub struct Share {
    shares: Arc<FairShares>,
    number: u64,
    displaced: Arc<Notify>,
}

impl FairShares {
    /// Creates a limit with nothing held.
    pub fn new(limit: usize, without_key: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            without_key,
            held: Mutex::default(),
        })
    }

    /// Takes an amount. Returns `None` if the limit is used up and no party holds more than this holder would.
    pub fn take(self: &Arc<Self>, holder: Holder, amount: usize) -> Option<Share> {
        let displaced = Arc::new(Notify::new());
        let mut held = self.held.lock();
        let number = held.next;
        held.next += 1;
        let share = HeldShare {
            holder,
            amount: 0,
            displaced: Arc::clone(&displaced),
        };
        held.shares.insert(number, share);
        let is_taken = held.grow(number, amount, self);
        if !is_taken {
            held.release(number);
        }
        is_taken.then(|| Share {
            shares: Arc::clone(self),
            number,
            displaced,
        })
    }
}

impl Share {
    /// Increases the amount. Returns `false` if the share was displaced, or if the limit is used up and no party holds
    /// more than the holder of this share would.
    pub(super) fn grow(&self, more: usize) -> bool {
        let mut held = self.shares.held.lock();
        held.grow(self.number, more, &self.shares)
    }

    /// The notification that the share was displaced.
    pub fn displaced(&self) -> Arc<Notify> {
        Arc::clone(&self.displaced)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.shares.held.lock().release(self.number);
    }
}

impl HeldShares {
    fn grow(&mut self, number: u64, more: usize, limits: &FairShares) -> bool {
        let Some(holder) = self.shares.get(&number).map(|share| share.holder) else {
            return false;
        };
        loop {
            let is_client = matches!(holder, Holder::Client(_));
            let exceeds = is_client && self.sum(Party::WithoutKey) + more > limits.without_key;
            if !exceeds && self.sum(Party::All) + more <= limits.limit {
                break;
            }
            let parties = holder.parties();
            let levels = parties.filter_map(|party| level(party, self.sum(party) + more));
            // Parties are compared with the amount that this holder would have afterwards, so a party that holds less
            // is never displaced.
            let Some(displaced) = self.largest(exceeds, levels.max().unwrap_or(more)) else {
                return false;
            };
            self.release(displaced);
        }
        for party in holder.parties() {
            *self.sums.entry(party).or_default() += more;
        }
        let own = self.shares.get_mut(&number);
        own.map(|share| share.amount += more).is_some()
    }

    /// Removes a share and wakes its holder.
    fn release(&mut self, number: u64) {
        let Some(share) = self.shares.remove(&number) else {
            return;
        };
        share.displaced.notify_one();
        for party in share.holder.parties() {
            let left = self.sum(party) - share.amount;
            if left == 0 {
                self.sums.remove(&party);
            } else {
                self.sums.insert(party, left);
            }
        }
    }

    fn sum(&self, party: Party) -> usize {
        self.sums.get(&party).copied().unwrap_or(0)
    }

    /// The oldest share of the party with the highest level, if that level exceeds `above`.
    fn largest(&self, is_client: bool, above: usize) -> Option<u64> {
        let sums = self.sums.iter();
        let candidates = sums.filter(|(party, _)| !is_client || matches!(party, Party::Network(_)));
        let levels = candidates.filter_map(|(party, sum)| Some((level(*party, *sum)?, *party)));
        let (most, largest) = levels.max_by_key(|(level, _)| *level)?;
        let mut shares = self.shares.iter();
        let oldest = shares.find(|(_, share)| share.holder.parties().any(|party| party == largest));
        oldest.filter(|_| most > above).map(|(number, _)| *number)
    }
}

/// The amount of a party, weighted for comparison. An application may have four times as much as an address; the factor
/// of a network is in [`NetworkBlocks::NESTED`]. `None` for the sums of many parties.
fn level(party: Party, amount: usize) -> Option<usize> {
    match party {
        Party::All | Party::WithoutKey => None,
        Party::Network(block) => Some(amount / block.times as usize),
        Party::Application(_) => Some(amount / 4),
    }
}

impl Holder {
    /// The parties towards which this holder's amounts count.
    fn parties(self) -> impl Iterator<Item = Party> {
        let (client, own) = match self {
            Self::Client(client) => (Some(client), Party::WithoutKey),
            Self::Application(application) => (None, Party::Application(application)),
        };
        let clients = client.into_iter();
        let networks = clients.flat_map(|client| NetworkBlocks::NESTED.around(client));
        [Party::All, own]
            .into_iter()
            .chain(networks.map(Party::Network))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A client in a separate /24.
    fn client(network: u32) -> Holder {
        Holder::Client(IpAddr::V4((0x0a00_0001 + (network << 8)).into()))
    }

    fn application(number: u32) -> Holder {
        let id = char::from_digit(number, 10).unwrap();
        Holder::Application(format!("app_0000000000{id}").parse().unwrap())
    }

    /// The amounts of these holders.
    fn held<const N: usize>(shares: &FairShares, holders: [Holder; N]) -> [usize; N] {
        let held = shares.held.lock();
        holders.map(|holder| {
            let own = held.shares.values().filter(|share| share.holder == holder);
            own.map(|share| share.amount).sum()
        })
    }

    /// Takes this amount ten times for each holder, in turn.
    fn take(shares: &Arc<FairShares>, amount: usize, holders: &[Holder]) -> Vec<Share> {
        let rounds = (0..10).flat_map(|_| holders);
        rounds
            .filter_map(|holder| shares.take(*holder, amount))
            .collect()
    }

    #[test]
    fn one_holder_may_have_everything_until_others_need_it() {
        let shares = FairShares::new(100, 100);
        let first = take(&shares, 10, &[client(0)]);
        assert_eq!(held(&shares, [client(0)]), [100]);
        let _second = take(&shares, 5, &[client(1)]);
        assert_eq!(held(&shares, [client(0), client(1)]), [50, 50]);
        let _third = take(&shares, 1, &[client(2)]);
        let [one, other, third] = held(&shares, [client(0), client(1), client(2)]);
        // Which of two holders with equal totals is displaced first depends on the sizes of their individual shares.
        assert_eq!(third, 10);
        assert!(
            one + other >= 85 && one.abs_diff(other) <= 10,
            "{one} {other}"
        );
        assert!(shares.take(client(0), 20).is_none(), "others hold less");
        assert!(!first.first().unwrap().grow(1), "the oldest is displaced");
        assert!(first.last().unwrap().grow(0));
    }

    #[test]
    fn clients_without_a_key_leave_the_rest_to_applications() {
        let shares = FairShares::new(100, 70);
        let many: Vec<Holder> = (0..50).map(client).collect();
        let _clients = take(&shares, 1, &many);
        assert_eq!(shares.held.lock().sum(Party::WithoutKey), 70);
        let _application = take(&shares, 5, &[application(1)]);
        assert_eq!(held(&shares, [application(1)]), [30]);
        let _other = take(&shares, 1, &[application(2)]);
        assert_eq!(held(&shares, [application(1), application(2)]), [20, 10]);
        assert_eq!(shares.held.lock().sum(Party::WithoutKey), 70);
    }

    #[test]
    fn a_network_may_have_a_few_times_as_much_as_an_address() {
        let shares = FairShares::new(100, 100);
        let hosts: Vec<Holder> = (0..100_u32)
            .map(|host| Holder::Client(IpAddr::V4((0x0a00_0000 + host).into())))
            .collect();
        let _hosts = take(&shares, 1, &hosts);
        assert_eq!(shares.held.lock().sum(Party::All), 100);
        let _other = take(&shares, 2, &[client(1)]);
        assert_eq!(held(&shares, [client(1)]), [18], "with 82 for the network");
    }

    proptest! {
        #[test]
        fn the_sums_are_those_of_the_shares_and_within_the_limits(
            steps in prop::collection::vec((0..6_u32, 1..40_usize, any::<bool>()), 0..100),
        ) {
            let shares = FairShares::new(100, 70);
            let mut taken: Vec<Share> = Vec::new();
            for (number, amount, is_dropped) in steps {
                let holder = if number < 3 { client(number) } else { application(number) };
                if is_dropped && !taken.is_empty() {
                    taken.swap_remove(amount % taken.len());
                } else {
                    taken.extend(shares.take(holder, amount));
                }
                let holders = [client(0), client(1), client(2), application(3), application(4), application(5)];
                let amounts = held(&shares, holders);
                let state = shares.held.lock();
                let all = state.sum(Party::All);
                let without_key = state.sum(Party::WithoutKey);
                prop_assert!(all <= 100 && without_key <= 70);
                prop_assert_eq!(amounts.iter().sum::<usize>(), all);
                prop_assert_eq!(amounts[..3].iter().sum::<usize>(), without_key);
                prop_assert!(state.sums.values().all(|sum| *sum > 0));
            }
            taken.clear();
            prop_assert!(shares.held.lock().shares.is_empty() && shares.held.lock().sums.is_empty());
        }
    }
}
