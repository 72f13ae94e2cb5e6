//! The slots of all records: sizes, and eviction when space is needed. In memory, and pure.

use std::collections::HashMap;

use super::names::{FileStem, Sha256Sum};

/// Maximum number of records. A start reads them all.
const MAX_RECORDS: usize = 4_096;

/// One record's slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordSlot {
    /// The lowest is evicted first.
    pub(super) turn: u64,
    /// Checksum of the content.
    pub(super) content: Sha256Sum,
    /// Length of the content.
    pub(super) length: u64,
    /// Bytes with the header.
    pub(super) bytes: u64,
}

/// All slots.
#[derive(Debug)]
pub(super) struct RecordSlots {
    most_bytes: u64,
    taken: HashMap<FileStem, RecordSlot>,
    bytes: u64,
    last_turn: u64,
}

impl RecordSlots {
    pub(super) fn new(most_bytes: u64) -> Self {
        Self { most_bytes, taken: HashMap::new(), bytes: 0, last_turn: 0 }
    }

    /// Maximum size of one record: a quarter of the capacity, so that none evicts all others.
    pub(super) fn max_record(&self) -> u64 {
        self.most_bytes / 4
    }

    /// Number of records, and their bytes.
    pub(super) fn size(&self) -> (u64, u64) {
        (self.taken.len() as u64, self.bytes)
    }

    pub(super) fn get(&self, stem: &FileStem) -> Option<RecordSlot> {
        self.taken.get(stem).copied()
    }

    /// The turn of the next write.
    pub(super) fn next_turn(&self) -> u64 {
        self.last_turn.saturating_add(1)
    }

    /// Takes a slot, replacing the one of this record.
    pub(super) fn put(&mut self, stem: FileStem, place: RecordSlot) {
        self.remove(&stem);
        self.last_turn = self.last_turn.max(place.turn);
        self.bytes = self.bytes.saturating_add(place.bytes);
        self.taken.insert(stem, place);
    }

    pub(super) fn remove(&mut self, stem: &FileStem) -> Option<RecordSlot> {
        let place = self.taken.remove(stem)?;
        self.bytes = self.bytes.saturating_sub(place.bytes);
        Some(place)
    }

    /// Evicts records to make room for one of this size, and returns them.
    pub(super) fn make_room(&mut self, coming: &FileStem, bytes: u64) -> Vec<(FileStem, RecordSlot)> {
        let own = self.get(coming).map_or(0, |place| place.bytes);
        let room = self.most_bytes.saturating_sub(bytes).saturating_add(own);
        let others = MAX_RECORDS - usize::from(!self.taken.contains_key(coming));
        self.shrink(room, others, Some(coming))
    }

    /// Evicts records above the capacity.
    pub(super) fn fit(&mut self) -> Vec<(FileStem, RecordSlot)> {
        self.shrink(self.most_bytes, MAX_RECORDS, None)
    }

    fn shrink(
        &mut self,
        most_bytes: u64,
        most: usize,
        but: Option<&FileStem>,
    ) -> Vec<(FileStem, RecordSlot)> {
        let mut gone = Vec::new();
        while self.bytes > most_bytes || self.taken.len() > most {
            let others = self.taken.iter().filter(|(stem, _)| Some(*stem) != but);
            let Some(first) = others.min_by_key(|(_, place)| place.turn).map(|(stem, _)| stem.clone()) else {
                break;
            };
            gone.extend(self.remove(&first).map(|place| (first, place)));
        }
        gone
    }

    /// All records by turn, newest first.
    pub(super) fn newest_first(&self) -> Vec<FileStem> {
        let mut all: Vec<(&FileStem, u64)> =
            self.taken.iter().map(|(stem, place)| (stem, place.turn)).collect();
        all.sort_by_key(|(_, turn)| std::cmp::Reverse(*turn));
        all.into_iter().map(|(stem, _)| stem.clone()).collect()
    }
}
