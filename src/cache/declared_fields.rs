//! Builds the reduced forms of a configured endpoint's document. Each form lacks some reserved fields. Items, including nested objects, have only the declared
//! fields that the tier sees. A field that the backend adds later is not sent until it is declared.

use bytes::Bytes;
use serde_json::value::RawValue;

use scoregate_base::{
    plans::FieldPaths,
    routes::{
        Endpoint,
        shapes::{FieldShape, ItemField},
    },
};

use super::{members::Members, paid_field::BadContent};

/// The declared fields of all items, without the reserved fields that are not in `seen`. Values keep their text; white
/// space between them is removed.
pub fn only_declared(
    data: &Bytes,
    endpoint: &Endpoint,
    seen: &FieldPaths,
) -> Result<Bytes, BadContent> {
    let visible = VisibleFields {
        place: endpoint.name,
        fields: endpoint.item,
        seen,
    };
    let items: Vec<&RawValue> = serde_json::from_slice(data).map_err(|_| BadContent)?;
    let mut kept = String::with_capacity(data.len());
    list(&items, &mut kept, |item, kept| {
        if !item.starts_with('{') {
            return Err(BadContent);
        }
        visible.object(item, kept)?;
        Ok(true)
    })?;
    Ok(kept.into())
}

/// The fields of an object, as a tier sees them.
#[derive(Clone, Copy)]
struct VisibleFields<'a> {
    /// The path of the object.
    place: &'a str,
    fields: &'a [ItemField],
    /// The paths of reserved fields that the tier sees.
    seen: &'a FieldPaths,
}

/// Appends a list. `append` returns false for an element that it omits.
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

impl VisibleFields<'_> {
    /// Appends an object.
    fn object(&self, value: &str, kept: &mut String) -> Result<(), BadContent> {
        let members = Members::of(value).map_err(|_| BadContent)?;
        // With duplicate names, parsers would disagree about which value counts.
        if members.twice().is_some() {
            return Err(BadContent);
        }
        kept.push('{');
        for member in &members.0 {
            let Some(field) = self.fields.iter().find(|field| field.name == member.name) else {
                continue;
            };
            // Only paths of reserved fields are looked up.
            let path = if field.has_paid_part() {
                [self.place, ".", field.name].concat()
            } else {
                String::new()
            };
            if field.paid_only && !self.seen.contains(&path) {
                continue;
            }
            let before = kept.len();
            if !kept.ends_with('{') {
                kept.push(',');
            }
            kept.push_str(member.written);
            kept.push(':');
            let parts = VisibleFields {
                place: &path,
                fields: field.shape.fields(),
                seen: self.seen,
            };
            if !parts.value(member.value.get(), &field.shape, kept)? {
                kept.truncate(before);
            }
        }
        kept.push('}');
        Ok(())
    }

    /// Appends a value of this shape. An object or a list for which the shape declares no parts is omitted, and the
    /// result is false.
    fn value(
        &self,
        value: &str,
        shape: &FieldShape,
        kept: &mut String,
    ) -> Result<bool, BadContent> {
        let is_list = matches!(shape, FieldShape::Objects(_) | FieldShape::Texts);
        if !value.starts_with(['{', '[']) {
            kept.push_str(value);
        } else if value.starts_with('{') && matches!(shape, FieldShape::Object(_)) {
            self.object(value, kept)?;
        } else if value.starts_with('[') && is_list {
            let of_objects = matches!(shape, FieldShape::Objects(_));
            let element = if of_objects {
                FieldShape::Object(&[])
            } else {
                FieldShape::Text
            };
            let elements: Vec<&RawValue> = serde_json::from_str(value).map_err(|_| BadContent)?;
            list(&elements, kept, |one, kept| self.value(one, &element, kept))?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scoregate_base::routes::shapes::Presence;

    const fn field(name: &'static str, shape: FieldShape, paid_only: bool) -> ItemField {
        ItemField {
            name,
            shape,
            presence: Presence::Always,
            paid_only,
            meaning: "",
            example: None,
        }
    }

    const INNER: &[ItemField] = &[
        field("from", FieldShape::Integer, false),
        field("rebate", FieldShape::Number, true),
    ];
    const FIELDS: &[ItemField] = &[
        field("id", FieldShape::Text, false),
        field("cost", FieldShape::Number, true),
        field("tags", FieldShape::Texts, false),
        field("seller", FieldShape::Object(INNER), false),
        field("steps", FieldShape::Objects(INNER), false),
    ];

    fn kept(data: &'static str, seen: &[&str]) -> Result<String, BadContent> {
        let route = scoregate_base::routes::Route::Models;
        let summary = "";
        let endpoint = Endpoint {
            route,
            name: "prices",
            segments: &[],
            takes: &[],
            stored: true,
            summary,
            item: FIELDS,
            one: false,
            brief: &[],
        };
        let seen = seen.iter().map(|path| (*path).to_owned()).collect();
        let kept = only_declared(&Bytes::from_static(data.as_bytes()), &endpoint, &seen)?;
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
            (
                r#"[{"id":{"cost":1},"tags":["a",{"cost":1},"b",[2]]}]"#,
                r#"[{"tags":["a","b"]}]"#,
            ),
            (
                r#"[{"seller":{"rebate":3,"from":1.0,"x":0}}]"#,
                r#"[{"seller":{"from":1.0}}]"#,
            ),
            (r#"[{"seller":[{"from":1}],"steps":{"from":1}}]"#, "[{}]"),
            (
                r#"[{"steps":[{"rebate":1},{"from":2},[3],null]}]"#,
                r#"[{"steps":[{},{"from":2},null]}]"#,
            ),
        ] {
            assert_eq!(kept(data, &[]).as_deref(), Ok(expected), "{data}");
        }
    }

    #[test]
    fn a_tier_sees_the_reserved_fields_of_its_set_wherever_they_are() {
        let data = r#"[{"cost":1,"new":2,"seller":{"rebate":3},"steps":[{"rebate":4}]}]"#;
        for (seen, expected) in [
            (
                &["prices.cost"][..],
                r#"[{"cost":1,"seller":{},"steps":[{}]}]"#,
            ),
            (
                &["prices.seller.rebate", "cost"],
                r#"[{"seller":{"rebate":3},"steps":[{}]}]"#,
            ),
            (
                &["prices.steps.rebate", "other.cost"],
                r#"[{"seller":{},"steps":[{"rebate":4}]}]"#,
            ),
        ] {
            assert_eq!(kept(data, seen).as_deref(), Ok(expected), "{seen:?}");
        }
    }

    #[test]
    fn data_whose_fields_are_ambiguous_is_rejected() {
        for data in [
            r#"[{"id":1,"id":2}]"#,
            r#"[{"seller":{"from":1,"from":2}}]"#,
            "[1]",
            "{}",
            "[{]",
        ] {
            assert_eq!(kept(data, &[]), Err(BadContent), "{data}");
        }
    }
}
