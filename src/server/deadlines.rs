//! What is due next on a connection, and until when: every deadline of a connection is decided here.
//!
//! Pure. Not for: what happens on a connection (`pulse`), nor for waiting (`watch`).

use std::time::Duration;

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
    /// How long a client may take to read the least amount of what waits for it.
    pub write: Duration,
    /// So old a connection becomes, at the most; then it ends with the next answer.
    pub age: Duration,
}

/// So long a connection that is to end waits for one more request: one that is under way already is answered, and not
/// cut off.
pub(super) const LAST_REQUEST: Duration = Duration::from_secs(1);

/// The write timeout of clients without a key while too many responses wait in the whole process.
pub(super) const HURRIED: Duration = Duration::from_secs(1);

/// What was not done in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MissedDeadline {
    /// There was no request, or only a part of its head.
    Head,
    /// Nothing happened since the last request.
    Idle,
    /// A request was not answered to its last byte.
    Request,
    /// The client takes nothing, or too little, of what waits for it.
    Write,
}

/// What of a connection's doing decides what is due.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionProgress {
    /// What is awaited.
    pub(super) phase: ConnectionPhase,
    /// Since when.
    pub(super) since: Mono,
    /// When the oldest request began that is not answered to its last byte.
    pub(super) asked: Option<Mono>,
    /// Since when the client has taken too little of what waits for it.
    pub(super) blocked: Option<Mono>,
    /// What waits for this client has to be taken within [`HURRIED`].
    pub(super) hurries: bool,
    /// Since when the connection is to end.
    pub(super) retiring: Option<Mono>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionPhase {
    /// The first request is awaited, and all that comes before it.
    Opening,
    /// A part of a head is there.
    Head,
    /// The next request is awaited.
    Idle,
    /// HTTP/2, where what arrives between requests says nothing about heads.
    Streams,
}

impl Deadlines {
    /// What has to happen next, and until when.
    pub(super) fn next(&self, course: ConnectionProgress) -> (Mono, MissedDeadline) {
        let ConnectionProgress { phase, since, asked, blocked, hurries, retiring } = course;
        // One that is to end, and has no request, gets as much time as for one that is under way: no more, and no less
        // for having been idle long enough.
        let last = retiring.filter(|_| asked.is_none() && phase != ConnectionPhase::Head);
        let last = last.map(|told| (told.max(since).plus(LAST_REQUEST), MissedDeadline::Idle));
        let work = match (asked, phase) {
            (Some(since), _) => (since.plus(self.request), MissedDeadline::Request),
            (None, ConnectionPhase::Opening | ConnectionPhase::Head) => {
                (since.plus(self.head), MissedDeadline::Head)
            }
            (None, ConnectionPhase::Idle | ConnectionPhase::Streams) => {
                last.unwrap_or((since.plus(self.idle), MissedDeadline::Idle))
            }
        };
        let limit = if hurries { self.write.min(HURRIED) } else { self.write };
        let write = blocked.map(|since| (since.plus(limit), MissedDeadline::Write));
        [write, last]
            .into_iter()
            .flatten()
            .fold(work, |first, other| if other.0 < first.0 { other } else { first })
    }
}
