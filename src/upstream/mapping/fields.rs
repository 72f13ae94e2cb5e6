//! Renames, adds, drops and converts the fields of items as the mapping of an endpoint defines. Items are mapped before
//! a document and its Free form are built. The field that is published as `latestScore` is therefore removed from the
//! Free form, regardless of its name at the backend. `convert` converts values.

use std::{borrow::Cow, collections::BTreeMap};

use bytes::Bytes;
use serde_json::value::RawValue;

use crate::cache::{Member, Members, PAID_FIELD, without_member};
use scoregate_base::routes::{PublishedField, PublishedKind};

use super::convert::converted;

/// Changes to the fields of an endpoint's items. Fields that are not listed stay unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ItemMapping {
    /// The listed fields. Each name occurs once.
    fields: Vec<MappedField>,
    /// Names of the backend's fields that are omitted.
    dropped: Vec<String>,
}

/// A listed field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedField {
    /// The published name and type of the field.
    pub published: PublishedField,
    /// The field's name at the backend. A constant replaces a field with the same name.
    pub from: String,
    /// The backend's words, and their replacements.
    pub words: BTreeMap<String, String>,
}

/// The reason why a list of fields is invalid. The message is for the operator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadItemMapping {
    /// The paid field is published under another name.
    #[error(
        "remove this field: only paid callers may see the value of `{PAID_FIELD}`, and only under that name"
    )]
    PaidUnderAnotherName,
    /// The paid field is listed for an endpoint whose Free form has all fields.
    #[error(
        "remove this field: `{PAID_FIELD}` is a field of `model` only, and Free callers would see it here"
    )]
    PaidElsewhere,
    /// A mapped field has the same name as the backend's source of the paid field.
    #[error(
        "choose another name: the backend's field of this name becomes `{PAID_FIELD}`, and is removed everywhere else"
    )]
    NameOfPaidSource,
}

impl ItemMapping {
    /// Creates a mapping with these fields. Reports invalid fields by name. `has_paid_field` is whether the endpoint
    /// has the paid field.
    pub fn new(
        fields: Vec<MappedField>,
        dropped: Vec<String>,
        has_paid_field: bool,
    ) -> Result<Self, Vec<(String, BadItemMapping)>> {
        let mapping = Self { fields, dropped };
        let paid_source = mapping.paid_source();
        let problem = |field: &MappedField| {
            let name = field.published.name.as_str();
            let is_paid = |source: &str| source == PAID_FIELD || paid_source == Some(source);
            if name == PAID_FIELD {
                return (!has_paid_field).then_some(BadItemMapping::PaidElsewhere);
            }
            if field.reads_backend() && is_paid(&field.from) {
                return Some(BadItemMapping::PaidUnderAnotherName);
            }
            is_paid(name).then_some(BadItemMapping::NameOfPaidSource)
        };
        let bad: Vec<_> = mapping
            .fields
            .iter()
            .filter_map(|field| Some((field.published.name.clone(), problem(field)?)))
            .collect();
        if bad.is_empty() {
            Ok(mapping)
        } else {
            Err(bad)
        }
    }

    /// The listed fields.
    pub(super) fn published(&self) -> Vec<PublishedField> {
        self.fields
            .iter()
            .map(|field| field.published.clone())
            .collect()
    }

    /// The backend's name for a published field. `None` if the backend's value is not published.
    pub fn source_of<'n>(&'n self, name: &'n str) -> Option<&'n str> {
        match self
            .fields
            .iter()
            .find(|field| field.published.name == name)
        {
            Some(field) => field.reads_backend().then_some(&field.from),
            None => Some(name),
        }
    }

    /// The name of the paid field at the backend, if it is different.
    pub fn paid_source(&self) -> Option<&str> {
        let paid = self
            .fields
            .iter()
            .find(|field| field.published.name == PAID_FIELD)?;
        (paid.reads_backend() && paid.from != PAID_FIELD).then_some(&paid.from)
    }

