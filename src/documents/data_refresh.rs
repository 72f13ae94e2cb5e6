//! The state of the data: its time, the next expected refresh, and when it became stale.
//!
//! This module concerns the backend's refreshes. `cache::freshness` decides whether a single document is stale.

use std::time::Duration;

use crate::{cache::freshness::overdue_interval, pages::status::DataState};
use scoregate_base::clock::{Now, Wall};

use super::{cached_documents::Documents, known_models::KnownModels};

impl Documents {
    /// The size of the catalogue: the number of distinct model positions in usage evidence. 0 if no list of models is stored.
    pub fn catalogue_size(&self) -> u16 {
        KnownModels::size(self)
    }

    /// The state of the data.
    pub fn data_state(&self, now: Now) -> DataState {
        let newest = self
            .schedule()
            .newest_data()
            .filter(|_| !KnownModels::is_empty(self));
        let expected = self.expected_refresh(now);
        DataState {
            newest,
            expected,
            stale_since: stale_since(expected, self.retention().cadence, now.wall),
        }
    }
}

/// Data is stale once its refresh is overdue by more than the interval between polls for an overdue refresh. By then, a
/// refresh that was on time would have been detected.
fn stale_since(expected: Option<Wall>, cadence: Duration, now: Wall) -> Option<Wall> {
    expected.filter(|expected| now.since(*expected) > overdue_interval(cadence))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_stale_a_minute_after_its_refresh_was_expected_and_since_then() {
        let at = Wall::from_seconds;
        let hour = Duration::from_hours(1);
        let since = |now| stale_since(Some(at(3_600)), hour, at(now));
        assert_eq!(
            [3_600, 3_660, 3_661, 9_000].map(since),
            [None, None, Some(at(3_600)), Some(at(3_600))]
        );
        assert_eq!(stale_since(None, hour, at(9_000)), None);
        let second = Duration::from_secs(1);
        let frequent = stale_since(Some(at(10)), second, at(12));
        assert_eq!(frequent, Some(at(10)), "refreshes every second");
    }
}
