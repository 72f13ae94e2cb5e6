//! Minutes of this gateway that are not stored yet. A minute is stored when it begins, and again if a later observation
//! in the minute is better.

use std::collections::BTreeMap;

use scoregate_store::{DAY_MINUTES, StatusMinute};

/// Maximum number of minutes that are kept while the store is unreachable.
const MOST: usize = 3 * 1_440;
/// Maximum number of minutes in one transaction.
const BATCH: usize = 250;
const _: () = assert!(MOST as u64 == 3 * DAY_MINUTES);

/// The minutes, by number.
#[derive(Debug, Default)]
pub struct PendingMinutes {
    pending: BTreeMap<u64, StatusMinute>,
    /// The newest stored minute.
    stored: Option<StatusMinute>,
}

impl PendingMinutes {
    /// Adds an observation. The best observation of a minute counts.
    pub fn note(&mut self, seen: StatusMinute) {
        let stored = self.stored.filter(|stored| stored.minute == seen.minute);
        let known = self.pending.get(&seen.minute).copied().or(stored);
        let best = known.map_or(seen, |known| StatusMinute {
            is_ready: known.is_ready || seen.is_ready,
            is_fresh: known.is_fresh || seen.is_fresh,
            ..seen
        });
        if known != Some(best) {
            self.pending.insert(seen.minute, best);
        }
        while self.pending.len() > MOST {
            self.pending.pop_first();
        }
    }

    pub fn has_some(&self) -> bool {
        !self.pending.is_empty()
    }

    /// The oldest pending minutes; `None` if all are stored.
    pub fn next_batch(&self) -> Option<Vec<StatusMinute>> {
        self.has_some()
            .then(|| self.pending.values().take(BATCH).copied().collect())
    }

    /// Removes minutes that have been stored.
    pub fn stored(&mut self, batch: &[StatusMinute]) {
        for minute in batch {
            self.pending.remove(&minute.minute);
        }
        self.stored = batch.last().copied().or(self.stored);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minute(minute: u64, is_ready: bool, is_fresh: bool) -> StatusMinute {
        StatusMinute {
            minute,
            is_ready,
            is_fresh,
        }
    }

    /// Stores all pending minutes.
    fn store(pending: &mut PendingMinutes) -> Vec<StatusMinute> {
        let mut all = Vec::new();
        while let Some(batch) = pending.next_batch() {
            pending.stored(&batch);
            all.extend(batch);
        }
        all
    }

    #[test]
    fn a_minute_is_stored_once_and_again_only_if_it_gets_better() {
        let mut pending = PendingMinutes::default();
        pending.note(minute(5, false, false));
        assert_eq!(store(&mut pending), [minute(5, false, false)]);
        for (seen, expected) in [
            (minute(5, false, false), vec![]),
            (minute(5, true, false), vec![minute(5, true, false)]),
            (minute(5, false, false), vec![]),
            (minute(5, true, true), vec![minute(5, true, true)]),
            (minute(5, true, false), vec![]),
            (minute(6, true, false), vec![minute(6, true, false)]),
        ] {
            pending.note(seen);
            assert_eq!(store(&mut pending), expected, "{seen:?}");
        }
    }

    #[test]
    fn the_minutes_of_three_days_are_kept_while_the_store_is_unreachable() {
        let mut pending = PendingMinutes::default();
        for number in 0..5_000 {
            pending.note(minute(number, true, true));
        }
        let stored = store(&mut pending);
        assert_eq!(
            (
                stored.len(),
                stored[0].minute,
                stored.last().unwrap().minute
            ),
            (MOST, 680, 4_999)
        );
        assert!(!pending.has_some());
    }
}
