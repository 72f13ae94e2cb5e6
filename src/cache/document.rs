//! A document: built once, off the request path, from one response of the backend; served many times.
//!
//! It has two forms: the full one, and the Free form without the fields for paid callers. If they are equal they share their bytes.
//! The form is chosen by the caller's rights, by type: the full one requires a [`PaidRights`]. Items are spliced in
//! as raw bytes: no field is lost, reordered or rounded.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderValue;

use scoregate_base::clock::Wall;
use scoregate_base::keys::{PaidRights, Rights};
use scoregate_base::routes::{API_VERSION, DocumentKey, ModelId, Route};

use super::declared_fields::only_declared;
use super::encode::{ContentCoding, EncodedBodies, Representation};
use super::listing::ModelListing;
use super::paid_field::{BadContent, without_paid_field};

/// A validated response of the backend, without its envelope.
#[derive(Clone, Debug)]
pub struct DocumentContent {
    /// A JSON array, exactly as the backend wrote it.
    pub data: Bytes,
    /// Its number of items.
    pub count: usize,
    /// The time of the data, or of the response.
    pub generated_at: Wall,
    /// The time of the data, if the backend states it.
    pub stated_at: Option<Wall>,
    /// Its validators.
    pub source: Validators,
}

/// Validators of the backend, sent back in conditional requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validators {
    /// Its entity tag.
    pub etag: Option<HeaderValue>,
    /// Its date.
    pub last_modified: Option<HeaderValue>,
    /// The address that sent them, if the backend has several.
    pub origin: Option<Arc<str>>,
}

impl Validators {
    /// Whether a conditional request is possible.
    pub fn allows_conditional_requests(&self) -> bool {
        self.etag.is_some() || self.last_modified.is_some()
    }
}

/// The fields of the envelope besides the data.
#[derive(Clone, Copy, Debug)]
pub struct EnvelopeFields<'a> {
    /// The document.
    pub key: &'a DocumentKey,
    /// The attribution notice.
    pub license: &'a str,
}

impl EnvelopeFields<'_> {
    /// The envelope up to its data; a `}` follows.
    pub fn opening(&self, count: usize, generated_at: Wall) -> String {
        let word =
            |word: Option<&'static str>| word.map_or_else(|| "null".into(), |word| format!("\"{word}\""));
        format!(
            "{{\"success\":true,\"version\":\"{API_VERSION}\",\"generated_at\":\"{}\",\"license\":{},\"period\":{},\"sort_by\":{},\"count\":{count},\"data\":",
            generated_at.rfc3339(),
            serde_json::Value::from(self.license),
            word(self.key.period.map(scoregate_base::routes::Period::word)),
            word(self.key.sort_by.map(scoregate_base::routes::SortBy::word)),
        )
    }
}

/// A stored document in both forms. Clones share them.
#[derive(Clone, Debug)]
pub struct Document {
    full: Arc<DocumentForm>,
    free: Arc<DocumentForm>,
    source: Validators,
    generated_at: Wall,
    items: usize,
    /// For a list of models.
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
    /// Builds a document. A form whose data equals that in `before` is reused as a whole, date included, so that
    /// equal data has equal bytes and tags, and changes that only paid callers may see do not change the Free form.
    pub fn build(
        content: DocumentContent,
        label: &EnvelopeFields<'_>,
        before: Option<&Self>,
    ) -> Result<Self, BadContent> {
        let free_data = free_data(&content.data, label)?;
        let fresh =
            |data: &Bytes| Arc::new(DocumentForm::new(data, content.count, content.generated_at, label));
        let kept =
            |old: Option<&Arc<DocumentForm>>, data: &Bytes| old.filter(|old| old.data == *data).cloned();
        let full = kept(before.map(|b| &b.full), &content.data).unwrap_or_else(|| fresh(&content.data));
        let free = kept(before.map(|b| &b.free), free_data.as_ref().unwrap_or(&content.data))
            .unwrap_or_else(|| free_data.as_ref().map_or_else(|| Arc::clone(&full), fresh));
        Ok(Self::of(full, free, content, label))
    }

