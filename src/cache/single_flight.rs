//! One fetch per document, independent of any client.
//!
//! Callers that miss a document join its flight. The first caller becomes its [`FlightLeader`] and must start a
//! separate task for the fetch. Each caller decides how long it waits. When the fetch ends with a result, a failure or
//! a panic, the flight is removed and its waiters wake up.

use std::{
    pin::pin,
    sync::{Arc, OnceLock},
};

use dashmap::{DashMap, mapref::entry::Entry};
use tokio::sync::Notify;

use scoregate_base::routes::DocumentKey;

/// Flights by document. A flight is identified by its `Arc`, so that its end does not remove a newer flight.
type FlightTable<T, N> = DashMap<DocumentKey, (Arc<FlightEnd<T>>, N)>;

/// The end of a flight. It is read without a lock, because ten thousand waiters may wake up at the same time.
#[derive(Debug)]
struct FlightEnd<T> {
    /// The inner value is `None` if the flight ended without a result.
    result: OnceLock<Option<T>>,
    wake: Notify,
}

/// Fetches in flight. Each has a note for callers that join later.
#[derive(Debug)]
pub struct SingleFlight<T, N> {
    table: Arc<FlightTable<T, N>>,
}

/// The role of a caller in a flight.
#[derive(Debug)]
pub enum FlightRole<T, N> {
    /// No fetch was in flight: the caller must start one.
    First(FlightLeader<T, N>, FlightCompletion<T>),
    /// A fetch is in flight, with this note.
    Shared(FlightCompletion<T>, N),
}

/// The leader of a flight, which must complete it. Dropping the leader completes the flight without a result.
#[derive(Debug)]
pub struct FlightLeader<T, N> {
    table: Arc<FlightTable<T, N>>,
    key: DocumentKey,
    note: N,
    end: Arc<FlightEnd<T>>,
}

/// The completion of a flight, for waiters.
#[derive(Debug)]
pub struct FlightCompletion<T>(Arc<FlightEnd<T>>);

impl<T, N> Default for SingleFlight<T, N> {
    fn default() -> Self {
        Self {
            table: Arc::default(),
        }
    }
}

impl<T: Clone, N: Clone> SingleFlight<T, N> {
    /// Joins the flight of a document, or starts one with this note.
    pub fn join(&self, key: &DocumentKey, note: N) -> FlightRole<T, N> {
        match self.table.entry(key.clone()) {
            Entry::Occupied(flight) => {
                let (end, note) = flight.get();
                FlightRole::Shared(FlightCompletion(Arc::clone(end)), note.clone())
            }
            Entry::Vacant(place) => {
                let end = Arc::new(FlightEnd {
                    result: OnceLock::new(),
                    wake: Notify::new(),
                });
                place.insert((Arc::clone(&end), note.clone()));
                let result = FlightCompletion(Arc::clone(&end));
                let leader = FlightLeader {
                    table: Arc::clone(&self.table),
                    key: key.clone(),
                    note,
                    end,
                };
                FlightRole::First(leader, result)
            }
        }
    }

    /// Invalidates the flights of these documents: their results are not current, and callers that join later start new
    /// flights.
    pub fn invalidate(&self, fits: impl Fn(&DocumentKey) -> bool) {
        self.table.retain(|key, _| !fits(key));
    }

    /// Whether a document has a flight.
    pub fn has(&self, key: &DocumentKey) -> bool {
        self.table.contains_key(key)
    }

    /// Number of flights.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there is no flight.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Number of callers that wait for a result.
    #[cfg(any(test, feature = "lab"))]
    pub fn waiters(&self) -> usize {
        let table_and_leader = 2;
        let waiters =
            |end: &Arc<FlightEnd<T>>| Arc::strong_count(end).saturating_sub(table_and_leader);
        self.table.iter().map(|flight| waiters(&flight.0)).sum()
    }
}

impl<T, N> FlightLeader<T, N> {
    /// The document of the flight.
    pub fn key(&self) -> &DocumentKey {
        &self.key
    }

