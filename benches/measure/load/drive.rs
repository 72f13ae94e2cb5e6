//! Sends the planned requests at the scheduled times, and records the results.
//!
//! A thread of its own releases each request at its time; a free caller sends it. If no caller is free the request
//! waits, and the wait counts as latency.

use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::runtime::Runtime;
use tokio::sync::Semaphore;

use super::client::{Caller, Client};
use super::plan::Plan;
use super::record::{Outcome, Record, RequestResult, shown};
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
        self.released.add_permits(self.client.callers());
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
            let left = (due + self.client.timeout()).saturating_sub(sent);
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
    let is_over = AtomicBool::new(false);
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
        scope.spawn(|| tell_progress(lines, begun, &is_over));
        let callers = lines.iter().flat_map(|line| {
            let callers: Vec<Caller> = line.client.all_callers();
            callers
                .into_iter()
                .map(|caller| runtime.spawn(Arc::clone(line).call(caller, begun)))
        });
        for caller in callers.collect::<Vec<_>>() {
            runtime.block_on(caller).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    lines
        .iter()
        .map(|line| line.record.lock().unwrap().clone())
        .collect()
}

/// One line on standard error that is overwritten; without a terminal, a line every ten seconds.
fn tell_progress(lines: &[Arc<Line>], begun: Instant, is_over: &AtomicBool) {
    let is_terminal = std::io::stderr().is_terminal();
    let step = Duration::from_secs(if is_terminal { 1 } else { 10 });
    let mut next = begun + step;
    let mut all = 0;
    let (opening, ending) = if is_terminal {
        ("\r\x1b[K", "")
    } else {
        ("", "\n")
    };
    let mut stderr = std::io::stderr();
    while !is_over.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(20));
        if Instant::now() < next {
            continue;
        }
        next += step;
        let record = lines[0].record.lock().unwrap();
        let so_far: u64 = record
            .phases
            .iter()
            .map(super::record::LatencyStats::total)
            .sum();
        let lasts = record.schedule.lasts().as_secs();
        // Responses of the last second may still arrive.
        let p99 = record
            .seconds
            .iter()
            .rev()
            .nth(1)
            .map_or(0, |second| second.all.value_at_quantile(0.99));
        let at = begun.elapsed().as_secs();
        let line = format!(
            "{at} s of {lasts}: {} answered since, p99 {}, {} queued",
            so_far - all,
            shown(p99),
            record.queued
        );
        drop(record);
        all = so_far;
        drop(write!(stderr, "{opening}{line}{ending}"));
        drop(stderr.flush());
    }
    if is_terminal {
        drop(write!(stderr, "\r\x1b[K"));
    }
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
