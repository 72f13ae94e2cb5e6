//! Sends the planned requests at the scheduled times, and records the results.
//!
//! Each connection takes the next request and sends it when it is due. If none is free the request waits, and the wait
//! counts as latency.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use super::{
    client::{Client, TIMEOUT},
    plan::Plan,
    record::{Outcome, Record, RequestResult},
    schedule::Schedule,
};
use crate::generator::sleep_finely;

/// Requests of one kind, with connections of their own.
pub struct Line {
    plan: Arc<Plan>,
    schedule: Schedule,
    client: Client,
    connections: usize,
    taken: AtomicU64,
    record: Mutex<Record>,
}

/// An action in the middle of a run.
pub struct Event<'e> {
    pub at: Duration,
    pub what: Box<dyn FnOnce() + Send + 'e>,
}

impl Line {
    pub fn new(plan: Arc<Plan>, schedule: Schedule, client: Client, connections: usize) -> Self {
        Self {
            plan,
            client,
            connections,
            taken: AtomicU64::new(0),
            record: Mutex::new(Record::new(schedule.clone())),
            schedule,
        }
    }

    /// Sends one request after another on a connection until there are none.
    fn call(&self, begun: Instant) {
        sleep_finely();
        let mut client = self.client.clone();
        loop {
            let number = self.taken.fetch_add(1, Ordering::Relaxed);
            let Some((due, phase)) = self.schedule.due(number) else {
                return;
            };
            let pause = due.saturating_sub(begun.elapsed());
            std::thread::sleep(pause);
            let sent = begun.elapsed();
            let left = (due + TIMEOUT).saturating_sub(sent);
            let outcome = if left.is_zero() {
                // Lets a run end: the request has waited for a connection as long as its timeout.
                Outcome::TooLate
            } else {
                client.send_planned(&self.plan, self.plan.request(number), left)
            };
            let result = RequestResult {
                phase,
                due,
                sent,
                ended: begun.elapsed(),
                outcome,
                was_awaited: !pause.is_zero(),
            };
            self.record.lock().unwrap().take(&result);
        }
    }
}

/// Drives these lines concurrently from that time to their end; returns their records.
pub fn drive(lines: Vec<Line>, begun: Instant, events: Vec<Event<'_>>) -> Vec<Record> {
    std::thread::sleep(begun.saturating_duration_since(Instant::now()));
    std::thread::scope(|scope| {
        for line in &lines {
            for _ in 0..line.connections {
                scope.spawn(|| line.call(begun));
            }
        }
        for Event { at, what } in events {
            scope.spawn(move || {
                std::thread::sleep(at.saturating_sub(begun.elapsed()));
                what();
            });
        }
    });
    let records = lines.into_iter().map(|line| line.record);
    records.map(|record| record.into_inner().unwrap()).collect()
}
