//! The state of a connection. The methods in `connection_activity` and `stream_guard` change it under a lock.

use smallvec::SmallVec;

use crate::server::{
    application_connections::ConnectionMembership,
    client_limits::SENT_PER_RECEIVED,
    deadlines::{ConnectionPhase, ConnectionProgress, MissedDeadline},
    unsent::UnsentBytes,
};
use scoregate_base::clock::{Clock, Mono};

/// The state of a connection.
pub struct ActivityState {
    pub phase: ConnectionPhase,
    pub since: Mono,
    /// Requests whose responses have not been sent completely, with their start times.
    pub requests: SmallVec<[(u32, Mono); 2]>,
    pub next: u32,
    /// HTTP/1.1: whether the response is complete. The request ends when the response has been sent.
    pub response_complete: bool,
    /// Bytes that wait for the socket.
    pub socket: UnsentBytes,
    /// HTTP/2: bytes that wait for the client's windows.
    pub bodies: UnsentBytes,
    /// HTTP/2: requests without a complete response.
    pub unanswered: usize,
    /// HTTP/2: unanswered requests whose body is awaited.
    pub awaited_bodies: usize,
    /// HTTP/2: the maximum total size of the awaited bodies.
    pub awaited_bytes: usize,
    /// HTTP/2: responses whose body has not been sent completely.
    pub unsent: usize,
    /// HTTP/2: responses without a body since the socket stopped accepting bytes.
    pub unsent_heads: usize,
    /// HTTP/2: requests that have been refused since a response was last sent completely.
    pub refused: usize,
    /// HTTP/2: whether too many requests were refused.
    pub takes_no_more: bool,
    /// HTTP/2: start of the request head or frame that is still incomplete.
    pub incomplete: Option<Mono>,
    pub membership: ConnectionMembership,
    pub opened: Mono,
    /// Response bytes that the client has read.
    pub taken: u64,
    pub retiring: Option<Mono>,
    pub cut: bool,
    /// HTTP/2: bytes received since a request last began or ended.
    pub unsolicited: usize,
}

impl ActivityState {
    /// The state of a connection that was opened at this time.
    pub fn opened(opened: Mono) -> Self {
        Self {
            phase: ConnectionPhase::Opening,
            since: opened,
            opened,
            requests: SmallVec::new(),
            next: 0,
            response_complete: false,
            socket: UnsentBytes::default(),
            bodies: UnsentBytes::default(),
            unanswered: 0,
            awaited_bodies: 0,
            awaited_bytes: 0,
            unsent: 0,
            unsent_heads: 0,
            refused: 0,
            takes_no_more: false,
            incomplete: None,
            membership: ConnectionMembership::default(),
            taken: 0,
            retiring: None,
            cut: false,
            unsolicited: 0,
        }
    }

    /// Records that a body of this size, if any, was read or is no longer awaited.
    pub const fn no_longer_awaits(&mut self, body: Option<usize>) {
        if let Some(bytes) = body {
            self.awaited_bodies -= 1;
            self.awaited_bytes -= bytes;
            self.unsolicited = 0;
        }
    }

    /// Records that the socket accepted bytes. The clock is read only if bytes were waiting.
    pub fn wrote(&mut self, bytes: usize, clock: &Clock) {
        self.unsolicited = self.unsolicited.saturating_sub(bytes / SENT_PER_RECEIVED);
        self.socket.taken(bytes, || clock.coarse());
        if self.phase != ConnectionPhase::Streams {
            self.taken += bytes as u64;
        }
    }

    /// The kind of the next deadline, if no other deadline is pending. While the kind stays the same, the deadline can only
    /// become later.
    pub fn sole_deadline(&self) -> Option<MissedDeadline> {
        let others = [
            self.socket.since(),
            self.bodies.since(),
            self.incomplete,
            self.retiring,
        ];
        let is_sole = !self.cut && others.iter().all(Option::is_none);
        is_sole.then(|| self.phase.awaited(!self.requests.is_empty()))
    }

    /// The part of the state that determines the next deadline.
    pub fn progress(&self) -> ConnectionProgress {
        let Self {
            phase,
            since,
            incomplete,
            retiring,
            ..
        } = *self;
        let requested = self.requests.iter().map(|(_, since)| *since).min();
        let blocked = [self.socket.since(), self.bodies.since()]
            .into_iter()
            .flatten()
            .min();
        ConnectionProgress {
            phase,
            since,
            requested,
            blocked,
            is_hurried: false,
            incomplete,
            retiring,
        }
    }
}
