//! Slots for signed reports that are being processed. They limit memory use, because reports are held in memory.

use std::{net::IpAddr, sync::Arc};

use parking_lot::Mutex;

use scoregate_base::limits::network;

/// Maximum number of reports that are processed concurrently, in total and from one address. A client that has obtained
/// signed reports could send them again.
const AT_ONCE: usize = 16;
const OF_ADDRESS: usize = 8;

/// The addresses that occupy slots.
#[derive(Default)]
pub struct ReportSlots(Mutex<Vec<IpAddr>>);

/// An occupied slot, which is released when dropped.
pub struct ReportSlot(Arc<ReportSlots>, IpAddr);

impl ReportSlots {
    /// Takes a slot for a client, if one is free.
    pub fn take(self: &Arc<Self>, client: IpAddr) -> Option<ReportSlot> {
        let client = network(client);
        let mut occupied = self.0.lock();
        let own = occupied.iter().filter(|other| **other == client).count();
        if occupied.len() >= AT_ONCE || own >= OF_ADDRESS {
            return None;
        }
        occupied.push(client);
        Some(ReportSlot(Arc::clone(self), client))
    }
}

impl Drop for ReportSlot {
    fn drop(&mut self) {
        let mut occupied = self.0.0.lock();
        if let Some(own) = occupied.iter().position(|other| *other == self.1) {
            occupied.swap_remove(own);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_leaves_slots_for_others() {
        let slots = Arc::new(ReportSlots::default());
        let [one, other, third] = [1, 2, 3].map(|last| IpAddr::from([192, 0, 2, last]));
        let take = |client| {
            (0..20)
                .map_while(|_| slots.take(client))
                .collect::<Vec<_>>()
        };
        let held = take(one);
        assert_eq!((held.len(), take(other).len()), (8, 8));
        let others = take(other);
        assert_eq!(take(third).len(), 0);
        drop(held);
        assert_eq!(take(third).len(), 8);
        drop(others);
        assert!(slots.0.lock().is_empty());
    }
}
