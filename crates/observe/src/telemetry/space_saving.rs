//! Top-k counting in bounded memory: the Space-Saving sketch (Metwally, Agrawal and El Abbadi, 2005).
//!
//! The number of entries is fixed. If no entry is free, a new key replaces the entry with the lowest count and inherits
//! that count. Therefore no count is too low, and the maximum error of each count is known. A key that accounts for more than
//! 1/`ENTRIES` of a shard's events is guaranteed to have an entry.

use std::hash::{BuildHasher as _, Hash};

use foldhash::quality::RandomState;
use parking_lot::{Mutex, MutexGuard};

/// Number of parts. Each has a lock, so that threads rarely contend.
const SHARDS: usize = 16;
/// Number of entries per part.
const ENTRIES: usize = 64;

/// The sketch: keys with the highest counts, and a tally for each.
pub struct SpaceSaving<K, T> {
    shards: [Shard<K, T>; SHARDS],
    // The hash has a random key, so that clients cannot choose keys that all fall into one shard.
    hash_builder: RandomState,
}

/// An entry of the sketch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SketchEntry<K, T> {
    /// The key.
    pub key: K,
    /// Upper bound of the number of events.
    pub count: u64,
    /// Maximum error of the count. The tally does not include these events.
    pub overestimate: u64,
    /// The tally.
    pub value: T,
}

/// A shard on separate cache lines.
#[repr(align(64))]
struct Shard<K, T>(Mutex<ShardEntries<K, T>>);

/// Keys are stored apart from tallies, so that a lookup reads few cache lines. After every step, the entries are
/// consistent except for at most one count, so a panic does no harm.
struct ShardEntries<K, T> {
    era: u64,
    key: Vec<K>,
    counts: Vec<u64>,
    values: Vec<(u64, T)>,
}

impl<K: Copy + Eq + Hash, T> SpaceSaving<K, T> {
    /// An empty sketch.
    pub fn new() -> Self {
        Self {
            shards: std::array::from_fn(|_| {
                let (key, counts, values) = Default::default();
                Shard(Mutex::new(ShardEntries {
                    era: 0,
                    key,
                    counts,
                    values,
                }))
            }),
            hash_builder: RandomState::default(),
        }
    }

    /// Counts events and updates the tally. `new` creates a tally, given the inherited count. A later era starts empty.
    /// An earlier era counts as the current one.
    pub fn count(
        &self,
        era: u64,
        key: K,
        events: u64,
        new: impl FnOnce(u64) -> T,
        step: impl FnOnce(&mut T),
    ) {
        let Some(mut entries) = self.shard(key) else {
            return;
        };
        if entries.era < era {
            entries.clear(era);
        }
        entries.count(key, events, new, step);
    }

    /// The entry of a key in this era.
    pub fn find(&self, era: u64, key: K) -> Option<SketchEntry<K, T>>
    where
        T: Clone,
    {
        let entries = self.shard(key).filter(|entries| entries.era >= era)?;
        let index = entries.key.iter().position(|existing| *existing == key)?;
        entries.at(index)
    }

    /// All entries of this era, highest count first.
    pub fn list(&self, era: u64) -> Vec<SketchEntry<K, T>>
    where
        T: Clone,
    {
        let mut all = Vec::new();
        for shard in &self.shards {
            // Shards are read one after another and counting continues, because the list does not need to be a
            // snapshot.
            let entries = shard.0.lock();
            if entries.era >= era {
                all.extend((0..entries.key.len()).filter_map(|index| entries.at(index)));
            }
        }
        all.sort_by_key(|index| std::cmp::Reverse(index.count));
        all
    }

    fn shard(&self, key: K) -> Option<MutexGuard<'_, ShardEntries<K, T>>> {
        let index = usize::try_from(self.hash_builder.hash_one(key) % SHARDS as u64).ok()?;
        self.shards.get(index).map(|shard| shard.0.lock())
    }
}

impl<K: Copy + Eq + Hash, T> Default for SpaceSaving<K, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Copy + Eq, T> ShardEntries<K, T> {
    fn clear(&mut self, era: u64) {
        self.era = era;
        self.key.clear();
        self.counts.clear();
        self.values.clear();
    }

    fn count(
        &mut self,
        key: K,
        events: u64,
        new: impl FnOnce(u64) -> T,
        step: impl FnOnce(&mut T),
    ) {
        let index = match self.key.iter().position(|existing| *existing == key) {
            Some(index) => index,
            None => self.free_entry(key, new),
        };
        if let Some(count) = self.counts.get_mut(index)
            && let Some((_, value)) = self.values.get_mut(index)
        {
            *count += events;
            step(value);
        }
    }

