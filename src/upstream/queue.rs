//! The queue of upstream requests. Concurrency is limited. Requests are sent in order of priority, and in order of
//! arrival if their priorities are equal. A priority may rise while a request waits, for example when a paid caller
//! joins the fetch of a free caller. Callers apply timeouts: if the future is dropped, the request leaves the queue.

use std::sync::{
    Arc,
    atomic::{AtomicU8, Ordering},
};

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Maximum queue length. Requests beyond it could not be sent in time.
const MAX_QUEUED: usize = 1_024;

/// The priority of an upstream request. The request with the greatest priority is sent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum PriorityClass {
    /// A background refresh, for which no caller waits.
    Refresh,
    /// A caller of a free tier.
    Free,
    /// A caller of a paid tier.
    Paid,
}

/// The current priority of a fetch.
#[derive(Clone, Debug)]
pub struct CurrentPriority(Arc<AtomicU8>);

#[derive(Debug)]
pub struct FetchQueue {
    at_once: usize,
    state: Arc<Mutex<QueueState>>,
}

/// A slot for a request in flight. It is released on drop.
#[derive(Debug)]
pub struct QueueSlot {
    /// `None` once the slot has been passed on.
    queue: Option<Arc<Mutex<QueueState>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueFull;

#[derive(Debug)]
struct QueueState {
    free: usize,
    next: u64,
    waiting: Vec<QueuedFetch>,
}

#[derive(Debug)]
struct QueuedFetch {
    number: u64,
    priority: CurrentPriority,
    wake: oneshot::Sender<QueueSlot>,
}

impl CurrentPriority {
    /// Creates a priority with this initial class.
    pub fn new(class: PriorityClass) -> Self {
        Self(Arc::new(AtomicU8::new(class as u8)))
    }

    /// Raises the priority to at least this one.
    pub fn raise(&self, class: PriorityClass) {
        self.0.fetch_max(class as u8, Ordering::Relaxed);
    }

