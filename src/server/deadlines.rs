//! The deadlines of a connection: the next event that is due, and its time.
//!
//! Pure. The state of a connection is in `activity_state`, the timer in `deadline_timer`.

use std::time::Duration;

use scoregate_base::clock::Mono;

/// Timeouts of a connection.
#[derive(Clone, Copy, Debug)]
pub struct Deadlines {
    /// From the connection to its first request head, PROXY header and TLS handshake included; and from the first
    /// byte of any later request to the end of its head. On HTTP/2 also for a frame that is not a part of a body.
    pub head: Duration,
    /// Between two requests.
    pub idle: Duration,
    /// From a request's head to the last byte of its response.
    pub request: Duration,
    /// Time in which a client must read the minimum number of waiting bytes.
    pub write: Duration,
    /// Maximum connection age; then it is closed after the next response.
    pub age: Duration,
}

/// Time for which a connection that is to end waits for one more request, so that a request in transit is answered.
pub(super) const LAST_REQUEST: Duration = Duration::from_secs(1);

/// The write timeout of clients without a key while too many responses wait in the whole process, and of surplus connections.
pub(super) const HURRIED_WRITE_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MissedDeadline {
    /// No complete request head.
    Head,
    /// No bytes arrived since the last request.
    Idle,
    /// A request was not answered to its last byte.
    Request,
    /// The client read no or too few of the waiting bytes.
    Write,
}

/// The part of a connection's state that determines its deadlines.
#[derive(Clone, Copy, Debug)]
pub(super) struct ConnectionProgress {
    /// The event it waits for.
    pub(super) phase: ConnectionPhase,
    /// Since when.
    pub(super) since: Mono,
    /// Start of the oldest request that is not answered to its last byte.
    pub(super) requested: Option<Mono>,
    /// The time since which the client has read too few of the waiting bytes.
    pub(super) blocked: Option<Mono>,
    /// Whether waiting bytes must be read within [`HURRIED_WRITE_TIMEOUT`].
    pub(super) is_hurried: bool,
    /// HTTP/2: since when a request head or a frame is incomplete.
    pub(super) incomplete: Option<Mono>,
    /// The time since which the connection is to end.
    pub(super) retiring: Option<Mono>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionPhase {
    /// Waits for the first request and everything before it.
    Opening,
    /// A part of a request head has arrived.
    Head,
    /// Waits for the next request.
    Idle,
    /// HTTP/2: bytes between requests do not indicate heads.
    Streams,
}

/// A snapshot of the state of a connection, for its timer.
#[derive(Clone, Copy, Debug)]
pub(super) struct ActivitySnapshot {
    pub(super) is_cut: bool,
    pub(super) is_retiring: bool,
    /// The kind of the next deadline, if nothing else is awaited.
    pub(super) sole_deadline: Option<MissedDeadline>,
    /// `end` may move closer because of other connections.
    pub(super) may_be_hurried: bool,
    /// The next deadline.
    pub(super) end: Mono,
    pub(super) overdue: MissedDeadline,
}

impl ConnectionPhase {
    /// The deadline of the event that a connection in this phase waits for.
    pub(super) fn awaited(self, has_request: bool) -> MissedDeadline {
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
        // A connection that is to end, and has no request, gets the time for a request in transit: no more, and no less
        // because it has been idle.
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
