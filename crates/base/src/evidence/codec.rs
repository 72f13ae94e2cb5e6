//! The encoding of evidence in the store: a version, followed by fields of fixed size.

use thiserror::Error;

use super::bit_set::BitSet;

/// A record cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a record of evidence cannot be read: it is damaged or was written by a newer release")]
pub struct BadEvidence;

pub struct Writer(Vec<u8>);

impl Writer {
    pub fn of(version: u8) -> Self {
        Self(vec![version])
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub fn short(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    pub fn number(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    pub fn long(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    pub fn set<const WORDS: usize>(&mut self, set: &BitSet<WORDS>) {
        for word in set.words() {
            self.long(*word);
        }
    }

    pub fn finish(self) -> Vec<u8> {
        self.0
    }
}

pub struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    pub fn of(bytes: &'b [u8], version: u8) -> Result<Self, BadEvidence> {
        let mut reader = Self(bytes);
        let [found] = reader.bytes()?;
        if found == version {
            Ok(reader)
        } else {
            Err(BadEvidence)
        }
    }

    pub fn bytes<const N: usize>(&mut self) -> Result<[u8; N], BadEvidence> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(BadEvidence)?;
        self.0 = rest;
        Ok(*bytes)
    }

    pub fn short(&mut self) -> Result<u16, BadEvidence> {
        self.bytes().map(u16::from_le_bytes)
    }

    pub fn number(&mut self) -> Result<u32, BadEvidence> {
        self.bytes().map(u32::from_le_bytes)
    }

    pub fn long(&mut self) -> Result<u64, BadEvidence> {
        self.bytes().map(u64::from_le_bytes)
    }

    pub fn set<const WORDS: usize>(&mut self) -> Result<BitSet<WORDS>, BadEvidence> {
        let mut words = [0; WORDS];
        for word in &mut words {
            *word = self.long()?;
        }
        Ok(BitSet::of_words(words))
    }

    /// Whether more bytes follow.
    pub const fn has_more(&self) -> bool {
        !self.0.is_empty()
    }

    /// The value, if no bytes follow.
    pub fn finish<T>(self, read: T) -> Result<T, BadEvidence> {
        if self.has_more() {
            Err(BadEvidence)
        } else {
            Ok(read)
        }
    }
}
