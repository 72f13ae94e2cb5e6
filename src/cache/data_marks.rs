//! The newest time of each document's data. Older data never replaces newer data, whichever address sent it. A mark
//! outlives its document, so that older data is not accepted after an eviction either. The number of marks is limited.
//! A hard purge removes them, so that an operator can accept the data of a backend that was restored from a backup.

use std::time::Duration;

use moka::sync::Cache as Moka;

use scoregate_base::{clock::Wall, routes::DocumentKey};

/// Maximum number of marks.
const MAX_MARKS: u64 = 65_536;
/// Maximum lead of a backend's clock over the gateway's clock. A time that is further ahead sets
/// no mark. A mark that is further ahead because the gateway's clock was set back is ignored.
const CLOCK_TOLERANCE: Duration = Duration::from_mins(5);

/// Times of the data by document, as stated by the backend.
#[derive(Debug)]
pub struct DataMarks {
    newest: Moka<DocumentKey, Wall>,
}

impl Default for DataMarks {
    fn default() -> Self {
        Self {
            newest: Moka::new(MAX_MARKS),
        }
    }
}

impl DataMarks {
    /// The time of newer data that was received earlier, if any.
    pub fn newer(&self, key: &DocumentKey, stated: Wall, now: Wall) -> Option<Wall> {
        let newest = self.newest.get(key)?;
        (stated < newest && is_plausible(newest, now)).then_some(newest)
    }

    /// Records the time of received data.
    pub fn record(&self, key: &DocumentKey, stated: Wall, now: Wall) {
        if is_plausible(stated, now) {
            self.newest.insert(key.clone(), stated);
        }
    }

    /// Removes the marks of these documents.
    pub fn remove(&self, fits: impl Fn(&DocumentKey) -> bool) {
        for (key, _) in &self.newest {
            if fits(&key) {
                self.newest.invalidate(key.as_ref());
            }
        }
    }
}

fn is_plausible(stated: Wall, now: Wall) -> bool {
    stated <= now.plus(CLOCK_TOLERANCE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Wall = Wall::from_seconds(1_795_262_400);
    const MINUTE: Duration = Duration::from_mins(1);

    #[test]
    fn older_data_is_found_until_the_marks_are_removed() {
        let marks = DataMarks::default();
        let key = DocumentKey::list_of_models();
        let earlier = NOON.minus(MINUTE);
        assert_eq!(marks.newer(&key, earlier, NOON), None);
        marks.record(&key, NOON, NOON);
        assert_eq!(marks.newer(&key, earlier, NOON), Some(NOON));
        assert_eq!(marks.newer(&key, NOON, NOON), None);
        marks.remove(|_| true);
        assert_eq!(marks.newer(&key, earlier, NOON), None);
    }

    #[test]
    fn a_time_far_ahead_of_the_clock_marks_nothing() {
        let marks = DataMarks::default();
        let key = DocumentKey::list_of_models();
        marks.record(&key, NOON.plus(6 * MINUTE), NOON);
        assert_eq!(marks.newer(&key, NOON, NOON), None);
        marks.record(&key, NOON.plus(5 * MINUTE), NOON);
        assert_eq!(marks.newer(&key, NOON, NOON), Some(NOON.plus(5 * MINUTE)));
        let set_back = NOON.minus(MINUTE);
        assert_eq!(marks.newer(&key, set_back, set_back), None);
    }
}
