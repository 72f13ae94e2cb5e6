//! What is due next on a connection, and until when: every deadline of a connection is decided here.
//!
//! Pure. Not for: what happens on a connection (`pulse`), nor for waiting (`watch`).

use std::time::Duration;

use smallvec::SmallVec;

use crate::clock::Mono;

/// How long everything may take.
#[derive(Clone, Copy, Debug)]
pub struct Deadlines {
    /// From the connection to the head of its first request, a PROXY header and the opening of TLS included; and from the
    /// first byte of any other request to the end of its head.
    pub head: Duration,
    /// Between two requests.
    pub idle: Duration,
    /// From a request's head to the last byte of its answer.
    pub request: Duration,
    /// How long a client may take no byte of what waits for it.
    pub write: Duration,
    /// So old a connection becomes, at the most; then it ends with the next answer.
    pub age: Duration,
}

/// So long a connection that is to end waits for one more request: one that is under way already is answered, and not
/// cut off.
pub(super) const LAST_REQUEST: Duration = Duration::from_secs(1);

/// What was not done in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overdue {
    /// There was no request, or only a part of its head.
    Head,
    /// Nothing happened since the last request.
    Idle,
    /// A request was not answered to its last byte.
    Request,
    /// The client takes nothing of what waits for it.
    Write,
}

/// What a connection is doing.
pub(super) struct State {
    pub(super) phase: Phase,
    pub(super) since: Mono,
    /// Requests that were begun and not sent to their last byte, each with its beginning.
    pub(super) requests: SmallVec<[(u32, Mono); 2]>,
    pub(super) next: u32,
    /// On HTTP/1.1: the answer is made; once it is sent, the request is over.
    pub(super) answered: bool,
    pub(super) blocked: Option<Mono>,
    pub(super) retiring: Option<Mono>,
    pub(super) cut: bool,
    /// On HTTP/2: the bytes that arrived since a request began or ended.
    pub(super) unasked: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The first request is awaited, and all that comes before it.
    Opening,
    /// A part of a head is there.
    Head,
    /// The next request is awaited.
    Idle,
    /// HTTP/2, where what arrives between requests says nothing about heads.
    Streams,
}

impl State {
    /// What has to happen next, and until when.
    pub(super) fn next(&self, deadlines: &Deadlines) -> (Mono, Overdue) {
        let oldest = self.requests.iter().map(|(_, since)| *since).min();
        // One that is to end, and has no request, gets as much time as for one that is under way: no more, and no less
        // for having been idle long enough.
        let last = self.retiring.filter(|_| oldest.is_none() && self.phase != Phase::Head);
        let last = last.map(|told| (told.max(self.since).plus(LAST_REQUEST), Overdue::Idle));
        let work = match (oldest, self.phase) {
            (Some(since), _) => (since.plus(deadlines.request), Overdue::Request),
            (None, Phase::Opening | Phase::Head) => (self.since.plus(deadlines.head), Overdue::Head),
            (None, Phase::Idle | Phase::Streams) => {
                last.unwrap_or((self.since.plus(deadlines.idle), Overdue::Idle))
            }
        };
        let write = self.blocked.map(|since| (since.plus(deadlines.write), Overdue::Write));
        [write, last]
            .into_iter()
            .flatten()
            .fold(work, |first, other| if other.0 < first.0 { other } else { first })
    }
}
