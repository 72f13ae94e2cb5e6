//! The models that the backend lists, according to the newest stored list.

use std::sync::Arc;

use crate::cache::StoredDocument;
use scoregate_base::{
    evidence::catalogue_size,
    routes::{DocumentKey, ModelId},
};

use super::cached_documents::Documents;

/// The newest stored list of models.
pub struct KnownModels {
    /// The key of the list. All lists contain the same models, in different orders.
    pub key: DocumentKey,
    pub stored: Arc<StoredDocument>,
}

impl KnownModels {
    /// The most recently confirmed list. This call counts as a use, so that the list is refreshed.
    pub fn newest(documents: &Documents) -> Option<Self> {
        let known = Self::confirmed_last(documents)?;
        known.stored.used();
        Some(known)
    }

    /// Whether the most recently confirmed list is empty. Does not count as a use.
    pub fn is_empty(documents: &Documents) -> bool {
        Self::confirmed_last(documents).is_some_and(|known| known.stored.document.items() == 0)
    }

    /// The most recently confirmed list. Does not count as a use.
    pub fn confirmed_last(documents: &Documents) -> Option<Self> {
        let lists =
            DocumentKey::lists_of_models().filter_map(|key| Some((documents.get(&key)?, key)));
        let (stored, key) = lists.max_by_key(|(list, _)| list.confirmed)?;
        Some(Self { key, stored })
    }

    /// The size of the catalogue: the number of distinct model positions in usage evidence.
    pub fn size(documents: &Documents) -> u16 {
        Self::confirmed_last(documents)
            .map_or(0, |known| catalogue_size(known.stored.document.listed()))
    }

    /// Whether a model is listed. `None` if the stored document has no list.
    pub fn lists(&self, id: &ModelId) -> Option<bool> {
        self.stored.document.lists(id)
    }
}