    /// The index of a free entry, or of the entry with the lowest count.
    fn free_entry(&mut self, key: K, new: impl FnOnce(u64) -> T) -> usize {
        if self.key.len() < ENTRIES {
            self.key.push(key);
            self.counts.push(0);
            self.values.push((0, new(0)));
            return self.key.len() - 1;
        }
        let least = self
            .counts
            .iter()
            .enumerate()
            .min_by_key(|(_, count)| **count);
        let (index, inherited) = least.map_or((0, 0), |(index, count)| (index, *count));
        if let Some(existing) = self.key.get_mut(index)
            && let Some(values) = self.values.get_mut(index)
        {
            *existing = key;
            *values = (inherited, new(inherited));
        }
        index
    }

    fn at(&self, index: usize) -> Option<SketchEntry<K, T>>
    where
        T: Clone,
    {
        let (overestimate, value) = self.values.get(index)?;
        let key = *self.key.get(index)?;
        let count = *self.counts.get(index)?;
        Some(SketchEntry {
            key,
            count,
            overestimate: *overestimate,
            value: value.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn counted(all: impl IntoIterator<Item = u64>) -> SpaceSaving<u64, u64> {
        let sketch = SpaceSaving::new();
        all.into_iter()
            .for_each(|key| sketch.count(1, key, 1, |_| 0, |value| *value += 1));
        sketch
    }

    proptest! {
        #[test]
        fn no_count_is_too_low_and_every_heavy_key_has_an_entry(
            skew in 1_i32..5,
            draws in prop::collection::vec(0.0_f64..1.0, 1..6_000),
        ) {
            // The distribution ranges from nearly uniform to extremely skewed.
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to 20,000")]
            let all = draws.iter().map(|draw| (draw.powi(skew) * 20_000.0) as u64);
            let mut exact = HashMap::<u64, u64>::new();
            all.clone().for_each(|key| *exact.entry(key).or_default() += 1);
            let sketch = counted(all);
            let listed = sketch.list(1);
            prop_assert!(listed.len() <= SHARDS * ENTRIES);
            prop_assert!(listed.is_sorted_by_key(|index| std::cmp::Reverse(index.count)));
            for index in &listed {
                let truth = exact[&index.key];
                prop_assert!(truth <= index.count && index.count - index.overestimate <= truth, "{index:?} {truth}");
                prop_assert_eq!(index.value, index.count - index.overestimate);
                let found = sketch.find(1, index.key);
                prop_assert_eq!(found.as_ref(), Some(index));
            }
            for (key, truth) in exact {
                let came: u64 = sketch.shard(key).unwrap().counts.iter().sum();
                let is_there = sketch.find(1, key).is_some();
                prop_assert!(is_there || truth <= came / ENTRIES as u64, "{key} came {truth} of {came}");
            }
        }
    }

    #[test]
    fn a_key_that_becomes_frequent_late_gets_an_entry_at_once() {
        let before = (0..200_000).map(|number| number % 50_000);
        // From then on, one event in a hundred is for this key, and all others are for new keys.
        let late = (0..20_000).map(|number| {
            if number % 100 == 0 {
                u64::MAX
            } else {
                100_000 + number
            }
        });
        let sketch = counted(before.chain(late));
        let found = sketch.find(1, u64::MAX).unwrap();
        assert_eq!(found.value, 200, "its entry was never replaced");
    }

    #[test]
    fn a_later_era_starts_empty_and_an_earlier_one_counts_as_the_current() {
        let sketch = counted([7, 7, 8]);
        assert_eq!(
            sketch
                .list(1)
                .iter()
                .map(|index| index.count)
                .collect::<Vec<_>>(),
            [2, 1]
        );
        assert!(sketch.list(2).is_empty() && sketch.find(2, 7).is_none());
        sketch.count(2, 7, 1, |_| 0, |value| *value += 1);
        // After the clock was set back, counting continues.
        sketch.count(1, 7, 1, |_| 0, |value| *value += 1);
        assert_eq!(sketch.find(2, 7).map(|index| index.count), Some(2));
    }

    #[test]
    fn concurrent_counts_lose_nothing() {
        let sketch = SpaceSaving::<u64, u64>::new();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    (0..10_000).for_each(|number| {
                        sketch.count(1, number % 5, 1, |_| 0, |value| *value += 1);
                    });
                });
            }
        });
        assert!(sketch.list(1).iter().all(|index| index.value == 8_000));
    }
}
