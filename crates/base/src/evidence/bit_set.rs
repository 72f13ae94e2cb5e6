//! A set of hashed values in a fixed number of bits.

/// A set of bit positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitSet<const WORDS: usize>([u64; WORDS]);

impl<const WORDS: usize> BitSet<WORDS> {
    /// The empty set.
    pub const EMPTY: Self = Self([0; WORDS]);
    const BITS: usize = WORDS * 64;

    /// Adds a position, modulo the size of the set.
    #[inline]
    pub fn insert(&mut self, position: u16) {
        let position = usize::from(position) % Self::BITS;
        if let Some(word) = self.0.get_mut(position / 64) {
            *word |= 1 << (position % 64);
        }
    }

    /// Adds all positions of another set.
    pub fn add_all(&mut self, other: &Self) {
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            *word |= more;
        }
    }

    /// The number of positions.
    pub fn count(&self) -> u16 {
        let bits: u32 = self.0.iter().map(|word| word.count_ones()).sum();
        u16::try_from(bits).unwrap_or(u16::MAX)
    }

    /// Estimated number of distinct values, corrected for values with the same position; `None` if all bits are set.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "at most 2^16 bits, and values below 2^20"
    )]
    pub fn distinct(&self) -> Option<u32> {
        let bits = Self::BITS as f64;
        let free = (Self::BITS - usize::from(self.count())) as f64;
        (free > 0.0).then(|| (-bits * (free / bits).ln()).round() as u32)
    }

    pub(super) const fn words(&self) -> &[u64; WORDS] {
        &self.0
    }

    pub(super) const fn of_words(words: [u64; WORDS]) -> Self {
        Self(words)
    }
}

impl<const WORDS: usize> Default for BitSet<WORDS> {
    fn default() -> Self {
        Self::EMPTY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_counts_its_positions_once_and_modulo_its_size() {
        let mut set = BitSet::<1>::EMPTY;
        for position in [3, 3, 67, 64] {
            set.insert(position);
        }
        assert_eq!(set.count(), 2);
        let mut other = BitSet::EMPTY;
        other.insert(3);
        other.insert(9);
        set.add_all(&other);
        assert_eq!(set.count(), 3);
    }

    #[test]
    fn the_number_of_values_is_estimated_within_a_tenth() {
        let mut state = 7_u64;
        for values in [1, 5, 40, 200, 800] {
            let mut set = BitSet::<8>::EMPTY;
            for _ in 0..values {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                set.insert(u16::try_from(state >> 48).unwrap());
            }
            let distinct = set.distinct().unwrap();
            assert!(
                distinct.abs_diff(values) <= values / 10 + 1,
                "{values}: {distinct}"
            );
        }
        assert_eq!(BitSet::of_words([u64::MAX; 8]).distinct(), None);
    }
}
