//! A document is built once from a response of the backend, off the request path, and is served many times. It has a
//! form for each set of fields that a tier sees: the full form, the Free form without the fields for paid callers, and
//! a form for each set in the settings. Equal forms share their bytes. The caller's rights select the form. Items are
//! copied as raw bytes, so no field is lost, reordered or rounded.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderValue;

use scoregate_base::{
    clock::Wall,
    plans::{FieldSets, MOST_FIELD_SETS, Rights},
    routes::{API_VERSION, DocumentKey, Endpoint, ModelId, Route},
};

use super::{
    declared_fields::only_declared,
    encode::{ContentCoding, EncodedBodies, Representation},
    listing::ModelListing,
    paid_field::{BadContent, without_paid_field},
};

/// A validated response of the backend, without its envelope.
#[derive(Clone, Debug)]
pub struct DocumentContent {
    /// A JSON array, exactly as the backend wrote it.
    pub data: Bytes,
    /// The number of items in the array.
    pub count: usize,
    /// The time of the data, or of the response.
    pub generated_at: Wall,
    /// The time of the data, if the backend states it.
    pub stated_at: Option<Wall>,
    /// The backend's validators.
    pub source: Validators,
}

/// Validators that the backend sent, for conditional requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validators {
    /// The entity tag.
    pub etag: Option<HeaderValue>,
    /// The date.
    pub last_modified: Option<HeaderValue>,
    /// The address that sent the validators, if the backend has several addresses.
    pub origin: Option<Arc<str>>,
}

impl Validators {
    /// Whether a conditional request is possible.
    pub fn allows_conditional_requests(&self) -> bool {
        self.etag.is_some() || self.last_modified.is_some()
    }
}

/// Builds the result of a tool call from the body of a response.
pub type ToolResultWriter = fn(&Endpoint, &[u8]) -> Bytes;

/// The fields of the envelope other than the data.
#[derive(Clone, Copy, Debug)]
pub struct EnvelopeFields<'a> {
    /// The document.
    pub key: &'a DocumentKey,
    /// The attribution notice.
    pub license: &'a str,
    /// The sets of fields that the tiers see.
    pub field_sets: &'a FieldSets,
    /// Builds the results of tool calls, if there are tools.
    pub tool_result: Option<ToolResultWriter>,
}

impl EnvelopeFields<'_> {
    /// The envelope up to its data. A `}` follows the data.
    pub fn opening(&self, count: usize, generated_at: Wall) -> String {
        format!(
            "{{\"success\":true,\"version\":\"{API_VERSION}\",\"generated_at\":\"{}\",\"license\":{},\"period\":{},\"sort_by\":{},\"count\":{count},\"data\":",
            generated_at.rfc3339(),
            serde_json::Value::from(self.license),
            json_word(self.key.period.map(scoregate_base::routes::Period::word)),
            json_word(self.key.sort_by.map(scoregate_base::routes::SortBy::word)),
        )
    }
}

fn json_word(word: Option<&'static str>) -> String {
    word.map_or_else(|| "null".into(), |word| format!("\"{word}\""))
}

/// A stored document in all forms. Clones share them.
#[derive(Clone, Debug)]
pub struct Document {
    /// The forms, indexed by set of fields. An index without a set has the Free form.
    forms: [Arc<DocumentForm>; MOST_FIELD_SETS],
    source: Validators,
    generated_at: Wall,
    items: usize,
    /// Set for a list of models.
    listing: Option<ModelListing>,
}

/// One form of a document, with everything that can be prepared in advance.
#[derive(Debug)]
pub struct DocumentForm {
    data: Bytes,
    encoded: EncodedBodies,
    generated_at: Wall,
}

impl Document {
    /// Builds a document. A form of `before` with the same data is reused, including its date. Equal data therefore has
    /// equal bytes and tags, and changes that only paid callers may see do not change the Free form.
    pub fn build(
        content: DocumentContent,
        label: &EnvelopeFields<'_>,
        before: Option<&Self>,
    ) -> Result<Self, BadContent> {
        let dates = [content.generated_at; MOST_FIELD_SETS];
        Self::with_dates(content, label, dates, before)
    }