    /// Maps an array of items. `None` if the mapping changes nothing. The reason for a rejection is for the operator.
    pub(super) fn apply(&self, data: &Bytes) -> Result<Option<Bytes>, String> {
        if self.fields.is_empty() && self.dropped.is_empty() {
            return Ok(None);
        }
        let items: Vec<&RawValue> =
            serde_json::from_slice(data).map_err(|error| error.to_string())?;
        let mut mapped = String::from("[");
        for item in items {
            if mapped.len() > 1 {
                mapped.push(',');
            }
            self.push_item(&mut mapped, item.get())?;
        }
        mapped.push(']');
        let mapped = Bytes::from(mapped);
        let Some(source) = self.paid_source() else {
            return Ok(Some(mapped));
        };
        // Nested objects may repeat the value under the backend's name.
        let without = without_member(&mapped, source).map_err(|bad| bad.to_string())?;
        Ok(Some(without.unwrap_or(mapped)))
    }

    fn push_item(&self, into: &mut String, item: &str) -> Result<(), String> {
        let members = Members::of(item).map_err(|error| error.to_string())?;
        if let Some(member) = members.twice() {
            return Err(format!(
                "an item has the field {} more than once",
                member.written
            ));
        }
        let mut separator = '{';
        let mut push = |name: &str, value: &str| {
            into.push(separator);
            into.extend([name, ":", value]);
            separator = ',';
        };
        for member in &members.0 {
            let mut is_listed = false;
            for field in self.fields.iter().filter(|field| field.reads(member)) {
                is_listed = true;
                if let Some(value) = field.value(member.value) {
                    push(&field.written_name(), &value);
                }
            }
            // The name is reserved for a listed field, even if that field's source is absent.
            let mut names = self.fields.iter().map(|field| &field.published.name);
            if !is_listed && names.all(|name| *name != member.name) && !self.drops(&member.name) {
                push(member.written, member.value.get());
            }
        }
        for field in &self.fields {
            if let PublishedKind::Constant(value) = &field.published.kind {
                push(&field.written_name(), value);
            }
        }
        into.push_str(if separator == '{' { "{}" } else { "}" });
        Ok(())
    }

    fn drops(&self, name: &str) -> bool {
        self.dropped.iter().any(|dropped| dropped == name)
    }
}

impl MappedField {
    /// Whether the field's value comes from the backend.
    fn reads_backend(&self) -> bool {
        !matches!(self.published.kind, PublishedKind::Constant(_))
    }

    fn reads(&self, member: &Member<'_>) -> bool {
        self.reads_backend() && self.from == member.name
    }

