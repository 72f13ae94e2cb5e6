//! Slots for connections, with a total limit and a limit per address.
//!
//! If all slots are taken and a client connects, the connection with the lowest rank is closed (see `displacement`). So
//! idle connections, slow readers and connections without a key do not block other clients. An IPv6 address counts as
//! its /64. `gateway` limits requests.

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::sync::Notify;

use scoregate_base::{
    clock::{Clock, Mono},
    limits::network,
};

use super::{activity::ConnectionActivity, displacement::DisplacementRank};

pub struct ConnectionSlots {
    max_connections: AtomicUsize,
    max_per_address: AtomicUsize,
    holders: Mutex<SlotHolders>,
    freed: Notify,
}

/// Time for which a computed ranking is valid.
// A search visits all connections, so it is not repeated more often while no connection can be displaced.
const RANKING_TTL: Duration = Duration::from_millis(250);

/// The result of a search for a slot.
enum SlotOccupancy {
    Free,
    /// This connection can be displaced.
    Displace(Arc<ConnectionActivity>),
    /// No connection can be displaced before this time.
    Wait(Mono),
}

/// The connections that hold slots.
#[derive(Default)]
struct SlotHolders {
    open: HashMap<u64, Arc<ConnectionActivity>>,
    by_address: HashMap<IpAddr, usize>,
    next: u64,
    /// Whether the server is shutting down, so that all connections must end, including new ones.
    is_shutting_down: bool,
}

/// The slot of a connection, which is released when dropped.
pub struct ConnectionSlot {
    slots: Arc<ConnectionSlots>,
    number: u64,
    address: Option<IpAddr>,
}

impl ConnectionSlots {
    pub fn new(max_connections: usize, max_per_address: usize) -> Arc<Self> {
        let holders = Mutex::default();
        let freed = Notify::new();
        let max_connections = AtomicUsize::new(max_connections);
        let max_per_address = AtomicUsize::new(max_per_address);
        Arc::new(Self {
            max_connections,
            max_per_address,
            holders,
            freed,
        })
    }

    /// Changes the limits. Open connections stay open.
    pub fn allow(&self, max_connections: usize, max_per_address: usize) {
        self.max_connections
            // The limits are read independently, so the order of these writes does not matter.
            .store(max_connections, Ordering::Relaxed);
        self.max_per_address
            .store(max_per_address, Ordering::Relaxed);
        self.freed.notify_one();
    }

    /// Waits for a slot for a new connection. If none is free, displaces the connection with the lowest rank. While no
    /// connection can be displaced, new connections wait.
    pub async fn wait_for_slot(&self, clock: &Clock) {
        loop {
            let freed = self.freed.notified();
            match self.limit_status(clock.mono()) {
                SlotOccupancy::Free => return,
                SlotOccupancy::Displace(activity) => {
                    activity.cut();
                    freed.await;
                }
                SlotOccupancy::Wait(end) => {
                    tokio::select! { () = freed => {}, () = clock.sleep_until(end) => {} }
                }
            }
        }
    }

    fn limit_status(&self, now: Mono) -> SlotOccupancy {
        // The states of connections are locked one by one while this lock is held. This lock must therefore never be
        // taken while such a state is locked.
        let holders = self.holders.lock();
        if holders.open.len() < self.max_connections.load(Ordering::Relaxed) {
            return SlotOccupancy::Free;
        }
        let mut lowest: Option<(DisplacementRank, &Arc<ConnectionActivity>)> = None;
        let mut soonest: Option<Mono> = None;
        for activity in holders.open.values() {
            for (from, rank) in activity
                .displacement_input()
                .into_iter()
                .flat_map(|displacement_input| displacement_input.ranks(now))
            {
                if from > now {
                    soonest = Some(soonest.map_or(from, |known| known.min(from)));
                } else if lowest.is_none_or(|(known, _)| rank < known) {
                    lowest = Some((rank, activity));
                }
            }
        }
        // Rank changes are not reported, so the search has to be repeated.
        let reranked_at = now.plus(RANKING_TTL);
        lowest.map_or_else(
            || SlotOccupancy::Wait(soonest.map_or(reranked_at, |from| from.min(reranked_at))),
            |(_, activity)| SlotOccupancy::Displace(Arc::clone(activity)),
        )
    }

    /// Closes all present and future connections gracefully.
    pub fn end(&self) {
        let mut holders = self.holders.lock();
        // The flag is set under the lock that `take` needs, so that no new connection can miss the shutdown.
        holders.is_shutting_down = true;
        holders.open.values().for_each(|activity| activity.retire());
    }

