//! A document: built once, off the request path, from one answer of the backend; served many times.
//!
//! It has two forms: the full one, and the one a Free key may see, without `latestScore`. Where they are equal they
//! share their bytes. The form is chosen by the caller's rights, by type: the full one cannot be had without a
//! [`PaidRights`]. Items are spliced in as raw bytes: no field is lost, reordered or rounded.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use http::HeaderValue;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::clock::Wall;
use crate::keys::{PaidRights, Rights};
use crate::routes::{API_VERSION, DocumentKey, Route};

use super::encode::{Encoded, Encoding, Representation};

/// The field that only paid callers see.
const PAID_FIELD: &str = "latestScore";
/// Deeper nesting is no benchmark data.
const DEEPEST: u8 = 64;

/// What the backend sent, checked and cut free of its envelope.
#[derive(Clone, Debug)]
pub struct Content {
    /// A JSON array, exactly as the backend wrote it.
    pub data: Bytes,
    /// How many items it has.
    pub count: usize,
    /// The data's instant.
    pub generated_at: Wall,
    /// What the backend knows it by.
    pub source: Source,
}

/// What the backend knows an answer by: sent back to ask whether it changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// Its entity tag.
    pub etag: Option<HeaderValue>,
    /// Its date.
    pub last_modified: Option<HeaderValue>,
}

/// What the envelope says besides the data.
#[derive(Clone, Copy, Debug)]
pub struct Label<'a> {
    /// Which document it is.
    pub key: &'a DocumentKey,
    /// The attribution notice.
    pub license: &'a str,
}

/// The backend's data cannot be made into a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the data is not an array of well-formed items nested at most {DEEPEST} deep")]
pub struct BadContent;

/// A stored answer in both forms.
#[derive(Debug)]
pub struct Document {
    full: Arc<Form>,
    free: Arc<Form>,
    source: Source,
    generated_at: Wall,
}

/// One form of a document, with all that can be ready before anybody asks.
#[derive(Debug)]
pub struct Form {
    data: Bytes,
    encoded: Encoded,
    /// The `Last-Modified` header.
    pub last_modified: HeaderValue,
}

impl Document {
    /// Builds a document. A form whose data is the same as in `before` is kept from there whole, date and all, so
    /// that equal data has equal bytes and tags, and what only paid callers may see moves nothing of the Free form.
    pub fn build(content: Content, label: &Label<'_>, before: Option<&Self>) -> Result<Self, BadContent> {
        let free_data = match label.key.route {
            Route::Model => without_paid_field(&content.data)?,
            Route::Models
            | Route::History
            | Route::Index
            | Route::Alerts
            | Route::Incidents
            | Route::Providers
            | Route::Degradations
            | Route::Recommendations
            | Route::ProviderReliability
            | Route::Transparency
            | Route::Drift
            | Route::Me => None,
        };
        let fresh = |data: &Bytes| Arc::new(Form::new(data, content.count, content.generated_at, label));
        let kept = |old: Option<&Arc<Form>>, data: &Bytes| old.filter(|old| old.data == *data).cloned();
        let full = kept(before.map(|b| &b.full), &content.data).unwrap_or_else(|| fresh(&content.data));
        let free = kept(before.map(|b| &b.free), free_data.as_ref().unwrap_or(&content.data))
            .unwrap_or_else(|| free_data.as_ref().map_or_else(|| Arc::clone(&full), fresh));
        Ok(Self { full, free, source: content.source, generated_at: content.generated_at })
    }

    /// The form that these rights may see.
    pub fn form(&self, rights: Rights) -> &Form {
        match rights {
            Rights::Free => &self.free,
            Rights::Paid(proof) => self.full(proof),
        }
    }

    fn full(&self, _proof: PaidRights) -> &Form {
        &self.full
    }

    /// What the backend knows it by.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The data's instant as the backend last stated it, from which the next refresh is reckoned. What a form says of
    /// its own instant may be older.
    pub fn generated_at(&self) -> Wall {
        self.generated_at
    }

    /// Bytes of all bodies, for the bound of the cache.
    pub fn bytes(&self) -> usize {
        let shared = Arc::ptr_eq(&self.full, &self.free);
        self.full.bytes() + if shared { 0 } else { self.free.bytes() }
    }
}

impl Form {
    fn new(data: &Bytes, count: usize, generated_at: Wall, label: &Label<'_>) -> Self {
        let body = envelope(data, count, generated_at, label);
        let last_modified = HeaderValue::try_from(generated_at.http_date()).expect("a date is visible ASCII");
        // The data is kept as a part of the body, not beside it.
        let from = body.len() - data.len() - 1;
        Self { data: body.slice(from..body.len() - 1), encoded: Encoded::new(body), last_modified }
    }

    /// The representation to send to a client that prefers `encoding`.
    pub fn choose(&self, encoding: Encoding) -> &Representation {
        self.encoded.choose(encoding)
    }

    fn bytes(&self) -> usize {
        self.encoded.bytes()
    }
}

fn envelope(data: &Bytes, count: usize, generated_at: Wall, label: &Label<'_>) -> Bytes {
    let word = |word: Option<&'static str>| word.map_or_else(|| "null".into(), |word| format!("\"{word}\""));
    let head = format!(
        "{{\"success\":true,\"version\":\"{API_VERSION}\",\"generated_at\":\"{}\",\"license\":{},\"period\":{},\"sort_by\":{},\"count\":{count},\"data\":",
        generated_at.rfc3339(),
        serde_json::Value::from(label.license),
        word(label.key.period.map(crate::routes::Period::word)),
        word(label.key.sort_by.map(crate::routes::SortBy::word)),
    );
    let mut body = Vec::with_capacity(head.len() + data.len() + 1);
    body.extend_from_slice(head.as_bytes());
    body.extend_from_slice(data);
    body.push(b'}');
    Bytes::from(body)
}

