//! Work that waits, by network: networks take turns, and one that has much waiting delays itself only. Pure.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

pub(super) struct FairTurns<T> {
    waiting: HashMap<IpAddr, VecDeque<T>>,
    /// The networks with waiting work, in the order of their next turns.
    order: VecDeque<IpAddr>,
}

impl<T> Default for FairTurns<T> {
    fn default() -> Self {
        Self { waiting: HashMap::new(), order: VecDeque::new() }
    }
}

impl<T> FairTurns<T> {
    /// Adds work of a network. Returns `false` if it has `max` items waiting; those that are no longer needed do not count.
    pub(super) fn add(
        &mut self,
        network: IpAddr,
        item: T,
        max: usize,
        is_needed: impl Fn(&T) -> bool,
    ) -> bool {
        let items = self.waiting.entry(network).or_default();
        if items.is_empty() {
            self.order.push_back(network);
        } else if items.len() >= max {
            items.retain(is_needed);
        }
        // A network whose work is no longer needed keeps its turn for the new item.
        let is_added = items.len() < max;
        if is_added {
            items.push_back(item);
        }
        is_added
    }

    /// The oldest item of the network whose turn it is.
    pub(super) fn next(&mut self) -> Option<T> {
        let network = self.order.pop_front()?;
        let items = self.waiting.get_mut(&network)?;
        let item = items.pop_front();
        if items.is_empty() {
            self.waiting.remove(&network);
        } else {
            self.order.push_back(network);
        }
        item
    }
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
        assert!(turns.waiting.is_empty() && turns.order.is_empty());
    }

    #[test]
    fn a_network_has_a_limited_number_of_waiting_items_and_only_needed_ones_count() {
        let mut turns = FairTurns::default();
        assert!((1..=3).all(|item| turns.add(network(1), item, 3, |_| true)));
        assert!(!turns.add(network(1), 4, 3, |_| true));
        assert!(turns.add(network(2), 5, 3, |_| true), "another network is not affected");
        assert!(turns.add(network(1), 6, 3, |item| *item == 2));
        assert!(turns.add(network(1), 7, 3, |_| true));
        let order: Vec<i32> = std::iter::from_fn(|| turns.next()).collect();
        assert_eq!(order, [2, 5, 6, 7]);
        assert!(!turns.add(network(1), 8, 0, |_| true));
    }
}
