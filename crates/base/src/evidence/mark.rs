//! The positions of documents in the bit sets of evidence. They are the same in every gateway and release.

use std::hash::BuildHasher as _;

use foldhash::fast::FixedState;

use super::bit_set::BitSet;
use crate::routes::DocumentKey;

/// The positions of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DocumentMark {
    /// The position of the model, if the document is about one.
    pub model: Option<u16>,
    /// The position of the document.
    pub document: u16,
}

impl DocumentMark {
    /// The positions of this document.
    pub fn of(key: &DocumentKey) -> Self {
        let document = top_bits(FixedState::default().hash_one(key));
        Self {
            model: key.id.as_ref().map(|id| model_position(id.as_str())),
            document,
        }
    }
}

/// The position of a model. It must not change, because stored records depend on it.
pub fn model_position(id: &str) -> u16 {
    let hash = crc32fast::hash(id.as_bytes());
    u16::try_from(hash % 2_048).unwrap_or_default()
}

/// The number of distinct positions of models.
pub fn catalogue_size<'i>(models: impl IntoIterator<Item = &'i str>) -> u16 {
    let mut set = BitSet::<32>::EMPTY;
    models
        .into_iter()
        .for_each(|id| set.insert(model_position(id)));
    set.count()
}

fn top_bits(hash: u64) -> u16 {
    u16::try_from(hash >> 48).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::{ModelId, Route};

    #[test]
    fn the_position_of_a_model_does_not_change() {
        assert_eq!([model_position("gpt-5"), model_position("a")], [668, 1_603]);
        assert_eq!(catalogue_size(["gpt-5", "a", "gpt-5"]), 2);
    }

    #[test]
    fn documents_of_one_model_share_its_position_and_lists_have_none() {
        let mark = |route| {
            DocumentMark::of(&DocumentKey::of_model(
                route,
                ModelId::new("gpt-5").unwrap(),
            ))
        };
        let model = mark(Route::Model);
        let drift = mark(Route::Drift);
        assert_eq!(model.model, drift.model);
        assert_ne!(model.document, drift.document);
        assert_eq!(DocumentMark::of(&DocumentKey::list_of_models()).model, None);
    }
}
