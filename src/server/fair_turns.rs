//! Queues of waiting work, by network. Blocks of the size that providers assign to their customers take turns, and so
//! do the networks of each block. A block with much waiting work delays only itself, however many smaller networks it
//! has. No I/O.

use std::{
    collections::{HashMap, VecDeque},
    net::IpAddr,
};

use ipnet::IpNet;

/// Prefix lengths of address blocks, as in `site::network_limit`.
const IPV4_BLOCK: u8 = 24;
const IPV6_BLOCK: u8 = 48;

pub struct FairTurns<T> {
    blocks: Rotation<Rotation<VecDeque<T>>>,
}

/// Queues that take turns. No queue is empty.
struct Rotation<Q> {
    queues: HashMap<IpAddr, Q>,
    /// The keys of the queues, in the order of their next turns.
    order: VecDeque<IpAddr>,
}

impl<Q> Default for Rotation<Q> {
    fn default() -> Self {
        Self {
            queues: HashMap::new(),
            order: VecDeque::new(),
        }
    }
}

impl<Q: Default> Rotation<Q> {
    /// The queue of a key, for adding an item. A new queue gets the last turn.
    fn queue(&mut self, key: IpAddr) -> &mut Q {
        self.queues.entry(key).or_insert_with(|| {
            self.order.push_back(key);
            Q::default()
        })
    }

    /// Takes an item from the queue whose turn it is.
    fn next<T>(
        &mut self,
        take: impl FnOnce(&mut Q) -> Option<T>,
        is_empty: impl FnOnce(&Q) -> bool,
    ) -> Option<T> {
        let key = self.order.pop_front()?;
        let queue = self.queues.get_mut(&key)?;
        let item = take(queue);
        if is_empty(queue) {
            self.queues.remove(&key);
        } else {
            self.order.push_back(key);
        }
        item
    }
}

impl<T> Default for FairTurns<T> {
    fn default() -> Self {
        Self {
            blocks: Rotation::default(),
        }
    }
}

impl<T> FairTurns<T> {
    /// Adds an item for a network. Returns `false` if the network already has `max` waiting items; `max` should be at least 1.
    /// Items that are no longer needed do not count.
    pub fn add(
        &mut self,
        network: IpAddr,
        item: T,
        max: usize,
        is_needed: impl Fn(&T) -> bool,
    ) -> bool {
        let items = self.blocks.queue(block(network)).queue(network);
        if items.len() >= max {
            // Only a full queue is searched for items that are no longer needed, so that adding is usually cheap.
            items.retain(is_needed);
        }
        // If all items of the network were removed, the network still keeps its turn, which the new item gets.
        let is_added = items.len() < max;
        if is_added {
            items.push_back(item);
        }
        is_added
    }

    /// The oldest item of the network whose turn it is, in the block whose turn it is.
    pub fn next(&mut self) -> Option<T> {
        self.blocks.next(
            |networks: &mut Rotation<VecDeque<T>>| {
                networks.next(
                    |items: &mut VecDeque<T>| items.pop_front(),
                    VecDeque::is_empty,
                )
            },
            |networks| networks.queues.is_empty(),
        )
    }
}

/// The block that contains a network.
fn block(network: IpAddr) -> IpAddr {
    let length = if network.is_ipv4() {
        IPV4_BLOCK
    } else {
        IPV6_BLOCK
    };
    IpNet::new(network, length).map_or(network, |block| block.network())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(number: u8) -> IpAddr {
        [192, 0, 2, number].into()
    }

    #[test]
    fn networks_take_turns_and_each_is_served_in_order() {
        let mut turns = FairTurns::default();
        for (of, item) in [(1, 'a'), (1, 'b'), (1, 'c'), (2, 'd'), (3, 'e'), (2, 'f')] {
            assert!(turns.add(network(of), item, 9, |_| true));
        }
        assert_eq!(turns.next(), Some('a'));
        assert!(turns.add(network(4), 'g', 9, |_| true));
        let rest: String = std::iter::from_fn(|| turns.next()).collect();
        assert_eq!(rest, "debgfc");
        assert!(turns.blocks.queues.is_empty() && turns.blocks.order.is_empty());
    }

    #[test]
    fn the_networks_of_a_provider_block_share_its_turns() {
        let mut turns = FairTurns::default();
        let ipv6 = |block, network| IpAddr::from([0x2001, 0xdb8, block, network, 0, 0, 0, 0]);
        let many = [
            (ipv6(1, 1), 'a'),
            (ipv6(1, 2), 'b'),
            (ipv6(1, 3), 'c'),
            (ipv6(1, 1), 'd'),
        ];
        let few = [
            (ipv6(2, 1), 'e'),
            (ipv6(2, 1), 'f'),
            ([192, 0, 2, 1].into(), 'g'),
            ([192, 0, 3, 1].into(), 'h'),
        ];
        for (of, item) in many.into_iter().chain(few) {
            assert!(turns.add(of, item, 9, |_| true));
        }
        let order: String = std::iter::from_fn(|| turns.next()).collect();
        assert_eq!(order, "aeghbfcd");
    }

    #[test]
    fn a_network_has_a_limited_number_of_waiting_items_and_only_needed_ones_count() {
        let mut turns = FairTurns::default();
        assert!((1..=3).all(|item| turns.add(network(1), item, 3, |_| true)));
        assert!(!turns.add(network(1), 4, 3, |_| true));
        assert!(
            turns.add(network(2), 5, 3, |_| true),
            "another network is not affected"
        );
        assert!(turns.add(network(1), 6, 3, |item| *item == 2));
        assert!(turns.add(network(1), 7, 3, |_| true));
        let order: Vec<i32> = std::iter::from_fn(|| turns.next()).collect();
        assert_eq!(order, [2, 5, 6, 7]);
        assert!(!turns.add(network(1), 8, 0, |_| true));
    }
}
