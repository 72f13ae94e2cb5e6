//! How a connection ended, as the metrics count it.

use crate::telemetry::metrics::Label;

use super::deadlines::Overdue;
use super::watch::Told;

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closed {
    /// In order.
    Done,
    /// The other side broke it off, or sent what is no HTTP.
    Failed,
    /// No request came in time, or no whole one.
    Head,
    /// Nothing was asked for a while.
    Idle,
    /// A request took too long, its answer's way included.
    Request,
    /// The client took nothing of its answer, or too little.
    Unread,
    /// Its place was needed, and it was idle, or read nothing, or had no key.
    Displaced,
    /// Its address had as many as it may.
    Refused,
    /// No TLS came about.
    Tls,
}

impl From<Told> for Closed {
    fn from(told: Told) -> Self {
        match told {
            Told::Retire => Self::Done,
            Told::Cut => Self::Displaced,
            Told::Overdue(Overdue::Head) => Self::Head,
            Told::Overdue(Overdue::Idle) => Self::Idle,
            Told::Overdue(Overdue::Request) => Self::Request,
            Told::Overdue(Overdue::Write) => Self::Unread,
        }
    }
}

impl Closed {
    pub(super) fn words() -> [String; 9] {
        ["done", "failed", "head", "idle", "request", "unread", "displaced", "refused", "tls"]
            .map(String::from)
    }
}

impl Label for Closed {
    const NAME: &'static str = "closed";
    fn index(self) -> usize {
        self as usize
    }
}
