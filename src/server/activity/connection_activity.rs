//! Records the events of a connection. `timed_io`, `http1` and `http2` report events; `deadline_timer` reads the state.
//!
//! Timeouts are in `deadlines`. This module neither waits nor closes connections.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::{
    gateway::{ConnectionTrust, TrustLevel},
    server::{
        application_connections::{ApplicationConnections, ConnectionMembership},
        client_limits::{ClientLimits, UNSOLICITED_BYTES},
        deadlines::{ActivitySnapshot, ConnectionPhase, Deadlines, MissedDeadline},
        displacement::DisplacementInput,
        unsent::UnsentResponses,
    },
};
use scoregate_base::clock::Clock;

use super::activity_state::ActivityState;

/// The activity of a connection, shared by its components.
pub struct ConnectionActivity {
    pub(super) clock: Clock,
    // One lock protects the whole state, because the timer and `displacement` need a consistent view.
    state: Mutex<ActivityState>,
    /// Wakes the connection so that it reads changes in its state.
    pub(super) changed: Arc<Notify>,
    trust: ConnectionTrust,
    /// HTTP/2: the number of polls of the codec.
    polls: AtomicUsize,
    /// HTTP/2: whether a request was refused in a way that closes the connection.
    ends_when_answered: AtomicBool,
    /// The unsent responses of the whole process.
    pub(super) all_unsent: Arc<UnsentResponses>,
    applications: Arc<ApplicationConnections>,
}

impl ConnectionActivity {
    pub fn new(
        clock: Clock,
        all_unsent: Arc<UnsentResponses>,
        applications: Arc<ApplicationConnections>,
    ) -> Self {
        let state = Mutex::new(ActivityState::opened(clock.coarse()));
        let changed = Arc::new(Notify::new());
        let trust = ConnectionTrust::new(Arc::clone(&changed));
        Self {
            clock,
            state,
            changed,
            trust,
            polls: AtomicUsize::new(0),
            ends_when_answered: AtomicBool::new(false),
            all_unsent,
            applications,
        }
    }

    /// The trust in the client, as recorded by the gateway.
    pub fn trust(&self) -> &ConnectionTrust {
        &self.trust
    }

    /// Records that the connection belongs to a trusted proxy, which sends requests of many applications. The limits
    /// for a single client do not apply.
    pub fn belongs_to_no_application(&self) {
        self.state().membership = ConnectionMembership::Exempt;
        self.trust.record_trusted_proxy();
    }

    /// Whether the application already had too many connections when this one was counted.
    pub fn is_surplus(&self) -> bool {
        self.state().membership.is_surplus()
    }

    pub(super) fn limits(&self, state: &ActivityState) -> ClientLimits {
        ClientLimits::of(self.trust.level(), state.membership.is_surplus())
    }

