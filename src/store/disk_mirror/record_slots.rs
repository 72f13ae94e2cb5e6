//! What stands on the shelf, how much it is, and who goes when room is needed. In memory, and pure.
//!
//! Not for: the files (`directory`).

use std::collections::HashMap;

use super::names::{FileStem, Sha256Sum};

/// The most jars. A start reads them all.
const MOST: usize = 4_096;

/// One jar's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordSlot {
    /// Who has the lowest goes first.
    pub(super) turn: u64,
    /// Which content stands there.
    pub(super) content: Sha256Sum,
    /// How many bytes that is.
    pub(super) length: u64,
    /// How many bytes it takes with its slip.
    pub(super) bytes: u64,
}

/// All places.
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

    /// The most that one jar may take: a quarter, so that none pushes all others down.
    pub(super) fn most_of_one(&self) -> u64 {
        self.most_bytes / 4
    }

    /// How many jars there are, and how many bytes.
    pub(super) fn size(&self) -> (u64, u64) {
        (self.taken.len() as u64, self.bytes)
    }

    pub(super) fn get(&self, stem: &FileStem) -> Option<RecordSlot> {
        self.taken.get(stem).copied()
    }

    /// The turn of whatever is put down next.
    pub(super) fn next_turn(&self) -> u64 {
        self.last_turn.saturating_add(1)
    }

    /// Takes a place, in the stead of the one that this jar had.
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

    /// Takes down whoever has to go so that a jar of so many bytes can stand there, and says who that was.
    pub(super) fn make_room(&mut self, coming: &FileStem, bytes: u64) -> Vec<(FileStem, RecordSlot)> {
        let own = self.get(coming).map_or(0, |place| place.bytes);
        let room = self.most_bytes.saturating_sub(bytes).saturating_add(own);
        let others = MOST - usize::from(!self.taken.contains_key(coming));
        self.shrink(room, others, Some(coming))
    }

    /// Takes down whoever is too much, as when the shelf has been given less room.
    pub(super) fn fit(&mut self) -> Vec<(FileStem, RecordSlot)> {
        self.shrink(self.most_bytes, MOST, None)
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

    /// Everyone, by turn from the last.
    pub(super) fn newest_first(&self) -> Vec<FileStem> {
        let mut all: Vec<(&FileStem, u64)> =
            self.taken.iter().map(|(stem, place)| (stem, place.turn)).collect();
        all.sort_by_key(|(_, turn)| std::cmp::Reverse(*turn));
        all.into_iter().map(|(stem, _)| stem.clone()).collect()
    }
}
