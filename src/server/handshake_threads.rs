//! Threads for the part of a TLS handshake that needs much CPU time: key exchange and signature, which take about a
//! millisecond with RSA.
//!
//! The threads have a low priority, so that open connections are served first. Blocks of networks and the networks of
//! each block take turns ([`FairTurns`]), and only a few handshakes of each network may wait. A handshake whose client
//! has disconnected is skipped. Without these rules, clients that repeat a recorded `ClientHello`, without any cryptography,
//! would use up the CPU time of all other clients.

use std::{
    io,
    net::IpAddr,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Weak},
    thread::JoinHandle,
};

use parking_lot::{Condvar, Mutex};
use tokio::sync::oneshot;

use super::fair_turns::FairTurns;

/// The `nice` value of the threads. They get a tenth of the CPU time if the serving threads need all of it.
const NICENESS: i32 = 10;

/// The handshake threads. They end when this value is dropped.
pub struct HandshakeThreads {
    queue: Arc<HandshakeQueue>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct HandshakeQueue {
    // The threads wait outside the runtime, so a blocking lock is used. It is never held while a step runs.
    state: Mutex<HandshakeQueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct HandshakeQueueState {
    turns: FairTurns<HandshakeStep>,
    is_closed: bool,
}

/// A step of a handshake, and whether the client is still waiting.
struct HandshakeStep {
    run: Box<dyn FnOnce() + Send>,
    client: Weak<()>,
}

/// The error for a step that was not completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepNotDone {
    /// Too many handshakes from this network are waiting.
    TooManyWaiting,
    /// The step panicked, which is a defect.
    Panicked,
}

impl HandshakeThreads {
    /// Starts half as many threads as there are processors.
    pub fn start() -> io::Result<Self> {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self::start_several((processors / 2).max(1))
    }

    fn start_several(count: usize) -> io::Result<Self> {
        let mut started = Self {
            queue: Arc::default(),
            threads: Vec::new(),
        };
        for _ in 0..count {
            let queue = Arc::clone(&started.queue);
            let thread = std::thread::Builder::new().name("tls-handshakes".into());
            started
                .threads
                .push(thread.spawn(move || queue.run_steps())?);
        }
        Ok(started)
    }

    /// Runs a handshake step when its network's turn comes. At most `max_waiting` handshakes of a network may wait.
    /// The step is skipped if the future is dropped before the step begins.
    pub async fn run<T: Send + 'static>(
        &self,
        network: IpAddr,
        max_waiting: usize,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, StepNotDone> {
        let (reply, result) = oneshot::channel();
        let client = Arc::new(());
        let run = Box::new(move || drop(reply.send(work())));
        let step = HandshakeStep {
            run,
            client: Arc::downgrade(&client),
        };
        if !self
            .queue
            .state
            .lock()
            .turns
            .add(network, step, max_waiting, HandshakeStep::is_needed)
        {
            return Err(StepNotDone::TooManyWaiting);
        }
        self.queue.changed.notify_one();
        let result = result.await;
        drop(client);
        result.map_err(|_| StepNotDone::Panicked)
    }
}

impl Drop for HandshakeThreads {
    fn drop(&mut self) {
        // The flag is set under the lock, so that no thread can miss it between its check and its wait.
        self.queue.state.lock().is_closed = true;
        self.queue.changed.notify_all();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a TLS handshake thread panicked");
            }
        }
    }
}

impl HandshakeStep {
    fn is_needed(&self) -> bool {
        self.client.strong_count() > 0
    }
}

impl HandshakeQueue {
    fn run_steps(&self) {
        // On Linux this applies only to the calling thread.
        if let Err(error) = rustix::process::nice(NICENESS) {
            tracing::warn!(%error, "could not lower the priority of the TLS handshake threads");
        }
        while let Some(step) = self.next() {
            // A panic must not end the thread, because the handshakes in the queue need it.
            if catch_unwind(AssertUnwindSafe(step.run)).is_err() {
                tracing::error!("a TLS handshake panicked");
            }
        }
    }

    /// Waits for the next step. Returns `None` when the queue is closed.
    fn next(&self) -> Option<HandshakeStep> {
        let mut state = self.state.lock();
        loop {
            if state.is_closed {
                return None;
            }
            match state.turns.next() {
                Some(step) if step.is_needed() => return Some(step),
                Some(_) => {}
                None => self.changed.wait(&mut state),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::{Pin, pin};
    use std::sync::mpsc::{Sender, channel};

    use futures_util::FutureExt as _;

    use super::*;

    fn address(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    /// A single thread, busy with a step that runs until the sender is dropped.
    fn busy() -> (HandshakeThreads, Sender<()>) {
        let threads = HandshakeThreads::start_several(1).unwrap();
        let (release, released) = channel::<()>();
        let (notify, begun) = channel();
        let waits = move || {
            notify.send(()).unwrap();
            assert!(released.recv().is_err());
        };
        // The step has begun, so it is completed even if its client has disconnected.
        let mut step = Box::pin(threads.run(address(0), 1, waits));
        assert!(step.as_mut().now_or_never().is_none());
        begun.recv().unwrap();
        drop(step);
        (threads, release)
    }

    #[tokio::test]
    async fn a_step_is_skipped_if_its_client_has_gone_and_networks_take_turns() {
        let (threads, release) = busy();
        let (done, order) = channel();
        let step = |network: u8, name: &'static str| {
            let done = done.clone();
            let run = move || done.send(name).unwrap();
            let mut step = Box::pin(threads.run(address(network), 3, run));
            assert!(step.as_mut().now_or_never().is_none());
            step
        };
        let gone = step(1, "gone");
        let waiting = [
            step(1, "first of 1"),
            step(1, "second of 1"),
            step(2, "first of 2"),
        ];
        drop(gone);
        let late = step(1, "third of 1");
        let refused = pin!(threads.run(address(1), 3, || ()));
        assert_eq!(
            refused.now_or_never(),
            Some(Err(StepNotDone::TooManyWaiting))
        );
        drop(release);
        for step in waiting.into_iter().chain([late]) {
            let step: Pin<Box<dyn Future<Output = _>>> = step;
            assert_eq!(step.await, Ok(()));
        }
        let order: Vec<&str> = order.try_iter().collect();
        assert_eq!(
            order,
            ["first of 1", "first of 2", "second of 1", "third of 1"]
        );
    }

    #[tokio::test]
    async fn a_panic_ends_only_its_own_handshake() {
        let threads = HandshakeThreads::start_several(1).unwrap();
        let panicked = threads
            .run(address(1), 9, || -> u8 { panic!("on purpose") })
            .await;
        assert_eq!(panicked, Err(StepNotDone::Panicked));
        assert_eq!(threads.run(address(1), 9, || 7).await, Ok(7));
    }
}
