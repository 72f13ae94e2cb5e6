//! Virtual time, and a single-threaded executor: ready tasks are polled in a seeded order, and when none is ready, time
//! moves to the next timer.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use parking_lot::Mutex;

use crate::quota::LedgerWork;

/// Seeded numbers: `splitmix64`.
pub struct SeededNumbers(u64);

impl SeededNumbers {
    pub fn new(named: &[u64]) -> Self {
        named
            .iter()
            .fold(Self(1), |numbers, name| Self(Self(numbers.0 ^ name).next()))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap()
    }

    pub fn is_one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// A time from `least` to `most`, in milliseconds, with a fraction.
    pub fn millis(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_micros(least * 1_000 + self.below((most - least) * 1_000))
    }
}

/// The time since the beginning of a run, and the work that was started.
#[derive(Clone, Default)]
pub struct VirtualTime(Arc<Mutex<TimeState>>);

#[derive(Default)]
struct TimeState {
    now: Duration,
    timers: BTreeMap<(Duration, u64), Waker>,
    spawned: Vec<(u64, LedgerWork, bool)>,
    /// Number of timers and tasks so far.
    started: u64,
}

impl VirtualTime {
    pub fn now(&self) -> Duration {
        self.0.lock().now
    }

    /// Starts a task of a process.
    pub fn spawn(&self, owner: u64, work: impl Future<Output = ()> + Send + 'static) {
        self.start(owner, Box::pin(work), true);
    }

    /// Starts a task. `writes` if it may wait for a thread.
    pub fn start(&self, owner: u64, work: LedgerWork, writes: bool) {
        let mut state = self.0.lock();
        state.started += 1;
        state.spawned.push((owner, work, writes));
    }

    pub async fn sleep(&self, time: Duration) {
        let end = self.now() + time;
        let mut is_set = false;
        poll_fn(|context| {
            if self.now() >= end {
                return Poll::Ready(());
            }
            if !std::mem::replace(&mut is_set, true) {
                self.wake_at(end, context.waker());
            }
            Poll::Pending
        })
        .await;
    }

    pub fn wake_at(&self, at: Duration, waker: &Waker) {
        let mut state = self.0.lock();
        state.started += 1;
        let key = (at, state.started);
        state.timers.insert(key, waker.clone());
    }
}

type ReadyTasks = Arc<Mutex<BTreeSet<u64>>>;

struct ReadyFlag {
    task: u64,
    ready: ReadyTasks,
}

impl Wake for ReadyFlag {
    fn wake(self: Arc<Self>) {
        self.ready.lock().insert(self.task);
    }
}

struct SimulatedTask {
    owner: u64,
    work: LedgerWork,
    waker: Waker,
    writes: bool,
}

/// Polls tasks.
pub struct VirtualExecutor {
    pub time: VirtualTime,
    tasks: BTreeMap<u64, SimulatedTask>,
    ready: ReadyTasks,
    numbers: SeededNumbers,
    last: u64,
}

impl VirtualExecutor {
    pub fn new(seed: u64) -> Self {
        Self {
            time: VirtualTime::default(),
            tasks: BTreeMap::new(),
            ready: ReadyTasks::default(),
            numbers: SeededNumbers::new(&[seed]),
            last: 0,
        }
    }

    /// A ready task whose owner may run, and its owner.
    pub fn next_ready(&mut self, may_run: impl Fn(u64) -> bool) -> Option<[u64; 2]> {
        let spawned = std::mem::take(&mut self.time.0.lock().spawned);
        for (owner, work, writes) in spawned {
            self.last += 1;
            let task = self.last;
            let ready = Arc::clone(&self.ready);
            ready.lock().insert(task);
            let waker = Waker::from(Arc::new(ReadyFlag { task, ready }));
            let started = SimulatedTask {
                owner,
                work,
                waker,
                writes,
            };
            self.tasks.insert(task, started);
        }
        let mut ready = self.ready.lock();
        ready.retain(|task| self.tasks.contains_key(task));
        let owners = ready.iter().map(|task| [*task, self.tasks[task].owner]);
        let runnable: Vec<_> = owners.filter(|[_, owner]| may_run(*owner)).collect();
        let chosen = (!runnable.is_empty()).then(|| self.numbers.index(runnable.len()))?;
        ready.remove(&runnable[chosen][0]);
        Some(runnable[chosen])
    }

    /// Polls a task. Returns whether it may wait for a thread: for something other than a timer or a new task.
    pub fn poll(&mut self, task: u64) -> bool {
        let started = self.time.0.lock().started;
        let mut polled = self.tasks.remove(&task).unwrap();
        let waker = polled.waker.clone();
        let is_pending = polled
            .work
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending();
        let writes = polled.writes;
        if is_pending {
            self.tasks.insert(task, polled);
        }
        is_pending && writes && self.time.0.lock().started == started
    }

    /// Drops all tasks of a process.
    pub fn end(&mut self, owner: u64) {
        let left = self.tasks.extract_if(.., |_, task| task.owner == owner);
        let dropped: Vec<_> = left.collect();
        drop(dropped);
        self.time.0.lock().spawned.retain(|(of, ..)| *of != owner);
    }

    /// Moves time to the next timer, or to `end` if there is none before. Returns whether there was one.
    pub fn advance(&self, end: Duration) -> bool {
        let mut state = self.time.0.lock();
        let next = state
            .timers
            .first_entry()
            .filter(|next| next.key().0 <= end);
        let Some(next) = next else {
            state.now = end;
            return false;
        };
        let ((at, _), waker) = next.remove_entry();
        state.now = at;
        drop(state);
        waker.wake();
        true
    }
}