    /// Rebuilds a document whose forms had these dates: the full one and the Free one.
    pub fn restore(
        content: DocumentContent,
        label: &EnvelopeFields<'_>,
        [full_at, free_at]: [Wall; 2],
    ) -> Result<Self, BadContent> {
        let free_data = free_data(&content.data, label)?;
        let form = |data: &Bytes, at| Arc::new(DocumentForm::new(data, content.count, at, label));
        let full = form(&content.data, full_at);
        let free = match free_data {
            None if full_at == free_at => Arc::clone(&full),
            None => form(&content.data, free_at),
            Some(data) => form(&data, free_at),
        };
        Ok(Self::of(full, free, content, label))
    }

    fn of(
        full: Arc<DocumentForm>,
        free: Arc<DocumentForm>,
        content: DocumentContent,
        label: &EnvelopeFields<'_>,
    ) -> Self {
        // With two forms, a date that only the full form changed would be visible to Free callers in the time of the
        // next refresh.
        let two_forms = has_paid_field(label.key.route);
        let generated_at = if two_forms { free.generated_at } else { content.generated_at };
        let listing = (label.key.route == Route::Models).then(|| ModelListing::read(&content.data)).flatten();
        Self { full, free, source: content.source, generated_at, items: content.count, listing }
    }

    /// The form for these rights.
    pub fn form(&self, rights: Rights) -> &DocumentForm {
        match rights {
            Rights::Free => &self.free,
            Rights::Paid(proof) => self.full(proof),
        }
    }

    fn full(&self, _proof: PaidRights) -> &DocumentForm {
        &self.full
    }

    /// The backend's validators.
    pub fn source(&self) -> &Validators {
        &self.source
    }

    /// The time of the data, from which the next refresh is computed: as stated last by the backend; for a document
    /// with two forms, that of the Free form.
    pub fn generated_at(&self) -> Wall {
        self.generated_at
    }

    /// Whether it has the same data as another, in both forms.
    pub fn has_same_data(&self, other: &Self) -> bool {
        self.full.data == other.full.data && self.free.data == other.free.data
    }

    /// Whether it lists a model; `None` unless it is a list of models.
    pub fn lists(&self, id: &ModelId) -> Option<bool> {
        self.listing.as_ref().map(|listing| listing.names(id))
    }

    /// Its number of items.
    pub fn items(&self) -> usize {
        self.items
    }

    /// Bytes of all bodies, for the capacity of the cache.
    pub fn bytes(&self) -> usize {
        let shared = Arc::ptr_eq(&self.full, &self.free);
        self.full.bytes() + if shared { 0 } else { self.free.bytes() }
    }
}

impl DocumentForm {
    fn new(data: &Bytes, count: usize, generated_at: Wall, label: &EnvelopeFields<'_>) -> Self {
        let body = envelope(data, count, generated_at, label);
        let encoded = EncodedBodies::new(&body, generated_at);
        // The data is a slice of the body, not a copy.
        let from = body.len() - data.len() - 1;
        Self { data: encoded.plain().slice(from..body.len() - 1), encoded, generated_at }
    }

    /// Its items.
    pub fn data(&self) -> &Bytes {
        &self.data
    }

    /// Its date.
    pub fn generated_at(&self) -> Wall {
        self.generated_at
    }

    /// The representation for a client that prefers `encoding`.
    pub fn choose(&self, encoding: ContentCoding) -> &Representation {
        self.encoded.choose(encoding)
    }

    fn bytes(&self) -> usize {
        self.encoded.bytes()
    }
}

/// Whether only paid callers see all fields of an endpoint's items.
fn has_paid_field(route: Route) -> bool {
    route.endpoint().has_paid_field()
}

