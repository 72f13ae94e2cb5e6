//! The slots of all records: sizes, and eviction when space is needed. In memory, and pure.

use std::collections::HashMap;

use scoregate_base::keys::Digest;

use super::names::FileStem;

/// Maximum number of records. A start reads them all.
const MAX_RECORDS: usize = 4_096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordSlot {
    /// The lowest is evicted first.
    pub(super) turn: u64,
    /// Checksum of the content.
    pub(super) content: Digest,
    /// Bytes with the header.
    pub(super) bytes: u64,
}

#[derive(Debug)]
pub(super) struct RecordSlots {
    max_bytes: u64,
    slots: HashMap<FileStem, RecordSlot>,
    bytes: u64,
    last_turn: u64,
}

impl RecordSlots {
    pub(super) fn new(max_bytes: u64) -> Self {
        Self {
            max_bytes,
            slots: HashMap::new(),
            bytes: 0,
            last_turn: 0,
        }
    }

    /// Maximum size of one record: a quarter of the capacity, so that none evicts all others.
    pub(super) fn max_record(&self) -> u64 {
        self.max_bytes / 4
    }

    /// Number of records, and their bytes.
    pub(super) fn size(&self) -> (u64, u64) {
        (self.slots.len() as u64, self.bytes)
    }

    pub(super) fn get(&self, stem: &FileStem) -> Option<RecordSlot> {
        self.slots.get(stem).copied()
    }

    /// The turn of the next write.
    pub(super) fn next_turn(&self) -> u64 {
        self.last_turn.saturating_add(1)
    }

    /// Takes a slot, replacing the one of this record.
    pub(super) fn put(&mut self, stem: FileStem, slot: RecordSlot) {
        self.remove(&stem);
        self.last_turn = self.last_turn.max(slot.turn);
        self.bytes = self.bytes.saturating_add(slot.bytes);
        self.slots.insert(stem, slot);
    }

    pub(super) fn remove(&mut self, stem: &FileStem) -> Option<RecordSlot> {
        let slot = self.slots.remove(stem)?;
        self.bytes = self.bytes.saturating_sub(slot.bytes);
        Some(slot)
    }

    /// Evicts records to make room for one of this size, and returns them.
    pub(super) fn make_space(
        &mut self,
        incoming: &FileStem,
        bytes: u64,
    ) -> Vec<(FileStem, RecordSlot)> {
        let own = self.get(incoming).map_or(0, |slot| slot.bytes);
        let available = self.max_bytes.saturating_sub(bytes).saturating_add(own);
        let others = MAX_RECORDS - usize::from(!self.slots.contains_key(incoming));
        self.shrink(available, others, Some(incoming))
    }

    /// Evicts records above the capacity.
    pub(super) fn fit(&mut self) -> Vec<(FileStem, RecordSlot)> {
        self.shrink(self.max_bytes, MAX_RECORDS, None)
    }

    fn shrink(
        &mut self,
        max_bytes: u64,
        max_records: usize,
        except: Option<&FileStem>,
    ) -> Vec<(FileStem, RecordSlot)> {
        let mut evicted = Vec::new();
        while self.bytes > max_bytes || self.slots.len() > max_records {
            let others = self.slots.iter().filter(|(stem, _)| Some(*stem) != except);
            let Some(first) = others
                .min_by_key(|(_, slot)| slot.turn)
                .map(|(stem, _)| stem.clone())
            else {
                break;
            };
            evicted.extend(self.remove(&first).map(|slot| (first, slot)));
        }
        evicted
    }

    /// All records by turn, newest first.
    pub(super) fn newest_first(&self) -> Vec<FileStem> {
        let mut all: Vec<(&FileStem, u64)> = self
            .slots
            .iter()
            .map(|(stem, slot)| (stem, slot.turn))
            .collect();
        all.sort_by_key(|(_, turn)| std::cmp::Reverse(*turn));
        all.into_iter().map(|(stem, _)| stem.clone()).collect()
    }
}
