//! Positions in the change feed, which each gateway uses to find changes made by others.

use std::fmt;

use scoregate_base::{clock::Wall, keys::ApplicationId};

/// A position in the change feed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeedPosition {
    /// The data set and its history, separated by `/`. Numbers of different sources are not comparable.
    pub source: String,
    /// The number of the last change, which is also the number of its audit record.
    pub number: u64,
}

impl FeedPosition {
    /// The identity of the data set, without its history.
    pub fn data_set(&self) -> &str {
        self.source.split('/').next().unwrap_or_default()
    }
}

impl fmt::Display for FeedPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.number, self.source)
    }
}

/// Applications that changed after a position.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChangedApplications {
    /// The applications, without duplicates, in the order of their last changes.
    pub applications: Vec<ApplicationId>,
    /// The position up to which this list is complete.
    pub reached: FeedPosition,
    /// The number of the newest change.
    pub newest: u64,
    /// The clock of the engine when it answered. `None` if the engine has no clock.
    pub clock: Option<Wall>,
}

impl ChangedApplications {
    /// Whether a reader that was at `before` must reload all applications, because the source is a different one or has
    /// lost changes.
    pub fn requires_reload(&self, before: &FeedPosition) -> bool {
        self.reached.source != before.source || self.newest < before.number
    }

    /// Whether there are more changes after this list.
    pub fn is_partial(&self) -> bool {
        self.reached.number < self.newest
    }
}
