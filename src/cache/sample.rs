//! Keys and stored documents for tests.

use std::sync::Arc;

use bytes::Bytes;

use scoregate_base::{
    clock::{Mono, Wall},
    plans::FieldSets,
    routes::{DocumentKey, ModelId, Period, Query, Route},
};

use super::{
    document::{Document, DocumentContent, EnvelopeFields, Validators},
    stored::StoredDocument,
};

/// The document key of the model with this number.
pub fn key(number: u64) -> DocumentKey {
    let id = ModelId::new(&format!("model-{number}"));
    DocumentKey::new(Route::Model, id, Query::default(), Period::Day)
}

/// A small document of this model.
pub fn stored(key: &DocumentKey) -> Arc<StoredDocument> {
    let data = Bytes::from(format!("[{{\"id\":\"{}\"}}]", key.id.as_ref().unwrap()));
    let generated_at = Wall::from_seconds(1);
    let source = Validators::default();
    let content = DocumentContent {
        data,
        count: 1,
        generated_at,
        stated_at: None,
        source,
    };
    let license = "Cite us.";
    let field_sets = &FieldSets::default();
    let document = Document::build(
        content,
        &EnvelopeFields {
            key,
            license,
            field_sets,
            tool_result: None,
        },
        None,
    )
    .unwrap();
    Arc::new(StoredDocument::confirmed(
        document,
        [Mono::default(); 2],
        Mono::default(),
        None,
    ))
}
