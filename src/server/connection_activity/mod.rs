//! What a connection is doing: written by its parts as they go (`watched`, `http1`, `http2`), read by `watch`.
//!
//! Not for: what that is due to (`deadlines`), nor for waiting or closing anything.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;
use tokio::sync::Notify;

use crate::clock::{Clock, Mono};
use crate::gateway::Authenticated;

use super::deadlines::{ConnectionPhase, ConnectionProgress, Deadlines, MissedDeadline};
use super::displacement::ConnectionConduct;
use super::unsent::{UnsentBytes, UnsentResponse, UnsentResponses};

/// So many bytes may arrive on HTTP/2 between the beginnings and ends of requests: a head and what a window holds of a
/// body nobody wants, twice over. PINGs, SETTINGS and the like ask for nothing, are answered all the same, and would
/// otherwise go on for ever.
const UNASKED: usize = 128 * 1_024;
/// For so many bytes sent one more may arrive: whoever reads a large answer has to make room for the rest of it.
const SENT_FOR_ONE: usize = 4;
/// The most responses of an HTTP/2 connection without a key that may wait for its client. A browser reads the pages on fewer
/// streams; a client that makes room for what it asks for never has one waiting.
const UNSENT_WITHOUT_KEY: usize = 8;
/// The most requests of such a connection that are refused while so many responses wait; one more ends the connection. The codec
/// keeps a record of each refused stream, 328 bytes in a table that doubles: with the waiting ones there are at most 32.
const REFUSED_WITHOUT_KEY: usize = 20;

/// What a connection is doing.
pub(super) struct ConnectionActivity {
    clock: Clock,
    state: Mutex<ActivityState>,
    /// Somebody wants the connection to notice what was told.
    nudge: Arc<Notify>,
    authenticated: Authenticated,
    /// On HTTP/2: how often the codec was polled.
    turn: AtomicUsize,
    /// The responses that wait in the whole process.
    all_unsent: Arc<UnsentResponses>,
}

struct ActivityState {
    phase: ConnectionPhase,
    since: Mono,
    /// Requests that were begun and not sent to their last byte, each with its beginning.
    requests: SmallVec<[(u32, Mono); 2]>,
    next: u32,
    /// On HTTP/1.1: the answer is made; once it is sent, the request is over.
    answered: bool,
    /// What waits to be taken from the socket.
    socket: UnsentBytes,
    /// On HTTP/2: what waits for the client's windows.
    bodies: UnsentBytes,
    /// On HTTP/2: requests without a response so far.
    unanswered: usize,
    /// On HTTP/2: responses with a body that is not sent to its last byte.
    unsent: usize,
    /// On HTTP/2: requests refused since a response was last sent to its last byte.
    refused: usize,
    opened: Mono,
    /// Response bytes that the client has taken.
    taken: u64,
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
    /// `end` may come nearer by what other connections do.
    pub(super) may_hurry: bool,
    /// What has to happen next, and until when.
    pub(super) end: Mono,
    pub(super) overdue: MissedDeadline,
}

/// A request that was begun on HTTP/2. It is over when this is dropped.
pub(super) struct StreamGuard {
    pulse: Arc<ConnectionActivity>,
    number: u32,
    is_answered: bool,
    unsent: Option<UnsentResponse>,
}

impl ConnectionActivity {
    pub(super) fn new(clock: Clock, all_unsent: Arc<UnsentResponses>) -> Self {
        let opened = clock.mono();
        let state = ActivityState {
            phase: ConnectionPhase::Opening,
            since: opened,
            opened,
            requests: SmallVec::new(),
            next: 0,
            answered: false,
            socket: UnsentBytes::default(),
            bodies: UnsentBytes::default(),
            unanswered: 0,
            unsent: 0,
            refused: 0,
            taken: 0,
            retiring: None,
            cut: false,
            unasked: 0,
        };
        let (state, nudge) = (Mutex::new(state), Arc::new(Notify::new()));
        let authenticated = Authenticated::not_yet(Arc::clone(&nudge));
        Self { clock, state, nudge, authenticated, turn: AtomicUsize::new(0), all_unsent }
    }

    /// Whether a valid key was presented here; set by the gateway.
    pub(super) fn authenticated(&self) -> &Authenticated {
        &self.authenticated
    }