    /// The note of the flight.
    pub fn note(&self) -> &N {
        &self.note
    }

    /// Runs `work` unless the flight was invalidated. Invalidation waits until `work` has finished.
    pub fn while_current<R>(&self, work: impl FnOnce() -> R) -> Option<R> {
        // The entry stays locked during the work, so that an invalidation waits for it.
        let flight = self.table.get(&self.key)?;
        Arc::ptr_eq(&flight.0, &self.end).then(work)
    }

    /// Number of waiters.
    pub fn waiters(&self) -> usize {
        let table_and_leader = 1 + usize::from(self.while_current(|| ()).is_some());
        Arc::strong_count(&self.end).saturating_sub(table_and_leader)
    }

    /// Completes the flight. It is removed first, so that awakened waiters can start a new one.
    pub fn complete(self, result: T) {
        self.end_with(Some(result));
    }

    fn end_with(&self, result: Option<T>) {
        self.clear();
        if self.end.result.set(result).is_ok() {
            self.end.wake.notify_waiters();
        }
    }

    fn clear(&self) {
        self.table
            .remove_if(&self.key, |_, (end, _)| Arc::ptr_eq(end, &self.end));
    }
}

impl<T, N> Drop for FlightLeader<T, N> {
    fn drop(&mut self) {
        self.end_with(None);
    }
}

impl<T: Clone> FlightCompletion<T> {
    /// Waits for the result. Returns `None` if the flight ended without one.
    pub async fn result(self) -> Option<T> {
        if let Some(result) = self.0.result.get() {
            return result.clone();
        }
        let mut is_complete = pin!(self.0.wake.notified());
        // The waiter registers before the check: otherwise a completion between check and wait would not wake it.
        is_complete.as_mut().enable();
        if self.0.result.get().is_none() {
            is_complete.await;
        }
        self.0.result.get().cloned().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scoregate_base::routes::{Period, Query, Route};

    fn key() -> DocumentKey {
        DocumentKey::new(Route::Index, None, Query::default(), Period::Day)
    }

    #[tokio::test]
    async fn all_waiters_of_a_flight_get_its_result() {
        let flights = SingleFlight::<u32, &str>::default();
        let FlightRole::First(leader, first) = flights.join(&key(), "first") else {
            panic!("nobody was fetching")
        };
        let others: Vec<_> = (0..100).map(|_| flights.join(&key(), "later")).collect();
        leader.complete(7);
        assert!(flights.is_empty());
        assert_eq!(first.result().await, Some(7));
        for flight in others {
            let FlightRole::Shared(result, "first") = flight else {
                panic!("somebody was fetching")
            };
            assert_eq!(result.result().await, Some(7));
        }
    }

    #[tokio::test]
    async fn invalidated_flight_completes_for_its_waiters_but_is_not_stored() {
        let flights = SingleFlight::<u32, ()>::default();
        let FlightRole::First(old, first) = flights.join(&key(), ()) else {
            panic!("nobody was fetching")
        };
        assert_eq!(old.while_current(|| 1), Some(1));
        flights.invalidate(|_| true);
        let FlightRole::First(new, later) = flights.join(&key(), ()) else {
            panic!("the old flight was joined")
        };
        assert_eq!(
            (old.while_current(|| 1), new.while_current(|| 1)),
            (None, Some(1))
        );
        old.complete(7);
        assert_eq!((first.result().await, flights.len()), (Some(7), 1));
        new.complete(8);
        assert_eq!((later.result().await, flights.len()), (Some(8), 0));
    }

    #[tokio::test]
    async fn panicking_fetch_wakes_its_waiters_and_is_removed() {
        let flights = SingleFlight::<u32, ()>::default();
        let FlightRole::First(leader, result) = flights.join(&key(), ()) else {
            panic!("nobody was fetching")
        };
        drop(leader);
        assert_eq!(result.result().await, None);
        assert!(flights.is_empty() && matches!(flights.join(&key(), ()), FlightRole::First(..)));
    }
}