    fn now(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }
}

impl FetchQueue {
    pub fn new(at_once: usize) -> Self {
        let at_once = at_once.max(1);
        let state = QueueState {
            free: at_once,
            next: 0,
            waiting: Vec::new(),
        };
        Self {
            at_once,
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Waits for a slot.
    pub async fn acquire(&self, priority: CurrentPriority) -> Result<QueueSlot, QueueFull> {
        let awaited = {
            let mut state = self.state.lock();
            if state.free > 0 {
                state.free -= 1;
                return Ok(QueueSlot {
                    queue: Some(Arc::clone(&self.state)),
                });
            }
            if state.waiting.len() >= MAX_QUEUED {
                state.waiting.retain(|waiting| !waiting.wake.is_closed());
            }
            if state.waiting.len() >= MAX_QUEUED {
                return Err(QueueFull);
            }
            let (wake, awaited) = oneshot::channel();
            let number = state.next;
            state.next += 1;
            state.waiting.push(QueuedFetch {
                number,
                priority,
                wake,
            });
            awaited
        };
        // The sender is dropped only when the queue is dropped.
        awaited.await.map_err(|_| QueueFull)
    }

    /// Maximum number of requests in flight.
    pub fn max_concurrent(&self) -> usize {
        self.at_once
    }

    /// Requests in flight.
    pub fn in_flight(&self) -> usize {
        self.at_once.saturating_sub(self.state.lock().free)
    }

    /// Requests in the queue.
    pub fn waiting(&self) -> usize {
        self.state
            .lock()
            .waiting
            .iter()
            .filter(|waiting| !waiting.wake.is_closed())
            .count()
    }
}

impl QueueState {
    /// Removes the next request from the queue.
    fn next(&mut self) -> Option<QueuedFetch> {
        let (_, _, next) = self
            .waiting
            .iter()
            .enumerate()
            .map(|(index, waiting)| (waiting.priority.now(), !waiting.number, index))
            .max()?;
        Some(self.waiting.swap_remove(next))
    }
}

impl Drop for QueueSlot {
    fn drop(&mut self) {
        let Some(mut queue) = self.queue.take() else {
            return;
        };
        loop {
            let next = {
                let mut state = queue.lock();
                let next = state.next();
                state.free += usize::from(next.is_none());
                next
            };
            let Some(next) = next else { return };
            match next.wake.send(Self { queue: Some(queue) }) {
                Ok(()) => return,
                // The request has left the queue. The slot must not be dropped here, because it would then be passed on
                // a second time.
                Err(mut refused) => match refused.queue.take() {
                    Some(returned) => queue = returned,
                    None => return,
                },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    #[test]
    fn highest_priority_is_first_then_arrival_order() {
        let queue = FetchQueue::new(1);
        let mut slot = queue
            .acquire(CurrentPriority::new(PriorityClass::Free))
            .now_or_never()
            .unwrap()
            .unwrap();
        let raised = CurrentPriority::new(PriorityClass::Refresh);
        let priorities = [
            CurrentPriority::new(PriorityClass::Free),
            CurrentPriority::new(PriorityClass::Refresh),
            CurrentPriority::new(PriorityClass::Paid),
            CurrentPriority::new(PriorityClass::Free),
            raised.clone(),
        ];
        let mut waiting: Vec<_> = priorities
            .into_iter()
            .map(|priority| Some(Box::pin(queue.acquire(priority))))
            .collect();
        for waiter in waiting.iter_mut().flatten() {
            assert!(waiter.as_mut().now_or_never().is_none());
        }
        raised.raise(PriorityClass::Paid);
        for expected in [2, 4, 0, 3, 1] {
            drop(slot);
            let mut served = Vec::new();
            for (number, waiter) in waiting.iter_mut().enumerate() {
                if let Some(Ok(slot)) = waiter
                    .as_mut()
                    .and_then(|waiter| waiter.as_mut().now_or_never())
                {
                    served.push((number, slot));
                }
            }
            let [(number, next)] = <[_; 1]>::try_from(served).unwrap();
            assert_eq!(number, expected);
            waiting[number] = None;
            slot = next;
        }
        drop(slot);
        assert_eq!(queue.state.lock().free, 1);
    }

    #[test]
    fn a_cancelled_wait_keeps_no_slot_before_or_after_its_turn() {
        let queue = FetchQueue::new(1);
        let slot = queue
            .acquire(CurrentPriority::new(PriorityClass::Free))
            .now_or_never()
            .unwrap()
            .unwrap();
        let mut cancelled = Box::pin(queue.acquire(CurrentPriority::new(PriorityClass::Paid)));
        let mut unpolled = Box::pin(queue.acquire(CurrentPriority::new(PriorityClass::Free)));
        let mut last = Box::pin(queue.acquire(CurrentPriority::new(PriorityClass::Refresh)));
        for waiter in [&mut cancelled, &mut unpolled, &mut last] {
            assert!(waiter.as_mut().now_or_never().is_none());
        }
        drop(cancelled);
        drop(slot);
        // This request gets a slot, but leaves the queue before it is polled.
        drop(unpolled);
        assert!(last.now_or_never().unwrap().is_ok());
        assert_eq!((queue.waiting(), queue.state.lock().free), (0, 1));
    }

    #[test]
    fn a_full_queue_rejects_requests_until_one_leaves() {
        let queue = FetchQueue::new(1);
        let _turn = queue
            .acquire(CurrentPriority::new(PriorityClass::Free))
            .now_or_never()
            .unwrap()
            .unwrap();
        let mut waiters: Vec<_> = (0..MAX_QUEUED)
            .map(|_| Box::pin(queue.acquire(CurrentPriority::new(PriorityClass::Free))))
            .collect();
        for waiter in &mut waiters {
            assert!(waiter.as_mut().now_or_never().is_none());
        }
        assert_eq!(
            queue
                .acquire(CurrentPriority::new(PriorityClass::Paid))
                .now_or_never()
                .unwrap()
                .unwrap_err(),
            QueueFull
        );
        waiters.truncate(1);
        assert!(
            queue
                .acquire(CurrentPriority::new(PriorityClass::Paid))
                .now_or_never()
                .is_none()
        );
    }
}