    /// Builds the forms of a document. A form is reused if the previous document or this document already has an equal form.
    fn build_forms(
        content: &DocumentContent,
        label: &EnvelopeFields<'_>,
        dates: [Wall; MOST_FIELD_SETS],
        before: Option<&Self>,
    ) -> Result<Vec<Arc<DocumentForm>>, BadContent> {
        let partial = partial_data(&content.data, label)?;
        let partial = partial
            .iter()
            .map(|data| data.as_ref().unwrap_or(&content.data));
        let each = std::iter::once(&content.data).chain(partial);
        let mut built: Vec<Arc<DocumentForm>> = Vec::with_capacity(MOST_FIELD_SETS);
        for ((index, data), at) in each.enumerate().zip(dates) {
            let old = before.and_then(|before| before.forms.get(index));
            // The form of the previous document has precedence: its bytes and tags do not change, so clients that have
            // it get a 304.
            let shared = built
                .iter()
                .find(|form| form.generated_at == at && form.data == *data);
            let known = old.filter(|form| form.data == *data).or(shared);
            let form = match known {
                Some(known) => Arc::clone(known),
                None => Arc::new(DocumentForm::new(data, content.count, at, label)),
            };
            built.push(form);
        }
        Ok(built)
    }

    /// Builds a document whose new forms have these dates.
    pub fn with_dates(
        content: DocumentContent,
        label: &EnvelopeFields<'_>,
        dates: [Wall; MOST_FIELD_SETS],
        before: Option<&Self>,
    ) -> Result<Self, BadContent> {
        let built = Self::build_forms(&content, label, dates, before)?;
        let free = built.get(1).cloned().ok_or(BadContent)?;
        let forms = std::array::from_fn(|index| Arc::clone(built.get(index).unwrap_or(&free)));
        // If there are several forms, the time of the next refresh must not reveal to Free callers that only the full
        // form changed.
        let route = label.key.route;
        let generated_at = if route.endpoint().has_paid_field() {
            free.generated_at
        } else {
            content.generated_at
        };
        let listing = if route == Route::Models {
            ModelListing::read(&content.data)
        } else {
            None
        };
        Ok(Self {
            forms,
            source: content.source,
            generated_at,
            items: content.count,
            listing,
        })
    }

    /// The form for these rights.
    pub fn form(&self, rights: Rights) -> &DocumentForm {
        let form: &Arc<DocumentForm> = rights.fields().choose(&self.forms);
        form
    }

    /// The dates of all forms.
    pub fn dates(&self) -> [Wall; MOST_FIELD_SETS] {
        self.forms.each_ref().map(|form| form.generated_at)
    }

    /// The backend's validators.
    pub fn source(&self) -> &Validators {
        &self.source
    }

    /// The time of the data, from which the next refresh is computed. It is the time last stated by the backend, or, if
    /// the document has several forms, the time of the Free form.
    pub fn generated_at(&self) -> Wall {
        self.generated_at
    }

    /// Whether two documents have the same data in all forms.
    pub fn has_same_data(&self, other: &Self) -> bool {
        self.forms
            .iter()
            .zip(&other.forms)
            .all(|(form, other)| form.data == other.data)
    }

    /// Whether the document lists a model. `None` unless it is a list of models.
    pub fn lists(&self, id: &ModelId) -> Option<bool> {
        self.listing.as_ref().map(|listing| listing.names(id))
    }

    /// The ids of the models, if the document is a list of models.
    pub fn listed(&self) -> impl Iterator<Item = &str> {
        self.listing.iter().flat_map(ModelListing::ids)
    }

    /// The number of items.
    pub fn items(&self) -> usize {
        self.items
    }

    /// Bytes of all bodies, for the capacity of the cache.
    pub fn bytes(&self) -> usize {
        // Bytes that several forms share are counted once.
        self.forms
            .iter()
            .enumerate()
            .filter(|(index, form)| {
                let mut earlier = self.forms.iter().take(*index);
                !earlier.any(|other| Arc::ptr_eq(other, form))
            })
            .map(|(_, form)| form.encoded.bytes())
            .sum()
    }
}

impl DocumentForm {
    fn new(data: &Bytes, count: usize, generated_at: Wall, label: &EnvelopeFields<'_>) -> Self {
        let body = envelope(data, count, generated_at, label);
        let tool_result = label
            .tool_result
            .map(|write| write(label.key.route.endpoint(), &body));
        let encoded = EncodedBodies::new(&body, generated_at).with_tool_result(tool_result);
        // The data is a slice of the body, not a copy.
        let from = body.len() - data.len() - 1;
        Self {
            data: encoded.plain().slice(from..body.len() - 1),
            encoded,
            generated_at,
        }
    }

