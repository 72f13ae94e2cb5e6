//! Time to wake all requests that wait for one document, from the completion of its fetch.
//!
//! In process, without sockets or responses. `cargo bench --bench measure -- flight` is small; `SCOREGATE_FULL=1` wakes ten
//! thousand.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use scoregate::cache::{FlightRole, SingleFlight};
use scoregate_base::routes::{DocumentKey, Period, Query, Route};
use tokio::sync::{Semaphore, oneshot};

const ROUNDS: usize = 21;

pub(crate) fn run() {
    let is_full = std::env::var_os("SCOREGATE_FULL").is_some();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    println!("from a flight's landing until the last who waits is awake, {ROUNDS} rounds");
    println!("{:>8} {:>12} {:>12}", "waiting", "median", "worst");
    for waiting in if is_full {
        vec![100, 1_000, 10_000]
    } else {
        vec![100, 1_000]
    } {
        let mut took: Vec<Duration> = (0..ROUNDS)
            .map(|_| runtime.block_on(round(waiting)))
            .collect();
        took.sort_unstable();
        let median = took.get(ROUNDS / 2).unwrap();
        let worst = took.last().unwrap();
        println!("{waiting:>8} {median:>12.1?} {worst:>12.1?}");
    }
}

/// One flight with this many waiters, which do not interact: that would be measured too.
async fn round(waiting: usize) -> Duration {
    let flights = Arc::new(SingleFlight::<u32, ()>::default());
    let key = DocumentKey::new(Route::Index, None, Query::default(), Period::Day);
    let FlightRole::First(ticket, _own) = flights.join(&key, ()) else {
        unreachable!("the table is new")
    };
    let aboard = Arc::new(Semaphore::new(0));
    let asleep = Arc::new(AtomicUsize::new(waiting));
    let (last, awake) = oneshot::channel();
    let last = Arc::new(Mutex::new(Some(last)));
    for _ in 0..waiting {
        let flights = Arc::clone(&flights);
        let key = key.clone();
        let aboard = Arc::clone(&aboard);
        let asleep = Arc::clone(&asleep);
        let last = Arc::clone(&last);
        drop(tokio::spawn(async move {
            let FlightRole::Shared(landed, ()) = flights.join(&key, ()) else {
                unreachable!("it is under way")
            };
            aboard.add_permits(1);
            assert_eq!(landed.result().await, Some(7));
            if asleep.fetch_sub(1, Ordering::AcqRel) == 1 {
                last.lock()
                    .unwrap()
                    .take()
                    .unwrap()
                    .send(Instant::now())
                    .unwrap();
            }
        }));
    }
    drop(
        aboard
            .acquire_many(u32::try_from(waiting).unwrap())
            .await
            .unwrap(),
    );
    // As in the program, a task completes it and not the thread that started the runtime.
    let landing = tokio::spawn(async move {
        let landed = Instant::now();
        ticket.complete(7);
        landed
    });
    awake.await.unwrap().duration_since(landing.await.unwrap())
}