/// The data of the Free form, if it differs.
fn free_data(data: &Bytes, label: &EnvelopeFields<'_>) -> Result<Option<Bytes>, BadContent> {
    let route = label.key.route;
    match (has_paid_field(route), route.is_configured()) {
        (false, _) => Ok(None),
        (true, false) => without_paid_field(data),
        (true, true) => only_declared(data, route.endpoint().item).map(Some),
    }
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
    use super::super::paid_field::PAID_FIELD;
    use super::*;
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
        let label = EnvelopeFields { key: &key, license: "Cite \"us\"." };
        Document::build(content(data, seconds), &label, before).unwrap()
    }

    fn body(document: &Document, rights: Rights) -> &str {
        std::str::from_utf8(&document.form(rights).choose(ContentCoding::Identity).body).unwrap()
    }

    #[test]
    fn the_envelope_has_its_fields_in_order_and_the_items_untouched() {
        let document = build(Route::Models, r#"[{"x":1.10,"é":"\u00e9", "z":null}]"#, 1_763_726_400, None);
        assert_eq!(
            body(&document, Rights::Free),
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
            let free = body(&document, Rights::Free);
            assert!(
                !free.contains("latest") && !free.contains("\\u0053") && free.contains(r#""b":1.0"#),
                "{free}"
            );
            assert!(body(&document, Rights::paid()).contains(data));
        }
    }

    #[test]
    fn forms_that_are_equal_share_their_bytes() {
        let one = build(Route::Model, r#"[{"id":"a"}]"#, 1, None);
        let two = build(Route::Model, r#"[{"id":"a","latestScore":1}]"#, 1, None);
        assert!(Arc::ptr_eq(&one.full, &one.free) && !Arc::ptr_eq(&two.full, &two.free));
    }

    #[test]
    fn a_change_for_paid_callers_only_does_not_change_the_free_form() {
        let before = build(Route::Model, r#"[{"id":"a","latestScore":1}]"#, 100, None);
        let after = build(Route::Model, r#"[{"id":"a","latestScore":2}]"#, 200, Some(&before));
        assert!(Arc::ptr_eq(&before.free, &after.free) && !Arc::ptr_eq(&before.full, &after.full));
        assert_eq!(before.generated_at(), after.generated_at());
        let gone = build(Route::Model, r#"[{"id":"a"}]"#, 300, Some(&after));
        assert_eq!(body(&gone, Rights::Free), body(&before, Rights::Free));
    }

    #[test]
    fn data_without_the_paid_field_has_the_bytes_of_data_that_never_had_it() {
        for (with, without) in [
            (r#"[ { "latestScore": 1, "a" : 1.0 } ]"#, r#"[ { "a" : 1.0 } ]"#),
            ("[{\n  \"a\": 1,\n  \"latestScore\": [ 2 ],\n  \"b\": 2\n}]", "[{\n  \"a\": 1,\n  \"b\": 2\n}]"),
            ("[{\n  \"a\": 1,\n  \"latestScore\": null\n}]", "[{\n  \"a\": 1\n}]"),
            (r#"[{ "latest\u0053core":"}" }, {"\u00e4":"\u00e9"}]"#, r#"[{}, {"\u00e4":"\u00e9"}]"#),
            (r#"[{"a": {"latestScore":{"b":1}, "c": [ ]}, "latestScore":1}]"#, r#"[{"a": {"c": [ ]}}]"#),
        ] {
            let document = build(Route::Model, with, 1, None);
            assert!(body(&document, Rights::Free).ends_with(&format!("\"data\":{without}}}")), "{with}");
            assert!(body(&document, Rights::paid()).contains(with));
        }
    }

    #[test]
    fn ambiguous_json_is_rejected() {
        let key = key(Route::Model);
        let label = EnvelopeFields { key: &key, license: "" };
        let deep = format!("[{}\"latestScore\"{}]", "[".repeat(5_000), "]".repeat(5_000));
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
            let free: serde_json::Value = serde_json::from_str(body(&document, Rights::Free)).unwrap();
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