    /// Takes a slot. Must be called after [`Self::wait_for_slot`].
    pub fn take(self: &Arc<Self>, activity: &Arc<ConnectionActivity>) -> ConnectionSlot {
        let mut holders = self.holders.lock();
        let number = holders.next;
        holders.next += 1;
        holders.open.insert(number, Arc::clone(activity));
        if holders.is_shutting_down {
            activity.retire();
        }
        ConnectionSlot {
            slots: Arc::clone(self),
            number,
            address: None,
        }
    }
}

impl ConnectionSlot {
    /// Counts the connection for this address. Returns `false` if the address has too many connections.
    pub fn count_for(&mut self, address: IpAddr) -> bool {
        let address = network(address);
        let mut holders = self.slots.holders.lock();
        let count = holders.by_address.entry(address).or_default();
        if *count >= self.slots.max_per_address.load(Ordering::Relaxed) {
            return false;
        }
        *count += 1;
        self.address = Some(address);
        true
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut holders = self.slots.holders.lock();
        holders.open.remove(&self.number);
        if let Some(address) = self.address
            && let Some(count) = holders.by_address.get_mut(&address)
        {
            *count -= 1;
            if *count == 0 {
                holders.by_address.remove(&address);
            }
        }
        // The lock is released first, because the woken task takes it again.
        drop(holders);
        self.slots.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use scoregate_base::clock::Wall;

    #[test]
    fn an_address_has_its_slots_and_an_ipv6_network_shares_them() {
        let (clock, _hand) = Clock::manual(Wall::from_seconds(0));
        let slots = ConnectionSlots::new(10, 2);
        let activity = Arc::new(ConnectionActivity::new(
            clock,
            Arc::default(),
            Arc::default(),
        ));
        let take = |address: &str| {
            let mut slot = slots.take(&activity);
            slot.count_for(address.parse().unwrap()).then_some(slot)
        };
        let held = [take("2001:db8::1").unwrap(), take("2001:db8::2").unwrap()];
        assert!(take("2001:db8::3").is_none());
        let others = [
            take("192.0.2.1").unwrap(),
            take("192.0.2.2").unwrap(),
            take("::ffff:192.0.2.1").unwrap(),
        ];
        assert!(take("192.0.2.1").is_none());
        drop(held);
        assert!(take("2001:db8::3").is_some());
        drop(others);
        assert!(slots.holders.lock().by_address.is_empty() && slots.holders.lock().open.is_empty());
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn if_all_slots_are_taken_the_longest_idle_connection_is_displaced() {
        let (clock, manual) = Clock::manual(Wall::from_seconds(0));
        let slots = ConnectionSlots::new(3, 9);
        let connect = || {
            manual.advance(SECOND / 10);
            let activity = Arc::new(ConnectionActivity::new(
                clock.clone(),
                Arc::default(),
                Arc::default(),
            ));
            (slots.take(&activity), activity)
        };
        let first = connect();
        let second = connect();
        let third = connect();
        first.1.request_started();
        let activities = [&first, &second, &third].map(|one| Arc::clone(&one.1));
        let are_cut = || [0, 1, 2].map(|one: usize| activities[one].is_cut());
        assert!(slots.wait_for_slot(&clock).now_or_never().is_none());
        assert_eq!(are_cut(), [false; 3], "all connections are new");
        manual.advance(SECOND);
        assert!(slots.wait_for_slot(&clock).now_or_never().is_none());
        assert_eq!(are_cut(), [false, true, false]);
        drop(second);
        assert!(slots.wait_for_slot(&clock).now_or_never().is_some());
        drop((first, third));
    }

    #[test]
    fn a_connection_with_a_key_and_an_open_request_is_never_displaced() {
        let (clock, manual) = Clock::manual(Wall::from_seconds(0));
        let slots = ConnectionSlots::new(1, 1);
        let activity = Arc::new(ConnectionActivity::new(
            clock.clone(),
            Arc::default(),
            Arc::default(),
        ));
        let slot = slots.take(&activity);
        activity.request_started();
        activity.trust().record_admission();
        manual.advance(60 * SECOND);
        let mut room = Box::pin(slots.wait_for_slot(&clock));
        assert!(room.as_mut().now_or_never().is_none() && !activity.is_cut());
        drop(slot);
        assert!(room.now_or_never().is_some());
    }
}
