//! The Free form of a configured endpoint with fields for paid callers only: of an item only the declared fields that
//! Free callers may see, nested ones included. A field that the backend adds later is not sent before it is declared.

use bytes::Bytes;
use serde_json::value::RawValue;

use scoregate_base::routes::shapes::{FieldShape, ItemField};

use super::members::Members;
use super::paid_field::BadContent;

/// The declared fields of all items that Free callers may see. Values keep their text; space between them is removed.
pub(super) fn only_declared(data: &Bytes, fields: &[ItemField]) -> Result<Bytes, BadContent> {
    let items: Vec<&RawValue> = serde_json::from_slice(data).map_err(|_| BadContent)?;
    let mut kept = String::with_capacity(data.len());
    list(&items, &mut kept, |item, kept| {
        if !item.starts_with('{') {
            return Err(BadContent);
        }
        object(item, fields, kept)?;
        Ok(true)
    })?;
    Ok(kept.into())
}

/// Appends a list. `append` appends an element, or nothing and returns false.
fn list(
    elements: &[&RawValue],
    kept: &mut String,
    append: impl Fn(&str, &mut String) -> Result<bool, BadContent>,
) -> Result<(), BadContent> {
    kept.push('[');
    for element in elements {
        let before = kept.len();
        if !kept.ends_with('[') {
            kept.push(',');
        }
        if !append(element.get(), kept)? {
            kept.truncate(before);
        }
    }
    kept.push(']');
    Ok(())
}

fn object(value: &str, fields: &[ItemField], kept: &mut String) -> Result<(), BadContent> {
    let members = Members::of(value).map_err(|_| BadContent)?;
    // With duplicate names, parsers would disagree about which value counts.
    if members.twice().is_some() {
        return Err(BadContent);
    }
    kept.push('{');
    for member in &members.0 {
        let declared = fields.iter().find(|field| field.name == member.name && !field.paid_only);
        let Some(field) = declared else { continue };
        let before = kept.len();
        if !kept.ends_with('{') {
            kept.push(',');
        }
        kept.push_str(member.written);
        kept.push(':');
        if !value_of(member.value.get(), &field.shape, kept)? {
            kept.truncate(before);
        }
    }
    kept.push('}');
    Ok(())
}

/// Appends a value. An object or a list where none is declared has undeclared parts: it is left out, and the result is
/// false.
fn value_of(value: &str, shape: &FieldShape, kept: &mut String) -> Result<bool, BadContent> {
    let is_simple = |value: &str| !value.starts_with(['{', '[']);
    match shape {
        _ if is_simple(value) => kept.push_str(value),
        FieldShape::Object(fields) if value.starts_with('{') => object(value, fields, kept)?,
        FieldShape::Objects(fields) if value.starts_with('[') => {
            let elements: Vec<&RawValue> = serde_json::from_str(value).map_err(|_| BadContent)?;
            list(&elements, kept, |element, kept| value_of(element, &FieldShape::Object(fields), kept))?;
        }
        FieldShape::Texts if value.starts_with('[') => {
            let elements: Vec<&RawValue> = serde_json::from_str(value).map_err(|_| BadContent)?;
            list(&elements, kept, |element, kept| value_of(element, &FieldShape::Text, kept))?;
        }
        FieldShape::Object(_)
        | FieldShape::Objects(_)
        | FieldShape::Texts
        | FieldShape::Text
        | FieldShape::Instant
        | FieldShape::Number
        | FieldShape::Score
        | FieldShape::Integer
        | FieldShape::Flag
        | FieldShape::Words(_) => return Ok(false),
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use scoregate_base::routes::shapes::Presence;

    const fn field(name: &'static str, shape: FieldShape, paid_only: bool) -> ItemField {
        ItemField { name, shape, presence: Presence::Always, paid_only, meaning: "", example: None }
    }

    const INNER: &[ItemField] =
        &[field("from", FieldShape::Integer, false), field("rebate", FieldShape::Number, true)];
    const FIELDS: &[ItemField] = &[
        field("id", FieldShape::Text, false),
        field("cost", FieldShape::Number, true),
        field("tags", FieldShape::Texts, false),
        field("seller", FieldShape::Object(INNER), false),
        field("steps", FieldShape::Objects(INNER), false),
    ];

    fn kept(data: &'static str) -> Result<String, BadContent> {
        let kept = only_declared(&Bytes::from_static(data.as_bytes()), FIELDS)?;
        Ok(String::from_utf8(kept.to_vec()).unwrap())
    }

    #[test]
    fn only_declared_fields_that_free_callers_may_see_are_kept() {
        for (data, expected) in [
            ("[]", "[]"),
            (r#"[{"cost":1}]"#, "[{}]"),
            (
                r#"[ { "new" : 1 , "id" : "\u0061" , "cost" : 2.50 } ,{"id":null}]"#,
                r#"[{"id":"\u0061"},{"id":null}]"#,
            ),
            (r#"[{"\u0063ost":1,"id":"a"}]"#, r#"[{"id":"a"}]"#),
            (r#"[{"id":{"cost":1},"tags":["a",{"cost":1},"b",[2]]}]"#, r#"[{"tags":["a","b"]}]"#),
            (r#"[{"seller":{"rebate":3,"from":1.0,"x":0}}]"#, r#"[{"seller":{"from":1.0}}]"#),
            (r#"[{"seller":[{"from":1}],"steps":{"from":1}}]"#, "[{}]"),
            (r#"[{"steps":[{"rebate":1},{"from":2},[3],null]}]"#, r#"[{"steps":[{},{"from":2},null]}]"#),
        ] {
            assert_eq!(kept(data).as_deref(), Ok(expected), "{data}");
        }
    }

    #[test]
    fn data_whose_fields_are_ambiguous_is_rejected() {
        for data in [r#"[{"id":1,"id":2}]"#, r#"[{"seller":{"from":1,"from":2}}]"#, "[1]", "{}", "[{]"] {
            assert_eq!(kept(data), Err(BadContent), "{data}");
        }
    }
}