    /// Counts the connection for the application of its first key. Closes it gracefully if the application has too
    /// many.
    pub(super) fn count_for_application(&self, state: &mut ActivityState) {
        if state.membership.decide(&self.trust, &self.applications) {
            state.retiring.get_or_insert(self.clock.coarse());
            self.changed.notify_one();
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, ActivityState> {
        // No code panics while holding the lock.
        self.state.lock()
    }

    /// Switches to HTTP/2.
    pub fn switch_to_http2(&self) {
        let mut state = self.state();
        (state.phase, state.since) = (ConnectionPhase::Streams, self.clock.coarse());
    }

    /// Records received bytes. Returns `false` if the connection must be closed because it received too many bytes
    /// without a request.
    pub fn received(&self, bytes: usize) -> bool {
        let mut state = self.state();
        if state.phase == ConnectionPhase::Idle && state.requests.is_empty() {
            (state.phase, state.since) = (ConnectionPhase::Head, self.clock.coarse());
        }
        if state.phase == ConnectionPhase::Streams {
            state.unsolicited += bytes;
        }
        state.unsolicited <= UNSOLICITED_BYTES + state.awaited_bytes
    }

    /// HTTP/1.1: records that a request head is complete. The time of a request is measured from its first byte, except
    /// for the first request.
    pub fn request_started(&self) {
        let mut state = self.state();
        state.response_complete = false;
        if state.requests.is_empty() {
            let since = if state.phase == ConnectionPhase::Head {
                state.since
            } else {
                self.clock.coarse()
            };
            state.requests.push((0, since));
        }
    }

    /// HTTP/1.1: records that the response is complete. Returns whether the connection has to be closed after it.
    pub fn response_complete(&self) -> bool {
        let mut state = self.state();
        state.response_complete = true;
        self.count_for_application(&mut state);
        state.retiring.is_some()
    }

    /// Records that the kernel has accepted all bytes, the last `bytes` of them just now.
    pub fn flushed(&self, bytes: usize) {
        let mut state = self.state();
        state.wrote(bytes, &self.clock);
        state.socket.end();
        state.unsent_heads = 0;
        if state.response_complete {
            state.response_complete = false;
            state.requests.clear();
            (state.phase, state.since) = (ConnectionPhase::Idle, self.clock.coarse());
        }
    }

    /// HTTP/2: counts a poll of the codec.
    pub fn count_poll(&self) {
        // Only the connection's task changes and reads the poll count, so no memory ordering is needed.
        self.polls.fetch_add(1, Ordering::Relaxed);
    }

    /// HTTP/2: the number of polls of the codec.
    pub fn polls(&self) -> usize {
        self.polls.load(Ordering::Relaxed)
    }

    /// HTTP/2: whether heads are read as they arrive.
    pub fn reads_freely(&self) -> bool {
        self.trust.level() == TrustLevel::Admitted
    }

    /// HTTP/2: whether one more request head may be read. If no request is unanswered, a head is always read, even if
    /// responses are still unsent, because the frame that opens a window for them may follow the head. Requests
    /// whose body is awaited do not count as unanswered, because the body arrives between heads.
    pub fn may_read_head(&self) -> bool {
        let state = self.state();
        let limits = self.limits(&state);
        let unanswered = state.unanswered - state.awaited_bodies;
        let has_room = state.unanswered + state.unsent + state.unsent_heads < limits.pending;
        unanswered == 0 || (unanswered < limits.unanswered && has_room)
    }

    /// HTTP/2: whether a body is awaited.
    pub fn awaits_body(&self) -> bool {
        self.state().awaited_bodies > 0
    }

    /// HTTP/2: whether the codec must not receive more requests, because too many were refused.
    pub fn takes_no_more(&self) -> bool {
        self.state().takes_no_more
    }

    /// HTTP/2: records whether a request head or a frame has arrived only in part.
    pub fn set_incomplete(&self, is_incomplete: bool) {
        self.state().incomplete = is_incomplete.then(|| self.clock.coarse());
    }

    /// Records that the socket accepted these bytes, and accepts no more for now.
    pub fn blocked(&self, bytes: usize) {
        let mut state = self.state();
        state.wrote(bytes, &self.clock);
        state.socket.begin(self.clock.coarse());
    }

    /// Whether written bytes wait for the socket.
    pub fn is_blocked(&self) -> bool {
        self.state().socket.since().is_some()
    }

    /// Marks the connection for closing after the next response, or after a short wait if there is no request.
    pub fn retire(&self) {
        let now = self.clock.coarse();
        self.state().retiring.get_or_insert(now);
        self.changed.notify_one();
    }

    /// HTTP/2: records that a request was refused in a way that closes the connection. The connection does not wait for
    /// another request.
    pub fn end_when_answered(&self) {
        // The flag is stored before the connection is woken, because the connection reads it when it handles the
        // signal.
        self.ends_when_answered.store(true, Ordering::Relaxed);
        self.retire();
    }

    /// HTTP/2: whether a request was refused in a way that closes the connection.
    pub fn ends_when_answered(&self) -> bool {
        self.ends_when_answered.load(Ordering::Relaxed)
    }

    /// Whether all requests are answered and the socket has accepted the responses.
    pub fn is_answered(&self) -> bool {
        let state = self.state();
        state.requests.is_empty() && state.socket.since().is_none()
    }

    /// HTTP/2: whether the client has sent a valid key, or has received a response that leaves the connection open.
    pub fn was_served(&self) -> bool {
        !self.ends_when_answered()
            && (self.trust.level() != TrustLevel::Anonymous || self.state().taken > 0)
    }

    /// Whether the connection has to be closed after the next response.
    pub fn is_retiring(&self) -> bool {
        self.state().retiring.is_some()
    }

    /// Marks the connection for immediate closing, because its slot is needed.
    pub fn cut(&self) {
        self.state().cut = true;
        self.changed.notify_one();
    }

    /// Whether the connection has to be closed immediately.
    pub fn is_cut(&self) -> bool {
        self.state().cut
    }

    /// Waits for the state to change.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// The state that decides whether this connection is displaced. `None` if it is already being closed.
    pub fn displacement_input(&self) -> Option<DisplacementInput> {
        let state = self.state();
        (!state.cut).then(|| DisplacementInput {
            is_authenticated: self.trust.level() != TrustLevel::Anonymous
                && !state.membership.is_surplus(),
            opened: state.opened,
            idle: state.requests.is_empty().then_some(state.since),
            unread: state.bodies.last_byte().or(state.socket.last_byte()),
            taken: state.taken,
        })
    }

    /// The kind of the next deadline, if no other event is awaited and the connection does not have to be closed.
    pub fn sole_deadline(&self) -> Option<MissedDeadline> {
        self.state().sole_deadline()
    }

    /// A snapshot of the state with the next deadline.
    pub fn snapshot(&self, deadlines: &Deadlines) -> ActivitySnapshot {
        let state = self.state();
        let mut progress = state.progress();
        let limits = self.limits(&state);
        let may_be_hurried = progress.blocked.is_some() && limits.hurried_from < usize::MAX;
        progress.is_hurried = may_be_hurried && self.all_unsent.hurries(&limits);
        let (end, overdue) = deadlines.next(progress);
        ActivitySnapshot {
            is_cut: state.cut,
            is_retiring: state.retiring.is_some(),
            sole_deadline: state.sole_deadline(),
            may_be_hurried,
            end,
            overdue,
        }
    }
}