/// The data without the paid field, wherever in an item it stands; `None` if there is none.
fn without_paid_field(data: &Bytes) -> Result<Option<Bytes>, BadContent> {
    let text = std::str::from_utf8(data).map_err(|_| BadContent)?;
    // Spelled plainly or with an escape: only such data has to be taken apart.
    if !text.contains(PAID_FIELD) && !text.contains("\\u") {
        return Ok(None);
    }
    let whole: &RawValue = serde_json::from_str(text).map_err(|_| BadContent)?;
    Ok(match strip(whole, DEEPEST)? {
        Cow::Borrowed(_) => None,
        Cow::Owned(stripped) => Some(Bytes::from(stripped)),
    })
}

/// The value without the paid field; borrowed if it had none.
fn strip(value: &RawValue, depth: u8) -> Result<Cow<'_, str>, BadContent> {
    let text = value.get();
    let deeper = depth.checked_sub(1).ok_or(BadContent);
    match text.as_bytes().first() {
        Some(b'{') => {
            let Fields(fields) = serde_json::from_str(text).map_err(|_| BadContent)?;
            strip_object(text, fields, deeper?)
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(text).map_err(|_| BadContent)?;
            let depth = deeper?;
            let kept = items.into_iter().map(|item| strip(item, depth)).collect::<Result<Vec<_>, _>>()?;
            let unchanged = kept.iter().all(|item| matches!(item, Cow::Borrowed(_)));
            Ok(if unchanged { Cow::Borrowed(text) } else { Cow::Owned(format!("[{}]", kept.join(","))) })
        }
        _ => Ok(Cow::Borrowed(text)),
    }
}

fn strip_object<'v>(
    text: &'v str,
    fields: Vec<(Cow<'v, str>, &'v RawValue)>,
    deeper: u8,
) -> Result<Cow<'v, str>, BadContent> {
    let mut touched = false;
    let mut kept = Vec::with_capacity(fields.len());
    for (name, value) in fields {
        if name == PAID_FIELD {
            touched = true;
            continue;
        }
        let value = strip(value, deeper)?;
        touched |= matches!(value, Cow::Owned(_));
        kept.push(format!("{}:{value}", serde_json::Value::from(&*name)));
    }
    Ok(if touched { Cow::Owned(format!("{{{}}}", kept.join(","))) } else { Cow::Borrowed(text) })
}

/// The fields of an object in their order. An object that names a field twice is refused: readers would disagree
/// about which of the two counts.
struct Fields<'de>(Vec<(Cow<'de, str>, &'de RawValue)>);

impl<'de> serde::Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let (mut fields, mut seen) = (Vec::new(), BTreeSet::new());
                while let Some((Name(name), value)) = map.next_entry::<Name<'de>, &RawValue>()? {
                    if !seen.insert(name.clone()) {
                        return Err(serde::de::Error::custom("a field is named twice"));
                    }
                    fields.push((name, value));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

/// A field's name, decoded, borrowed where it can be.
#[derive(serde::Deserialize)]
#[serde(transparent)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::{ModelId, Period, Query};
    use proptest::prelude::*;

    fn key(route: Route) -> DocumentKey {
        DocumentKey::new(route, ModelId::new("atlas"), Query::default(), Period::Day)
    }

    fn content(data: &str, seconds: u64) -> Content {
        let data = Bytes::copy_from_slice(data.as_bytes());
        Content { data, count: 1, generated_at: Wall::from_seconds(seconds), source: Source::default() }
    }

    fn build(route: Route, data: &str, seconds: u64, before: Option<&Document>) -> Document {
        let key = key(route);
        let label = Label { key: &key, license: "Cite \"us\"." };
        Document::build(content(data, seconds), &label, before).unwrap()
    }

    fn body(document: &Document, rights: Rights) -> &str {
        std::str::from_utf8(&document.form(rights).choose(Encoding::Identity).body).unwrap()
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
    fn a_change_that_only_paid_callers_may_see_moves_nothing_of_the_free_form() {
        let before = build(Route::Model, r#"[{"id":"a","latestScore":1}]"#, 100, None);
        let after = build(Route::Model, r#"[{"id":"a","latestScore":2}]"#, 200, Some(&before));
        assert!(Arc::ptr_eq(&before.free, &after.free) && !Arc::ptr_eq(&before.full, &after.full));
        let gone = build(Route::Model, r#"[{"id":"a"}]"#, 300, Some(&after));
        assert_eq!(body(&gone, Rights::Free), body(&before, Rights::Free));
    }

    #[test]
    fn what_cannot_be_read_one_way_only_is_refused() {
        let key = key(Route::Model);
        let label = Label { key: &key, license: "" };
        let deep = format!("[{}\"latestScore\"{}]", "[".repeat(5_000), "]".repeat(5_000));
        for data in [r#"[{"latestScore":1,"latestScore":2}]"#, r#"[{"a":1,"a":2,"latestScore":2}]"#, &deep] {
            assert!(Document::build(content(data, 1), &label, None).is_err());
        }
    }

    proptest! {
        #[test]
        fn stripping_equals_a_slow_reference(value in any_json(4)) {
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
