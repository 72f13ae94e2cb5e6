//! Sends the planned requests at the scheduled times, and records the results.
//!
//! A thread of its own releases each request at its time; a free caller sends it. If no caller is free the request
//! waits, and the wait counts as latency.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::sync::Semaphore;

use super::client::{Caller, Client, TIMEOUT};
use super::plan::Plan;
use super::record::{Outcome, Record, RequestResult};
use super::schedule::Schedule;

/// Requests of one kind, with connections of their own.
pub(crate) struct Line {
    plan: Arc<Plan>,
    schedule: Schedule,
    client: Client,
    released: Semaphore,
    taken: AtomicU64,
    record: Mutex<Record>,
}

/// An action in the middle of a run.
pub(crate) struct Event<'e> {
    pub(crate) at: Duration,
    pub(crate) what: Box<dyn FnOnce() + Send + 'e>,
}

impl Line {
    pub(crate) fn new(plan: Arc<Plan>, schedule: Schedule, client: Client) -> Arc<Self> {
        let record = Mutex::new(Record::new(schedule.clone()));
        let released = Semaphore::new(0);
        let taken = AtomicU64::new(0);
        Arc::new(Self {
            plan,
            schedule,
            client,
            released,
            taken,
            record,
        })
    }

    /// Releases each request when it is due.
    fn pace(&self, begun: Instant) {
        sleep_finely();
        for number in 0..self.schedule.requests() {
            let Some((due, _)) = self.schedule.due(number) else {
                break;
            };
            std::thread::sleep(due.saturating_sub(begun.elapsed()));
            let late = begun.elapsed().saturating_sub(due);
            self.released.add_permits(1);
            self.record.lock().unwrap().released_late(late);
        }
        // Callers find out that there are no more requests.
        self.released.add_permits(self.client.all_callers().len());
    }

    /// Sends one request after another until there are none.
    async fn call(self: Arc<Self>, mut caller: Caller, begun: Instant) {
        loop {
            let (permit, was_awaited) = match self.released.try_acquire() {
                Ok(permit) => (permit, false),
                Err(_) => (
                    self.released.acquire().await.expect("it is never closed"),
                    true,
                ),
            };
            permit.forget();
            let number = self.taken.fetch_add(1, Ordering::Relaxed);
            let Some((due, phase)) = self.schedule.due(number) else {
                return;
            };
            let sent = begun.elapsed();
            let left = (due + TIMEOUT).saturating_sub(sent);
            let outcome = if left.is_zero() {
                // Lets a run end: the request has waited for a connection as long as its timeout.
                Outcome::TooLate
            } else {
                caller
                    .send_planned(&self.plan, self.plan.request(number), left)
                    .await
            };
            let result = RequestResult {
                phase,
                due,
                sent,
                ended: begun.elapsed(),
                outcome,
                was_awaited,
            };
            self.record.lock().unwrap().take(&result);
        }
    }
}

/// Drives these lines concurrently to their end; returns their records.
pub(crate) fn drive(
    runtime: &Runtime,
    lines: &[Arc<Line>],
    begun: Instant,
    events: Vec<Event<'_>>,
) -> Vec<Record> {
    std::thread::scope(|scope| {
        for line in lines {
            scope.spawn(move || line.pace(begun));
        }
        for Event { at, what } in events {
            scope.spawn(move || {
                std::thread::sleep(at.saturating_sub(begun.elapsed()));
                what();
            });
        }
        let callers = lines.iter().flat_map(|line| {
            let callers: Vec<Caller> = line.client.all_callers();
            callers
                .into_iter()
                .map(|caller| runtime.spawn(Arc::clone(line).call(caller, begun)))
        });
        for caller in callers.collect::<Vec<_>>() {
            runtime.block_on(caller).unwrap();
        }
    });
    lines
        .iter()
        .map(|line| line.record.lock().unwrap().clone())
        .collect()
}

/// The kernel may let this thread sleep 50 us longer than requested, as long as a hit takes. If this timer slack
/// cannot be reduced, it counts as the client's own delay.
fn sleep_finely() {
    let thread = std::fs::read_link("/proc/thread-self").ok();
    if let Some(number) = thread.as_deref().and_then(|path| path.file_name()) {
        drop(std::fs::write(
            std::path::Path::new("/proc")
                .join(number)
                .join("timerslack_ns"),
            "1",
        ));
    }
}