    /// The value to publish. `None` if the backend's value has the wrong type.
    fn value<'v>(&self, value: &'v RawValue) -> Option<Cow<'v, str>> {
        let replaced = self.replaced(value);
        let result = match &replaced {
            Some(word) => {
                converted(word, &self.published.kind).map(|text| text.into_owned().into())
            }
            None => converted(value, &self.published.kind),
        };
        if result.is_none() {
            tracing::debug!(
                field = self.published.name,
                "a value of the wrong type is left out"
            );
        }
        result
    }

    /// The word that replaces a word of the backend. The backend's word may also be a number or a boolean.
    fn replaced(&self, value: &RawValue) -> Option<Box<RawValue>> {
        if self.words.is_empty() {
            return None;
        }
        let text = value.get();
        let word = serde_json::from_str(text).unwrap_or_else(|_| text.to_owned());
        serde_json::value::to_raw_value(self.words.get(&word)?).ok()
    }

    fn written_name(&self) -> String {
        serde_json::Value::from(self.published.name.as_str()).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn field(name: &str, from: &str, kind: PublishedKind) -> MappedField {
        let published = PublishedField {
            name: name.into(),
            kind,
        };
        MappedField {
            published,
            from: from.into(),
            words: BTreeMap::new(),
        }
    }

    fn renamed(name: &str, from: &str) -> MappedField {
        field(name, from, PublishedKind::Any)
    }

    fn mapping(fields: Vec<MappedField>, dropped: &[&str]) -> ItemMapping {
        ItemMapping::new(
            fields,
            dropped.iter().map(|&name| name.to_owned()).collect(),
            true,
        )
        .unwrap()
    }

    fn apply(mapping: &ItemMapping, data: &'static str) -> Result<String, String> {
        let data = Bytes::from_static(data.as_bytes());
        let mapped = mapping.apply(&data)?.unwrap_or(data);
        let _: Vec<&RawValue> = serde_json::from_slice(&mapped).unwrap();
        Ok(String::from_utf8(mapped.to_vec()).unwrap())
    }

    #[test]
    fn fields_are_renamed_in_place_added_and_dropped_and_others_are_unchanged() {
        let mapping = mapping(
            vec![
                renamed("value", "globalScore"),
                renamed("again", "globalScore"),
                field("unit", "unit", PublishedKind::Constant("\"points\"".into())),
                field("id", "id", PublishedKind::Text),
            ],
            &["debug"],
        );
        for (data, expected) in [
            (
                r#"[ { "a" : 1E+2, "globalScore": 62.00, "debug":{}, "id":17 , "z":"\u00e9"} ]"#,
                r#"[{"a":1E+2,"value":62.00,"again":62.00,"id":"17","z":"\u00e9","unit":"points"}]"#,
            ),
            // A constant replaces the backend's value. A backend field with the name of a mapped field is dropped.
            (r#"[{"unit":7,"value":1}]"#, r#"[{"unit":"points"}]"#),
            (
                r#"[{"\u0067lobalScore":1}]"#,
                r#"[{"value":1,"again":1,"unit":"points"}]"#,
            ),
            (
                r#"[{"id":[]},{}]"#,
                r#"[{"unit":"points"},{"unit":"points"}]"#,
            ),
            ("[]", "[]"),
        ] {
            assert_eq!(apply(&mapping, data).as_deref(), Ok(expected), "{data}");
        }
        assert!(
            apply(&mapping, r#"[{"a":1,"a":2}]"#)
                .unwrap_err()
                .contains("\"a\" more than once")
        );
    }

    #[test]
    fn an_item_may_lose_all_fields_and_an_empty_mapping_changes_no_byte() {
        assert_eq!(
            apply(&mapping(vec![], &["a"]), r#"[{"a":1}]"#).as_deref(),
            Ok("[{}]")
        );
        assert_eq!(
            apply(&ItemMapping::default(), r#"[ {"a" : 1.0} ]"#).as_deref(),
            Ok(r#"[ {"a" : 1.0} ]"#)
        );
    }

    #[test]
    fn words_are_replaced_before_the_type_is_checked() {
        let trend = scoregate_base::routes::shapes::MODEL
            .iter()
            .find(|field| field.name == "trend")
            .unwrap();
        let mut field = field("trend", "direction", PublishedKind::Standard(trend));
        field.words = [("RISING", "up"), ("-1", "down"), ("true", "stable")]
            .map(|(from, to)| (from.to_owned(), to.to_owned()))
            .into();
        let mapping = mapping(vec![field], &[]);
        assert_eq!(
            apply(&mapping, r#"[{"direction":"RISING"}]"#).as_deref(),
            Ok(r#"[{"trend":"up"}]"#)
        );
        assert_eq!(
            apply(&mapping, r#"[{"direction":-1}]"#).as_deref(),
            Ok(r#"[{"trend":"down"}]"#)
        );
        assert_eq!(
            apply(&mapping, r#"[{"direction":true}]"#).as_deref(),
            Ok(r#"[{"trend":"stable"}]"#)
        );
        assert_eq!(
            apply(&mapping, r#"[{"direction":"down"}]"#).as_deref(),
            Ok(r#"[{"trend":"down"}]"#)
        );
        assert_eq!(
            apply(&mapping, r#"[{"direction":"FALLING"}]"#).as_deref(),
            Ok("[{}]")
        );
    }

    #[test]
    fn the_source_of_the_paid_field_is_published_under_no_other_name() {
        let paid = || renamed(PAID_FIELD, "newest");
        let bad = |fields, has_paid| ItemMapping::new(fields, vec![], has_paid).unwrap_err();
        let one = |name: &str, bad| vec![(name.to_owned(), bad)];
        for name in ["score", "newest2"] {
            assert_eq!(
                bad(vec![renamed(name, PAID_FIELD)], true),
                one(name, BadItemMapping::PaidUnderAnotherName)
            );
            assert_eq!(
                bad(vec![renamed(name, PAID_FIELD)], false),
                one(name, BadItemMapping::PaidUnderAnotherName)
            );
            assert_eq!(
                bad(vec![paid(), renamed(name, "newest")], true),
                one(name, BadItemMapping::PaidUnderAnotherName)
            );
        }
        assert_eq!(
            bad(vec![paid()], false),
            one(PAID_FIELD, BadItemMapping::PaidElsewhere)
        );
        assert_eq!(
            bad(vec![paid(), renamed("newest", "x")], true),
            one("newest", BadItemMapping::NameOfPaidSource)
        );
        assert_eq!(
            mapping(vec![renamed(PAID_FIELD, PAID_FIELD)], &[]).paid_source(),
            None
        );
        // Nested copies under the backend's name are removed too.
        assert_eq!(
            apply(
                &mapping(vec![paid()], &[]),
                r#"[{"newest":81.50,"more":{"newest":81.50,"n":1}}]"#
            )
            .as_deref(),
            Ok(r#"[{"latestScore":81.50,"more":{"n":1}}]"#)
        );
    }

    fn any_json(depth: u32) -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            any::<i32>().prop_map(Into::into),
            "\\PC{0,6}".prop_map(Into::into)
        ];
        leaf.prop_recursive(depth, 40, 5, |inner| {
            let name = prop::sample::select(vec!["latestScore", "newest", "a", "b"]);
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::from),
                prop::collection::hash_map(name.prop_map(str::to_owned), inner, 0..4)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn has_name(value: &serde_json::Value, name: &str) -> bool {
        match value {
            serde_json::Value::Object(map) => {
                map.contains_key(name) || map.values().any(|inner| has_name(inner, name))
            }
            serde_json::Value::Array(all) => all.iter().any(|inner| has_name(inner, name)),
            serde_json::Value::Null
            | serde_json::Value::Bool(_)
            | serde_json::Value::Number(_)
            | serde_json::Value::String(_) => false,
        }
    }

    proptest! {
        #[test]
        fn the_free_form_of_mapped_items_has_neither_the_paid_field_nor_its_source(
            item in prop::collection::hash_map("latestScore|newest|a|b|c", any_json(4), 0..5)
        ) {
            let before = serde_json::to_value(&item).unwrap();
            let data = Bytes::from(format!("[{before}]"));
            let mapped = mapping(vec![renamed(PAID_FIELD, "newest"), renamed("x", "a")], &["c"]).apply(&data);
            let full = mapped.unwrap().unwrap();
            let free = without_member(&full, PAID_FIELD).unwrap().unwrap_or_else(|| full.clone());
            let [full, free]: [serde_json::Value; 2] =
                [full, free].map(|text| serde_json::from_slice(&text).unwrap());
            prop_assert!(!has_name(&free, PAID_FIELD) && !has_name(&free, "newest"), "{free}");
            prop_assert!(!has_name(&full, "newest"), "{full}");
            let top = full[0].as_object().unwrap();
            prop_assert!(!top.contains_key("a") && !top.contains_key("c"));
            for (name, from) in [(PAID_FIELD, "newest"), ("x", "a"), ("b", "b")] {
                prop_assert_eq!(top.contains_key(name), before.get(from).is_some(), "{}", name);
            }
        }
    }
}
