//! An HTTP/2 request, as recorded in the state of its connection.

use std::sync::Arc;

use crate::server::unsent::{StreamRefusal, UnsentResponse};

use super::connection_activity::ConnectionActivity;

/// A request on HTTP/2. The request ends when the guard is dropped.
pub struct StreamGuard {
    activity: Arc<ConnectionActivity>,
    number: u32,
    is_answered: bool,
    /// The size of a body that is awaited.
    awaited_body: Option<usize>,
    unsent: Option<UnsentResponse>,
}

impl ConnectionActivity {
    /// HTTP/2: records that a request head is complete. Refuses the request if too many responses wait for their
    /// clients.
    pub(in crate::server) fn open_stream(self: &Arc<Self>) -> Result<StreamGuard, StreamRefusal> {
        let mut state = self.state();
        let limits = self.limits(&state);
        let pending = state.unanswered + state.unsent + state.unsent_heads;
        if let Err(refusal) = self.all_unsent.take(&limits, pending) {
            state.refused += 1;
            state.unsolicited = 0;
            if state.refused > limits.refused {
                state.takes_no_more = true;
                state.retiring.get_or_insert(self.clock.coarse());
                self.changed.notify_one();
            }
            return Err(refusal);
        }
        let number = state.next;
        state.next = number.wrapping_add(1);
        let since = self.clock.coarse();
        state.requests.push((number, since));
        state.unsolicited = 0;
        state.unanswered += 1;
        Ok(StreamGuard {
            activity: Arc::clone(self),
            number,
            is_answered: false,
            awaited_body: None,
            unsent: None,
        })
    }
}

impl StreamGuard {
    /// The activity of the connection.
    pub fn activity(&self) -> &Arc<ConnectionActivity> {
        &self.activity
    }

    /// Records that the response is complete.
    pub fn response_complete(&mut self, has_body: bool) {
        let Self {
            activity,
            is_answered,
            awaited_body,
            unsent,
            ..
        } = self;
        let mut state = activity.state();
        *is_answered = true;
        state.unanswered -= 1;
        state.no_longer_awaits(awaited_body.take());
        activity.count_for_application(&mut state);
        if has_body {
            *unsent = Some(activity.all_unsent.count());
            state.unsent += 1;
            state.bodies.begin(activity.clock.coarse());
        } else if state.socket.since().is_some() {
            state.unsent_heads += 1;
        }
    }

    /// Records that the body of the request, with at most this many bytes, has to be read before the response. Wakes
    /// the connection to read it.
    pub fn await_body(&mut self, max_bytes: usize) {
        if self.awaited_body.is_some() {
            return;
        }
        let mut state = self.activity.state();
        state.awaited_bodies += 1;
        state.awaited_bytes += max_bytes;
        self.awaited_body = Some(max_bytes);
        drop(state);
        self.activity.changed.notify_one();
    }

    /// Records that bytes of the response body were sent because the client's windows had room for them.
    pub fn sent(&self, bytes: usize) {
        let mut state = self.activity.state();
        state.taken += bytes as u64;
        state.bodies.taken(bytes, || self.activity.clock.coarse());
    }
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        let mut state = self.activity.state();
        state.requests.retain(|(number, _)| *number != self.number);
        state.unsolicited = 0;
        if !self.is_answered {
            state.unanswered -= 1;
        }
        state.no_longer_awaits(self.awaited_body);
        if self.unsent.is_some() {
            state.unsent -= 1;
            state.refused = 0;
        }
        if state.unsent == 0 {
            state.bodies.end();
        }
        if state.requests.is_empty() {
            state.since = self.activity.clock.coarse();
        }
    }
}
