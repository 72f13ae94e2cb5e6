//! The open connections of the side port. If there are too many, the oldest connection without a request is closed to make room
//! for a new one, so that idle and slow clients cannot block probes.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// Maximum number of connections. This allows several connections for every program that should use this port.
pub const MAX_CONNECTIONS: usize = 128;

/// Open connections, oldest first.
#[derive(Default)]
pub struct SideConnections(Mutex<OpenConnections>);

#[derive(Default)]
struct OpenConnections {
    by_number: BTreeMap<u64, Arc<SideConnection>>,
    next: u64,
}

/// State of a connection.
#[derive(Default)]
pub struct SideConnection {
    /// The number of requests in progress.
    requests: AtomicUsize,
    displaced: CancellationToken,
}

/// The slot of a connection, which is released when dropped.
pub struct SideSlot {
    all: Arc<SideConnections>,
    number: u64,
    connection: Arc<SideConnection>,
}

/// A request in progress. The request ends when this value is dropped.
pub struct SideRequest<'c>(&'c SideConnection);

impl SideConnections {
    /// Adds a connection. Returns `None` if there are too many and all of them have requests.
    pub fn open(self: &Arc<Self>) -> Option<SideSlot> {
        let mut open = self.0.lock();
        if open.by_number.len() >= MAX_CONNECTIONS {
            let oldest = open
                .by_number
                .iter()
                .find(|(_, other)| other.requests.load(Ordering::Relaxed) == 0)
                .map(|(number, _)| *number)?;
            // The slot is freed before the connection's task ends.
            if let Some(oldest) = open.by_number.remove(&oldest) {
                oldest.displaced.cancel();
            }
        }
        let number = open.next;
        let connection = Arc::<SideConnection>::default();
        open.next += 1;
        open.by_number.insert(number, Arc::clone(&connection));
        Some(SideSlot {
            all: Arc::clone(self),
            number,
            connection,
        })
    }
}

impl SideSlot {
    pub fn begin_request(&self) -> SideRequest<'_> {
        self.connection.requests.fetch_add(1, Ordering::Relaxed);
        SideRequest(&self.connection)
    }

    /// Waits until the connection has to be closed.
    pub async fn displaced(&self) {
        self.connection.displaced.cancelled().await;
    }
}

impl Drop for SideRequest<'_> {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Drop for SideSlot {
    fn drop(&mut self) {
        self.all.0.lock().by_number.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[test]
    fn the_oldest_connection_without_a_request_is_closed_for_a_new_one() {
        let all = Arc::<SideConnections>::default();
        let slots: Vec<SideSlot> = (0..MAX_CONNECTIONS).map(|_| all.open().unwrap()).collect();
        let closed = || -> Vec<usize> {
            let is_closed = |at: &usize| slots[*at].displaced().now_or_never().is_some();
            (0..slots.len()).filter(is_closed).collect()
        };
        let request = slots[0].begin_request();
        let _new = all.open().unwrap();
        assert_eq!(closed(), [1]);
        drop(request);
        let _newer = all.open().unwrap();
        assert_eq!(closed(), [0, 1]);
        let _requests: Vec<SideRequest<'_>> = slots.iter().map(SideSlot::begin_request).collect();
        let others: Vec<SideSlot> = std::iter::from_fn(|| all.open())
            .take(2 * MAX_CONNECTIONS)
            .collect();
        assert_eq!(
            (closed().len(), others.len()),
            (2, 2 * MAX_CONNECTIONS),
            "new ones displace each other"
        );
        let _busy: Vec<SideRequest<'_>> = others.iter().map(SideSlot::begin_request).collect();
        assert!(all.open().is_none());
        assert_eq!(all.0.lock().by_number.len(), MAX_CONNECTIONS);
    }

    #[test]
    fn a_connection_that_ends_frees_its_place() {
        let all = Arc::<SideConnections>::default();
        for _ in 0..3 * MAX_CONNECTIONS {
            drop(all.open().unwrap());
        }
        assert!(all.0.lock().by_number.is_empty());
    }
}