    /// The items, as a JSON array.
    pub fn data(&self) -> &Bytes {
        &self.data
    }

    /// The representation for a client that prefers `encoding`.
    pub fn choose(&self, encoding: ContentCoding) -> &Representation {
        self.encoded.choose(encoding)
    }
}

/// The data of each form except the full one. `None` if a form has the full data.
fn partial_data(
    data: &Bytes,
    label: &EnvelopeFields<'_>,
) -> Result<Vec<Option<Bytes>>, BadContent> {
    let endpoint = label.key.route.endpoint();
    let reserved = label.key.route.endpoint().reserved_fields();
    let partial = label.field_sets.partial().iter();
    partial
        .map(|seen| match endpoint.route.is_configured() {
            _ if reserved.is_empty() => Ok(None),
            // Only the full form has undeclared fields, whichever reserved fields a tier sees.
            true => only_declared(data, endpoint, seen).map(Some),
            false if reserved.is_subset(seen) => Ok(None),
            false => without_paid_field(data),
        })
        .collect()
}

fn envelope(data: &Bytes, count: usize, generated_at: Wall, label: &EnvelopeFields<'_>) -> Bytes {
    let head = label.opening(count, generated_at);
    let mut body = Vec::with_capacity(head.len() + data.len() + 1);
    body.extend_from_slice(head.as_bytes());
    body.extend_from_slice(data);
    body.push(b'}');
    Bytes::from(body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::paid_field::PAID_FIELD;
    use proptest::prelude::*;
    use scoregate_base::routes::{ModelId, Period, Query};

    fn key(route: Route) -> DocumentKey {
        DocumentKey::new(route, ModelId::new("atlas"), Query::default(), Period::Day)
    }

    fn content(data: &str, seconds: u64) -> DocumentContent {
        let data = Bytes::copy_from_slice(data.as_bytes());
        DocumentContent {
            data,
            count: 1,
            stated_at: None,
            generated_at: Wall::from_seconds(seconds),
            source: Validators::default(),
        }
    }

    fn build(route: Route, data: &str, seconds: u64, before: Option<&Document>) -> Document {
        let key = key(route);
        let sets = FieldSets::default();
        let label = EnvelopeFields {
            key: &key,
            license: "Cite \"us\".",
            field_sets: &sets,
            tool_result: None,
        };
        Document::build(content(data, seconds), &label, before).unwrap()
    }

    fn body(document: &Document, rights: Rights) -> &str {
        std::str::from_utf8(&document.form(rights).choose(ContentCoding::Identity).body).unwrap()
    }

    #[test]
    fn the_envelope_has_its_fields_in_order_and_the_items_untouched() {
        let document = build(
            Route::Models,
            r#"[{"x":1.10,"é":"\u00e9", "z":null}]"#,
            1_763_726_400,
            None,
        );
        assert_eq!(
            body(&document, Rights::FREE),
            r#"{"success":true,"version":"1.0.0","generated_at":"2025-11-21T12:00:00Z","license":"Cite \"us\".","period":"24h","sort_by":"combined","count":1,"data":[{"x":1.10,"é":"\u00e9", "z":null}]}"#
        );
    }

    #[test]
    fn a_free_form_has_no_latest_score_however_it_is_spelled_or_nested() {
        for data in [
            r#"[{"id":"a","latestScore":7,"b":1.0}]"#,
            r#"[{"id":"a","latest\u0053core":7,"b":1.0}]"#,
            r#"[{"latestScore":{"x":[1]},"id":"a","b":1.0,"deep":[{"latestScore":1}]}]"#,
        ] {
            let document = build(Route::Model, data, 1, None);
            let free = body(&document, Rights::FREE);
            assert!(
                !free.contains("latest")
                    && !free.contains("\\u0053")
                    && free.contains(r#""b":1.0"#),
                "{free}"
            );
            assert!(body(&document, Rights::PAID).contains(data));
        }
    }

    #[test]
    fn forms_that_are_equal_share_their_bytes() {
        let one = build(Route::Model, r#"[{"id":"a"}]"#, 1, None);
        let two = build(Route::Model, r#"[{"id":"a","latestScore":1}]"#, 1, None);
        assert!(std::ptr::eq(one.form(Rights::PAID), one.form(Rights::FREE)));
        assert!(!std::ptr::eq(
            two.form(Rights::PAID),
            two.form(Rights::FREE)
        ));
    }

    #[test]
    fn a_change_for_paid_callers_only_does_not_change_the_free_form() {
        let before = build(Route::Model, r#"[{"id":"a","latestScore":1}]"#, 100, None);
        let after = build(
            Route::Model,
            r#"[{"id":"a","latestScore":2}]"#,
            200,
            Some(&before),
        );
        assert!(std::ptr::eq(
            before.form(Rights::FREE),
            after.form(Rights::FREE)
        ));
        assert!(!std::ptr::eq(
            before.form(Rights::PAID),
            after.form(Rights::PAID)
        ));
        assert_eq!(before.generated_at(), after.generated_at());
        let gone = build(Route::Model, r#"[{"id":"a"}]"#, 300, Some(&after));
        assert_eq!(body(&gone, Rights::FREE), body(&before, Rights::FREE));
    }

    #[test]
    fn data_without_the_paid_field_has_the_bytes_of_data_that_never_had_it() {
        for (with, without) in [
            (
                r#"[ { "latestScore": 1, "a" : 1.0 } ]"#,
                r#"[ { "a" : 1.0 } ]"#,
            ),
            (
                "[{\n  \"a\": 1,\n  \"latestScore\": [ 2 ],\n  \"b\": 2\n}]",
                "[{\n  \"a\": 1,\n  \"b\": 2\n}]",
            ),
            (
                "[{\n  \"a\": 1,\n  \"latestScore\": null\n}]",
                "[{\n  \"a\": 1\n}]",
            ),
            (
                r#"[{ "latest\u0053core":"}" }, {"\u00e4":"\u00e9"}]"#,
                r#"[{}, {"\u00e4":"\u00e9"}]"#,
            ),
            (
                r#"[{"a": {"latestScore":{"b":1}, "c": [ ]}, "latestScore":1}]"#,
                r#"[{"a": {"c": [ ]}}]"#,
            ),
        ] {
            let document = build(Route::Model, with, 1, None);
            assert!(
                body(&document, Rights::FREE).ends_with(&format!("\"data\":{without}}}")),
                "{with}"
            );
            assert!(body(&document, Rights::PAID).contains(with));
        }
    }

    #[test]
    fn ambiguous_json_is_rejected() {
        let key = key(Route::Model);
        let sets = FieldSets::default();
        let label = EnvelopeFields {
            key: &key,
            license: "",
            field_sets: &sets,
            tool_result: None,
        };
        let deep = format!(
            "[{}\"latestScore\"{}]",
            "[".repeat(5_000),
            "]".repeat(5_000)
        );
        for data in [
            r#"[{"latestScore":1,"latestScore":2}]"#,
            r#"[{"a":1,"a":2,"latestScore":2}]"#,
            r#"[{"a":1,"a":2}]"#,
            &deep,
        ] {
            assert!(Document::build(content(data, 1), &label, None).is_err());
        }
    }

    proptest! {
        #[test]
        fn stripping_matches_a_slow_reference_implementation(value in any_json(4)) {
            let text = format!("[{value}]");
            let mut expected: serde_json::Value = serde_json::from_str(&text).unwrap();
            remove(&mut expected);
            let document = build(Route::Model, &text, 1, None);
            let free: serde_json::Value = serde_json::from_str(body(&document, Rights::FREE)).unwrap();
            prop_assert_eq!(&free["data"], &expected);
        }
    }

    fn remove(value: &mut serde_json::Value) {
        if let Some(object) = value.as_object_mut() {
            object.remove(PAID_FIELD);
            object.values_mut().for_each(remove);
        }
        if let Some(array) = value.as_array_mut() {
            array.iter_mut().for_each(remove);
        }
    }

    fn any_json(depth: u32) -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<i32>().prop_map(Into::into),
            "\\PC{0,6}".prop_map(Into::into)
        ];
        leaf.prop_recursive(depth, 40, 5, |inner| {
            let name = prop_oneof![Just("latestScore".to_owned()), "[a-c\\\\\"é]{1,2}"];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
                prop::collection::hash_map(name, inner, 0..4)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }
}
