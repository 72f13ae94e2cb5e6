//! The model ids in a list of models. Whether the list is complete is configured in the mapping of the backend.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::value::RawValue;

use scoregate_base::routes::ModelId;

/// The ids, sorted.
#[derive(Clone, Debug)]
pub struct ModelListing(Arc<[Box<str>]>);

#[derive(Deserialize)]
struct ListedModel<'d> {
    #[serde(borrow)]
    id: &'d RawValue,
}

impl ModelListing {
    /// Reads the ids. Returns `None` if the list is empty or an item has no readable id: such a list does not show that
    /// a model does not exist.
    pub fn read(data: &[u8]) -> Option<Self> {
        let items: Vec<ListedModel<'_>> = serde_json::from_slice(data).ok()?;
        let mut ids: Vec<Box<str>> = items
            .iter()
            .map(|item| identifier(item.id))
            .collect::<Option<_>>()?;
        ids.sort_unstable();
        (!ids.is_empty()).then(|| Self(ids.into()))
    }

    /// The ids.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(AsRef::as_ref)
    }

    /// Whether the list contains a model.
    pub fn names(&self, id: &ModelId) -> bool {
        self.0
            .binary_search_by(|named| named.as_ref().cmp(id.as_str()))
            .is_ok()
    }
}

/// A string, or a number as written.
fn identifier(raw: &RawValue) -> Option<Box<str>> {
    let text = raw.get();
    match text.as_bytes().first() {
        Some(b'"') => serde_json::from_str::<String>(text).ok().map(Into::into),
        Some(b'0'..=b'9') => Some(text.into()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(data: &str, id: &str) -> Option<bool> {
        Some(ModelListing::read(data.as_bytes())?.names(&ModelId::new(id).unwrap()))
    }

    #[test]
    fn model_ids_may_be_strings_or_numbers() {
        let data =
            r#"[{"name":"x","id":"gpt-5"},{"id":17,"more":{"id":"inner"}},{"id":"atl\u0061s"}]"#;
        for (id, named) in [
            ("gpt-5", true),
            ("17", true),
            ("atlas", true),
            ("inner", false),
            ("1", false),
        ] {
            assert_eq!(names(data, id), Some(named), "{id}");
        }
    }

    #[test]
    fn a_list_with_an_unreadable_item_has_no_ids() {
        for data in [
            "[]",
            "[{}]",
            r#"[{"id":"a"},{"id":null}]"#,
            r#"[{"id":"a","id":"b"}]"#,
            "{",
            r#"[{"id":-1}]"#,
        ] {
            assert_eq!(names(data, "a"), None, "{data}");
        }
    }
}
