//! What a connection is doing: written by its parts as they go (`watched`, `http1`, `http2`), read by `watch`.
//!
//! Not for: what that is due to (`deadlines`), nor for waiting or closing anything.

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;
use tokio::sync::Notify;

use crate::clock::{Clock, Mono};

use super::deadlines::{Course, Deadlines, Overdue, Phase};

/// So many bytes may arrive on HTTP/2 between the beginnings and ends of requests: a head and what a window holds of a
/// body nobody wants, twice over. PINGs, SETTINGS and the like ask for nothing, are answered all the same, and would
/// otherwise go on for ever.
const UNASKED: usize = 128 * 1_024;
/// For so many bytes sent one more may arrive: whoever reads a large answer has to make room for the rest of it.
const SENT_FOR_ONE: usize = 4;

/// What a connection is doing.
pub(super) struct Pulse {
    clock: Clock,
    state: Mutex<State>,
    /// Somebody wants the connection to notice what was told.
    nudge: Notify,
}

struct State {
    phase: Phase,
    since: Mono,
    /// Requests that were begun and not sent to their last byte, each with its beginning.
    requests: SmallVec<[(u32, Mono); 2]>,
    next: u32,
    /// On HTTP/1.1: the answer is made; once it is sent, the request is over.
    answered: bool,
    blocked: Option<Mono>,
    retiring: Option<Mono>,
    cut: bool,
    /// On HTTP/2: the bytes that arrived since a request began or ended.
    unasked: usize,
}

/// All that a watch has to know of a connection, as it is at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Glance {
    pub(super) is_cut: bool,
    pub(super) is_retiring: bool,
    /// What has to happen next, and until when.
    pub(super) end: Mono,
    pub(super) overdue: Overdue,
}

/// A request that was begun on HTTP/2. It is over when this is dropped.
pub(super) struct Ticket {
    pulse: Arc<Pulse>,
    number: u32,
}

impl Pulse {
    pub(super) fn new(clock: Clock) -> Self {
        let state = State {
            phase: Phase::Opening,
            since: clock.mono(),
            requests: SmallVec::new(),
            next: 0,
            answered: false,
            blocked: None,
            retiring: None,
            cut: false,
            unasked: 0,
        };
        Self { clock, state: Mutex::new(state), nudge: Notify::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing in here panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// HTTP/2 begins.
    pub(super) fn speaks_http2(&self) {
        let mut state = self.state();
        (state.phase, state.since) = (Phase::Streams, self.clock.mono());
    }

    /// So many bytes arrived. Answers whether to go on: not if nothing was asked for in far too many of them.
    pub(super) fn heard(&self, bytes: usize) -> bool {
        let mut state = self.state();
        if state.phase == Phase::Idle && state.requests.is_empty() {
            (state.phase, state.since) = (Phase::Head, self.clock.mono());
        }
        if state.phase == Phase::Streams {
            state.unasked += bytes;
        }
        state.unasked <= UNASKED
    }

    /// A request's head is there, on HTTP/1.1. Its time runs since its first byte, but for what opened the connection.
    pub(super) fn begun(&self) {
        let mut state = self.state();
        state.answered = false;
        if state.requests.is_empty() {
            let since = if state.phase == Phase::Head { state.since } else { self.clock.mono() };
            state.requests.push((0, since));
        }
    }

    /// Its answer is made. Answers whether the connection is to end with it.
    pub(super) fn answered(&self) -> bool {
        let mut state = self.state();
        state.answered = true;
        state.retiring.is_some()
    }

    /// All that was written is with the kernel.
    pub(super) fn flushed(&self) {
        let mut state = self.state();
        state.blocked = None;
        if state.answered {
            state.answered = false;
            state.requests.clear();
            (state.phase, state.since) = (Phase::Idle, self.clock.mono());
        }
    }

    /// A request's head is there, on HTTP/2.
    pub(super) fn ticket(self: &Arc<Self>) -> Ticket {
        let mut state = self.state();
        let number = state.next;
        state.next = number.wrapping_add(1);
        let since = self.clock.mono();
        state.requests.push((number, since));
        state.unasked = 0;
        Ticket { pulse: Arc::clone(self), number }
    }

    /// The client takes nothing.
    pub(super) fn blocked(&self) {
        let mut state = self.state();
        if state.blocked.is_none() {
            state.blocked = Some(self.clock.mono());
        }
    }

    /// The client took so many bytes.
    pub(super) fn took(&self, bytes: usize) {
        let mut state = self.state();
        state.unasked = state.unasked.saturating_sub(bytes / SENT_FOR_ONE);
        if state.blocked.is_some() {
            state.blocked = None;
        }
    }

    /// The connection is to end with the next answer, or soon.
    pub(super) fn retire(&self) {
        let now = self.clock.mono();
        self.state().retiring.get_or_insert(now);
        self.nudge.notify_one();
    }

    /// Whether it is.
    pub(super) fn is_retiring(&self) -> bool {
        self.state().retiring.is_some()
    }

    /// Its place is needed for somebody else: it ends now.
    pub(super) fn cut(&self) {
        self.state().cut = true;
        self.nudge.notify_one();
    }

    /// Whether it does.
    pub(super) fn is_cut(&self) -> bool {
        self.state().cut
    }

    /// Waits until somebody wants to be noticed.
    pub(super) async fn nudged(&self) {
        self.nudge.notified().await;
    }

    /// Since when nothing was asked here; `None` while a request is being answered.
    pub(super) fn idle_since(&self) -> Option<Mono> {
        let state = self.state();
        (state.requests.is_empty() && !state.cut).then_some(state.since)
    }

    /// What it is doing, and until when it may.
    pub(super) fn glance(&self, deadlines: &Deadlines) -> Glance {
        let state = self.state();
        let (end, overdue) = deadlines.next(state.course());
        Glance { is_cut: state.cut, is_retiring: state.retiring.is_some(), end, overdue }
    }
}

impl State {
    fn course(&self) -> Course {
        let Self { phase, since, blocked, retiring, .. } = *self;
        let asked = self.requests.iter().map(|(_, since)| *since).min();
        Course { phase, since, asked, blocked, retiring }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.pulse.state();
        state.requests.retain(|(number, _)| *number != self.number);
        state.unasked = 0;
        if state.requests.is_empty() {
            state.since = self.pulse.clock.mono();
        }
    }
}
