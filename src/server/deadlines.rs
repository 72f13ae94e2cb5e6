//! The deadlines of a connection: the next event that is due, and its time.
//!
//! Pure functions. The state of a connection is in `activity_state`, the timer is in `deadline_timer`.

use std::time::Duration;

use scoregate_base::clock::Mono;

/// Timeouts of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Deadlines {
    /// Maximum time for a request head. For the first request, the time begins with the connection, so it includes the
    /// PROXY header and the TLS handshake. For later requests, it begins with the first byte. On HTTP/2 this is also
    /// the maximum time for a frame that is not part of a body.
    pub head: Duration,
    /// Maximum time between two requests.
    pub idle: Duration,
    /// Maximum time from a request's head to the last byte of its response.
    pub request: Duration,
    /// Time within which a client must read a minimum number of the bytes that wait to be sent.
    pub write: Duration,
    /// Maximum connection age. Once a connection is older, it is closed after the next response.
    pub age: Duration,
}

/// Time for which a connection that has to be closed waits for one more request, so that a request in transit is
/// answered.
pub const LAST_REQUEST: Duration = Duration::from_secs(1);

/// The write timeout of surplus connections, and of clients without a key while too many responses wait in the whole
/// process.
pub const HURRIED_WRITE_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissedDeadline {
    /// No complete request head arrived.
    Head,
    /// No bytes have arrived since the last request.
    Idle,
    /// The response to a request was not sent completely.
    Request,
    /// The client read none or too few of the waiting bytes.
    Write,
}

/// The part of a connection's state that determines its deadlines.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionProgress {
    /// The event that the connection waits for.
    pub phase: ConnectionPhase,
    /// The start of the phase.
    pub since: Mono,
    /// Start of the oldest request whose response has not been sent completely.
    pub requested: Option<Mono>,
    /// When the client began to read the waiting bytes too slowly.
    pub blocked: Option<Mono>,
    /// Whether waiting bytes must be read within [`HURRIED_WRITE_TIMEOUT`].
    pub is_hurried: bool,
    /// HTTP/2: start of the request head or frame that is still incomplete.
    pub incomplete: Option<Mono>,
    /// When it was decided that the connection has to be closed.
    pub retiring: Option<Mono>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionPhase {
    /// Waits for the first request and everything that precedes it.
    Opening,
    /// A part of a request head has arrived.
    Head,
    /// Waits for the next request.
    Idle,
    /// HTTP/2: bytes between requests are not necessarily heads.
    Streams,
}

/// A snapshot of the state of a connection, for its timer.
#[derive(Clone, Copy, Debug)]
pub struct ActivitySnapshot {
    pub is_cut: bool,
    pub is_retiring: bool,
    /// The kind of the next deadline, if no other event is awaited.
    pub sole_deadline: Option<MissedDeadline>,
    /// Whether other connections may move `end` closer.
    pub may_be_hurried: bool,
    /// The next deadline.
    pub end: Mono,
    pub overdue: MissedDeadline,
}

impl ConnectionPhase {
    /// The deadline of the event that a connection in this phase waits for.
    pub fn awaited(self, has_request: bool) -> MissedDeadline {
        match self {
            Self::Opening | Self::Head | Self::Idle | Self::Streams if has_request => {
                MissedDeadline::Request
            }
            Self::Opening | Self::Head => MissedDeadline::Head,
            Self::Idle | Self::Streams => MissedDeadline::Idle,
        }
    }
}

impl Deadlines {
    fn allowed(&self, awaited: MissedDeadline) -> Duration {
        match awaited {
            MissedDeadline::Head => self.head,
            MissedDeadline::Idle => self.idle,
            MissedDeadline::Request => self.request,
            MissedDeadline::Write => self.write,
        }
    }

    /// The next required event and its deadline.
    pub(super) fn next(&self, progress: ConnectionProgress) -> (Mono, MissedDeadline) {
        let ConnectionProgress {
            phase,
            since,
            requested,
            blocked,
            is_hurried,
            incomplete,
            retiring,
        } = progress;
        // A connection that has to be closed and has no request gets exactly the time for a request in transit, even if
        // it was idle before.
        let last = retiring.filter(|_| requested.is_none() && phase != ConnectionPhase::Head);
        let last = last.map(|signal| (signal.max(since).plus(LAST_REQUEST), MissedDeadline::Idle));
        let awaited = phase.awaited(requested.is_some());
        let work = (
            requested.unwrap_or(since).plus(self.allowed(awaited)),
            awaited,
        );
        let work = last
            .filter(|_| awaited == MissedDeadline::Idle)
            .unwrap_or(work);
        let limit = if is_hurried {
            self.write.min(HURRIED_WRITE_TIMEOUT)
        } else {
            self.write
        };
        let write = blocked.map(|since| (since.plus(limit), MissedDeadline::Write));
        let head = incomplete.map(|since| (since.plus(self.head), MissedDeadline::Head));
        [write, last, head]
            .into_iter()
            .flatten()
            .fold(
                work,
                |first, other| if other.0 < first.0 { other } else { first },
            )
    }
}
