//! The state of the data: its time, the next expected refresh, and the time since which it is stale.
//!
//! This is about the backend's refreshes. Whether a single document is stale is decided in `cache::freshness`.

use std::time::Duration;

use crate::cache::freshness::overdue_interval;
use scoregate_base::clock::{Now, Wall};

use super::cached_documents::Documents;
use super::known_models::KnownModels;

/// The state of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataRefresh {
    /// The time of the newest data; `None` if none was received yet, or if the backend lists no models.
    pub newest: Option<Wall>,
    /// The next expected refresh, possibly in the past; `None` if nothing is known.
    pub expected: Option<Wall>,
    /// The refresh that is overdue, if the data is stale.
    pub stale_since: Option<Wall>,
}

impl Documents {
    /// The size of the catalogue, as positions in evidence of use; 0 if no list of models is stored.
    pub fn catalogue_size(&self) -> u16 {
        KnownModels::size(self)
    }

    /// The state of the data.
    pub fn data_refresh(&self, now: Now) -> DataRefresh {
        let newest = self
            .schedule()
            .newest_data()
            .filter(|_| !KnownModels::is_empty(self));
        let expected = self.expected_refresh(now);
        DataRefresh::new(newest, expected, self.retention().cadence, now.wall)
    }
}

impl DataRefresh {
    /// Data is stale once its refresh is overdue by more than the interval between polls for an overdue refresh. A
    /// refresh that is in time has been detected by then.
    fn new(newest: Option<Wall>, expected: Option<Wall>, cadence: Duration, now: Wall) -> Self {
        let stale_since =
            expected.filter(|expected| now.since(*expected) > overdue_interval(cadence));
        Self {
            newest,
            expected,
            stale_since,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_stale_a_minute_after_its_refresh_was_expected_and_since_then() {
        let at = Wall::from_seconds;
        let hour = Duration::from_hours(1);
        let stale_since =
            |now| DataRefresh::new(Some(at(0)), Some(at(3_600)), hour, at(now)).stale_since;
        assert_eq!(
            [3_600, 3_660, 3_661, 9_000].map(stale_since),
            [None, None, Some(at(3_600)), Some(at(3_600))]
        );
        assert_eq!(
            DataRefresh::new(None, None, hour, at(9_000)).stale_since,
            None
        );
        let second = Duration::from_secs(1);
        let frequent = DataRefresh::new(None, Some(at(10)), second, at(12));
        assert_eq!(frequent.stale_since, Some(at(10)), "refreshes every second");
    }
}