    fn state(&self) -> MutexGuard<'_, ActivityState> {
        // Nothing in here panics while it holds the lock.
        self.state.lock()
    }

    /// HTTP/2 begins.
    pub(super) fn speaks_http2(&self) {
        let mut state = self.state();
        (state.phase, state.since) = (ConnectionPhase::Streams, self.clock.mono());
    }

    /// So many bytes arrived. Answers whether to go on: not if nothing was asked for in far too many of them.
    pub(super) fn heard(&self, bytes: usize) -> bool {
        let mut state = self.state();
        if state.phase == ConnectionPhase::Idle && state.requests.is_empty() {
            (state.phase, state.since) = (ConnectionPhase::Head, self.clock.mono());
        }
        if state.phase == ConnectionPhase::Streams {
            state.unasked += bytes;
        }
        state.unasked <= UNASKED
    }

    /// A request's head is there, on HTTP/1.1. Its time runs since its first byte, but for what opened the connection.
    pub(super) fn begun(&self) {
        let mut state = self.state();
        state.answered = false;
        if state.requests.is_empty() {
            let since = if state.phase == ConnectionPhase::Head { state.since } else { self.clock.mono() };
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
        state.socket.end();
        if state.answered {
            state.answered = false;
            state.requests.clear();
            (state.phase, state.since) = (ConnectionPhase::Idle, self.clock.mono());
        }
    }

    /// A request's head is there, on HTTP/2.
    pub(super) fn ticket(self: &Arc<Self>) -> StreamGuard {
        let mut state = self.state();
        let number = state.next;
        state.next = number.wrapping_add(1);
        let since = self.clock.mono();
        state.requests.push((number, since));
        state.unasked = 0;
        state.unanswered += 1;
        StreamGuard { pulse: Arc::clone(self), number, is_answered: false, unsent: None }
    }

    /// On HTTP/2: the codec is polled.
    pub(super) fn next_turn(&self) {
        self.turn.fetch_add(1, Ordering::Relaxed);
    }

    /// On HTTP/2: how often it was.
    pub(super) fn turn(&self) -> usize {
        self.turn.load(Ordering::Relaxed)
    }

    /// Whether the head of one more HTTP/2 request may be read: before a key was presented, one after the other.
    pub(super) fn may_read_a_head(&self) -> bool {
        self.authenticated.get() || self.state().unanswered == 0
    }

    /// The socket takes nothing.
    pub(super) fn blocked(&self) {
        let now = self.clock.mono();
        self.state().socket.begin(now);
    }

    /// The socket took so many bytes.
    pub(super) fn took(&self, bytes: usize) {
        let mut state = self.state();
        state.unasked = state.unasked.saturating_sub(bytes / SENT_FOR_ONE);
        state.socket.took(bytes, || self.clock.mono());
        if state.phase != ConnectionPhase::Streams {
            state.taken += bytes as u64;
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

    /// What decides whether this connection is closed for another one. `None` if it is being closed.
    pub(super) fn conduct(&self) -> Option<ConnectionConduct> {
        let state = self.state();
        (!state.cut).then(|| ConnectionConduct {
            is_authenticated: self.authenticated.get(),
            opened: state.opened,
            idle: state.requests.is_empty().then_some(state.since),
            unread: state.bodies.last_byte().or(state.socket.last_byte()),
            taken: state.taken,
        })
    }

    /// What it is doing, and until when it may.
    pub(super) fn glance(&self, deadlines: &Deadlines) -> Glance {
        let state = self.state();
        let mut course = state.course();
        let may_hurry = course.blocked.is_some() && !self.authenticated.get();
        course.hurries = may_hurry && self.all_unsent.are_too_many();
        let (mut end, mut overdue) = deadlines.next(course);
        if state.refused > REFUSED_WITHOUT_KEY {
            (end, overdue) = (course.since, MissedDeadline::Write);
        }
        Glance { is_cut: state.cut, is_retiring: state.retiring.is_some(), may_hurry, end, overdue }
    }
}

impl ActivityState {
    fn course(&self) -> ConnectionProgress {
        let Self { phase, since, retiring, .. } = *self;
        let asked = self.requests.iter().map(|(_, since)| *since).min();
        let blocked = [self.socket.since(), self.bodies.since()].into_iter().flatten().min();
        ConnectionProgress { phase, since, asked, blocked, hurries: false, retiring }
    }
}

impl StreamGuard {
    /// The response is there. `false` if it may not be sent: the client has no key and takes nothing of others.
    pub(super) fn answered(&mut self, has_body: bool) -> bool {
        let pulse = Arc::clone(&self.pulse);
        let mut state = pulse.state();
        self.is_answered = true;
        state.unanswered -= 1;
        if !has_body {
            return true;
        }
        if state.unsent >= UNSENT_WITHOUT_KEY && !pulse.authenticated.get() {
            state.refused += 1;
            if state.refused > REFUSED_WITHOUT_KEY {
                pulse.nudge.notify_one();
            }
            return false;
        }
        self.unsent = Some(pulse.all_unsent.count());
        state.unsent += 1;
        state.bodies.begin(pulse.clock.mono());
        true
    }

    /// So many bytes of its body were sent: the client's windows had room for them.
    pub(super) fn sent(&self, bytes: usize) {
        let mut state = self.pulse.state();
        state.taken += bytes as u64;
        state.bodies.took(bytes, || self.pulse.clock.mono());
    }
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        let mut state = self.pulse.state();
        state.requests.retain(|(number, _)| *number != self.number);
        state.unasked = 0;
        if !self.is_answered {
            state.unanswered -= 1;
        }
        if self.unsent.is_some() {
            state.unsent -= 1;
            state.refused = 0;
        }
        if state.unsent == 0 {
            state.bodies.end();
        }
        if state.requests.is_empty() {
            state.since = self.pulse.clock.mono();
        }
    }
}
