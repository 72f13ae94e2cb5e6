//! The header of a record: a small file with the record's name, its content's checksum and length, its eviction order
//! and its owner's label.
//!
//! Pure: bytes to a header or a flaw, and back.

use scoregate_base::keys::Digest;

use super::RecordFlaw;
use super::names::sum_of;
use super::record_slots::RecordSlot;

/// The first bytes of a header, followed by its version. A header of another version is removed like a damaged one.
const MAGIC: &[u8; 7] = b"SGSHELF";
const VERSION: u8 = 1;
/// Maximum length of a header in bytes.
pub(super) const MAX_HEADER_BYTES: u64 = 64 << 10;

/// The decoded header.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RecordHeader<'a> {
    /// Increases with every write: the lowest is evicted first. Not a time, because clocks step.
    pub(super) turn: u64,
    /// Checksum of the content.
    pub(super) content: Digest,
    /// Length of the content.
    pub(super) length: u64,
    /// The record's name.
    pub(super) name: &'a str,
    /// The owner's label.
    pub(super) label: &'a str,
}

impl<'a> RecordHeader<'a> {
    /// The encoded header. Its checksum covers all of it, and the content through the content's checksum.
    pub(super) fn written(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.push(VERSION);
        bytes.extend(self.turn.to_le_bytes());
        bytes.extend(self.content.as_bytes());
        bytes.extend(self.length.to_le_bytes());
        bytes.extend((self.name.len() as u64).to_le_bytes());
        bytes.extend(self.name.as_bytes());
        bytes.extend(self.label.as_bytes());
        let sum = sum_of(&bytes);
        bytes.extend(sum.as_bytes());
        bytes
    }

    /// The slot of its record, with a header of this length.
    pub(super) fn slot(&self, header_bytes: u64) -> RecordSlot {
        let bytes = header_bytes.saturating_add(self.length);
        RecordSlot {
            turn: self.turn,
            content: self.content,
            bytes,
        }
    }

    /// Decodes a header.
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, RecordFlaw> {
        let (checked, sum) = bytes.split_last_chunk().ok_or(RecordFlaw::Torn)?;
        let body = checked.strip_prefix(MAGIC).ok_or(RecordFlaw::Torn)?;
        let (version, mut rest) = body.split_first().ok_or(RecordFlaw::Torn)?;
        if *version != VERSION {
            return Err(RecordFlaw::Version(*version));
        }
        if sum_of(checked) != Digest::from_bytes(*sum) {
            return Err(RecordFlaw::Torn);
        }
        let turn = u64::from_le_bytes(take_bytes(&mut rest)?);
        let content = Digest::from_bytes(take_bytes(&mut rest)?);
        let length = u64::from_le_bytes(take_bytes(&mut rest)?);
        let name = usize::try_from(u64::from_le_bytes(take_bytes(&mut rest)?))
            .map_err(|_| RecordFlaw::Torn)?;
        let (name, label) = rest.split_at_checked(name).ok_or(RecordFlaw::Torn)?;
        let text = |bytes| std::str::from_utf8(bytes).map_err(|_| RecordFlaw::Torn);
        Ok(Self {
            turn,
            content,
            length,
            name: text(name)?,
            label: text(label)?,
        })
    }
}

/// The next `N` bytes.
fn take_bytes<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], RecordFlaw> {
    let (first, body) = rest.split_first_chunk().ok_or(RecordFlaw::Torn)?;
    *rest = body;
    Ok(*first)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_header_is_decoded_as_it_was_encoded(turn: u64, length: u64, name: String, label: String) {
            let header = RecordHeader { turn, content: sum_of(name.as_bytes()), length, name: &name, label: &label };
            let written = header.written();
            prop_assert_eq!(RecordHeader::read(&written).unwrap(), header);
        }

        #[test]
        fn random_bytes_are_not_a_header(mut bytes: Vec<u8>, is_ours: bool) {
            if is_ours {
                bytes.splice(0..0, b"SGSHELF\x01".iter().copied());
            }
            prop_assert!(RecordHeader::read(&bytes).is_err());
        }

        #[test]
        fn random_bytes_with_a_valid_checksum_never_cause_a_panic(tail: Vec<u8>) {
            let mut bytes = b"SGSHELF\x01".to_vec();
            bytes.extend(tail);
            let sum = sum_of(&bytes);
            bytes.extend(sum.as_bytes());
            drop(RecordHeader::read(&bytes));
        }
    }
}
