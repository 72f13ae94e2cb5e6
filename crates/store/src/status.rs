//! The availability of the service by minute, and messages about its incidents, for the status page.
//!
//! A minute is the number of minutes since 1970-01-01 UTC. Each gateway stores the minutes in which it was ready; a
//! minute that no gateway stored counts as down.

use serde::Serialize;

use scoregate_base::{
    clock::{Day, Wall},
    words,
};

/// Number of days for which minutes are kept, the current one included. The very first minute is kept forever.
const STATUS_DAYS_KEPT: u32 = 91;
/// Minutes of a day.
pub const DAY_MINUTES: u64 = 1_440;

/// The state of the service during one minute, as seen by one gateway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusMinute {
    /// Minutes since 1970-01-01 UTC.
    pub minute: u64,
    /// Whether the gateway was ready.
    pub is_ready: bool,
    /// Whether the gateway was ready and its data was not stale.
    pub is_fresh: bool,
}

/// The minutes of a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusDay {
    /// The day.
    pub day: Day,
    /// Minutes in which a gateway was ready.
    pub ready: u64,
    /// Minutes in which the data of a ready gateway was not stale.
    pub fresh: u64,
}

/// Minutes by day.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatusHistory {
    /// The first minute that was ever stored.
    pub first_minute: Option<u64>,
    /// The days with stored minutes, in order.
    pub days: Vec<StatusDay>,
}

words! {
    /// The state of an incident.
    pub enum IncidentState: word {
        /// The cause is not known.
        Investigating = "investigating",
        /// The cause is known.
        Identified = "identified",
        /// A fix is in place and being monitored.
        Monitoring = "monitoring",
        /// The incident is over. No messages can be added.
        Resolved = "resolved",
    }
}

/// A message about an incident. Messages are never changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StatusMessage {
    /// Number of the message. Later messages have higher numbers.
    #[serde(rename = "message")]
    pub id: u64,
    /// The incident: the number of its first message.
    pub incident: u64,
    /// When it was posted.
    pub at: Wall,
    /// The state of the incident from this message on.
    pub state: IncidentState,
    /// The title of the incident.
    pub title: String,
    /// The text, which may have several lines.
    #[serde(rename = "text")]
    pub message: String,
}

/// The incident of a new message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageSubject {
    /// A new incident with this title.
    New(String),
    /// The incident with this number. It must still be unresolved.
    Known(u64),
}

/// A message to be posted, with its author for the audit trail.
#[derive(Clone, Debug)]
pub struct NewStatusMessage {
    /// The time of the message.
    pub at: Wall,
    /// The author: `cli:root`, `admin-api`.
    pub who: String,
    /// The incident.
    pub subject: MessageSubject,
    /// The state of the incident; `None` keeps the current one. The default for a new incident is `Investigating`.
    pub state: Option<IncidentState>,
    /// The text.
    pub message: String,
}

impl StatusMessage {
    /// The audit record of the message: the kind of change, and the details.
    pub(crate) fn audited(&self) -> (&'static str, String) {
        let what = if self.state == IncidentState::Resolved {
            "resolve_status"
        } else {
            "post_status"
        };
        let Self {
            id,
            incident,
            state,
            title,
            ..
        } = self;
        (
            what,
            format!(
                "message {id} of incident {incident}, {}: {title}",
                state.word()
            ),
        )
    }
}

/// The number of the minute that contains a time.
pub const fn minute_of(at: Wall) -> u64 {
    at.seconds() / 60
}

/// The first minute to keep, given the current day of the ledger if there is one.
pub fn first_kept(today: Option<Day>) -> u64 {
    let days = today.map_or(0, |today| u64::from(today.number()) + 1);
    days.saturating_sub(u64::from(STATUS_DAYS_KEPT)) * DAY_MINUTES
}

pub fn day_of_minute(minute: u64) -> Day {
    Day::from_number(u32::try_from(minute / DAY_MINUTES).unwrap_or(u32::MAX))
}
