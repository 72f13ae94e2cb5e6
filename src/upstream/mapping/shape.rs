//! The shape of the data at the backend, and its conversion to an array of items.
//!
//! Items are kept as raw bytes in the backend's order, so nothing is lost, reordered or rounded. `pointer` locates the
//! data.

use bytes::Bytes;
use serde_json::value::RawValue;

use crate::cache::{Member, Members, PAID_FIELD};

/// The shape of the data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DataShape {
    /// An array of items, or a single item.
    #[default]
    ArrayOrObject,
    /// An array of items.
    Array,
    /// A single item.
    Object,
    /// An object whose values are items.
    Map {
        /// The member that receives an item's key. An item that already has this member is unchanged.
        key_as: String,
    },
}

/// The data as an array.
pub struct Items<'b> {
    /// The text of the array.
    pub data: Bytes,
    /// The items as the backend wrote them, each an object.
    pub each: Vec<&'b RawValue>,
}

impl DataShape {
    /// Converts the data, which is part of `body`, to items. The reason for a rejection is meant for the operator.
    pub(super) fn items<'b>(&self, body: &Bytes, data: &'b RawValue) -> Result<Items<'b>, String> {
        let text = data.get();
        let [is_array, is_object] = [text.starts_with('['), text.starts_with('{')];
        match self {
            Self::Array | Self::ArrayOrObject if is_array => array(body, text),
            Self::Object | Self::ArrayOrObject if is_object => Ok(Items {
                data: Bytes::from(format!("[{text}]")),
                each: vec![data],
            }),
            Self::Map { key_as } if is_object => map(text, key_as),
            Self::Array => Err(format!("is not an array: {:?}", beginning(text))),
            Self::Object | Self::Map { .. } => {
                Err(format!("is not an object: {:?}", beginning(text)))
            }
            Self::ArrayOrObject => Err(format!(
                "is neither an array nor an object: {:?}",
                beginning(text)
            )),
        }
    }
}

fn array<'b>(body: &Bytes, text: &'b str) -> Result<Items<'b>, String> {
    let each: Vec<&RawValue> = serde_json::from_str(text).map_err(|error| error.to_string())?;
    if let Some(odd) = each.iter().find(|item| !item.get().starts_with('{')) {
        return Err(format!(
            "has an item that is not an object: {:?}",
            beginning(odd.get())
        ));
    }
    Ok(Items {
        data: body.slice_ref(text.as_bytes()),
        each,
    })
}

fn map<'b>(text: &'b str, key_as: &str) -> Result<Items<'b>, String> {
    let entries = Members::of(text).map_err(|error| error.to_string())?;
    if let Some(entry) = entries.twice() {
        return Err(format!("has the key {} more than once", entry.written));
    }
    let mut data = String::from("[");
    let mut each = Vec::new();
    for entry in &entries.0 {
        if !each.is_empty() {
            data.push(',');
        }
        // As a separate item, this entry would show the paid value under other names.
        if entry.name == PAID_FIELD {
            return Err(format!("has an entry {PAID_FIELD}, which is not an item"));
        }
        push_item(&mut data, entry, key_as)?;
        each.push(entry.value);
    }
    data.push(']');
    Ok(Items {
        data: Bytes::from(data),
        each,
    })
}

/// Appends an entry of a map as an item. The key, as written in the map, becomes the first member.
fn push_item(data: &mut String, entry: &Member<'_>, key_as: &str) -> Result<(), String> {
    let key = entry.written;
    let text = entry.value.get();
    let Some(rest) = text.strip_prefix('{') else {
        return Err(format!(
            "has an entry that is not an object: {key}: {:?}",
            beginning(text)
        ));
    };
    let members = Members::of(text).map_err(|error| error.to_string())?;
    let named = members
        .get(key_as)
        .map_err(|_| format!("has an entry with more than one `{key_as}`: {key}"))?;
    if named.is_some() {
        data.push_str(text);
        return Ok(());
    }
    let separator = if members.0.is_empty() { "" } else { "," };
    let name = serde_json::Value::from(key_as);
    for part in ["{", &name.to_string(), ":", key, separator, rest] {
        data.push_str(part);
    }
    Ok(())
}

/// The first characters of a text, for messages.
fn beginning(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn items(shape: &DataShape, data: &str) -> Result<String, String> {
        let body = Bytes::copy_from_slice(data.as_bytes());
        let raw: &RawValue = serde_json::from_str(std::str::from_utf8(&body).unwrap()).unwrap();
        let items = shape.items(&body, raw)?;
        let array: Vec<&RawValue> = serde_json::from_slice(&items.data).unwrap();
        assert_eq!(array.len(), items.each.len());
        Ok(String::from_utf8(items.data.to_vec()).unwrap())
    }

    fn by_provider() -> DataShape {
        DataShape::Map {
            key_as: "provider".into(),
        }
    }

    #[test]
    fn array_is_unchanged_and_object_becomes_an_array_of_one() {
        for shape in [DataShape::ArrayOrObject, DataShape::Array] {
            assert_eq!(
                items(&shape, r#"[ {"n":1.10}, {} ]"#).as_deref(),
                Ok(r#"[ {"n":1.10}, {} ]"#)
            );
            assert_eq!(items(&shape, "[]").as_deref(), Ok("[]"));
        }
        for shape in [DataShape::ArrayOrObject, DataShape::Object] {
            assert_eq!(
                items(&shape, r#"{ "n":1.10}"#).as_deref(),
                Ok(r#"[{ "n":1.10}]"#)
            );
        }
    }

    #[test]
    fn the_entries_of_a_map_become_items_that_carry_their_key() {
        for (map, expected) in [
            ("{}", "[]"),
            (
                r#"{ "b" : { "n" : 1.10 } , "a":{"n":1E+2}}"#,
                r#"[{"provider":"b", "n" : 1.10 },{"provider":"a","n":1E+2}]"#,
            ),
            (
                r#"{"\u00e9\/":{}, "x":{ }}"#,
                r#"[{"provider":"\u00e9\/"},{"provider":"x" }]"#,
            ),
            (
                r#"{"a":{"n":1,"provider":"A"},"b":{"provider":null}}"#,
                r#"[{"n":1,"provider":"A"},{"provider":null}]"#,
            ),
        ] {
            assert_eq!(items(&by_provider(), map).as_deref(), Ok(expected));
        }
        let odd = DataShape::Map {
            key_as: "the \"key\"".into(),
        };
        assert_eq!(
            items(&odd, r#"{"a":{}}"#).as_deref(),
            Ok(r#"[{"the \"key\"":"a"}]"#)
        );
    }

    #[test]
    fn other_values_are_rejected_with_the_reason() {
        for (shape, data, reason) in [
            (
                DataShape::ArrayOrObject,
                "7",
                "neither an array nor an object",
            ),
            (DataShape::Array, "{}", "not an array"),
            (DataShape::Array, "[1]", "an item that is not an object"),
            (DataShape::Object, "[{}]", "not an object"),
            (by_provider(), "[]", "not an object"),
            (
                by_provider(),
                r#"{"a":{},"b":[]}"#,
                "an entry that is not an object: \"b\"",
            ),
            (by_provider(), r#"{"a":{},"\u0061":{}}"#, "more than once"),
            (
                by_provider(),
                r#"{"a":{"provider":1,"provider":2}}"#,
                "more than one `provider`",
            ),
        ] {
            let refused = items(&shape, data).unwrap_err();
            assert!(refused.contains(reason), "{data}: {refused}");
        }
    }

    const SPACES: [&str; 4] = ["", " ", "\n\t", "  "];
    const VALUES: [&str; 9] = [
        "1.10",
        "-0.0",
        "1E+2",
        "12345678901234567890123",
        "null",
        r#""\u00e9\/ é""#,
        r#"{"provider": {"deep":[ ] } }"#,
        "[ 1.0 , {} ]",
        r#""}],{\"""#,
    ];

    fn any_item() -> impl Strategy<Value = String> {
        let member = (
            "[a-z]{1,6}",
            0..VALUES.len(),
            0..SPACES.len(),
            0..SPACES.len(),
        );
        prop::collection::vec(member, 0..5).prop_map(|members| {
            let member =
                |(at, (name, value, before, after)): (usize, &(String, usize, usize, usize))| {
                    let before = SPACES[*before];
                    let after = SPACES[*after];
                    format!(
                        "{before}\"{name}{at}\"{after}:{before}{}{after}",
                        VALUES[*value]
                    )
                };
            members
                .iter()
                .enumerate()
                .map(member)
                .collect::<Vec<_>>()
                .join(",")
        })
    }

    proptest! {
        #[test]
        fn items_of_a_map_keep_each_member_byte_for_byte_in_the_backend_s_order(
            inside in prop::collection::vec((any_item(), "[a-z/.é]{0,6}"), 0..6),
        ) {
            let keys: Vec<String> =
                inside.iter().enumerate().map(|(at, (_, key))| format!("\"{key}\\u00{at:02}\"")).collect();
            let entries: Vec<String> =
                inside.iter().zip(&keys).map(|((item, _), key)| format!("{key}: {{{item}}}")).collect();
            let expected: Vec<String> = inside.iter().zip(&keys).map(|((item, _), key)| {
                let comma = if item.is_empty() { "" } else { "," };
                format!("{{\"provider\":{key}{comma}{item}}}")
            }).collect();
            let items = items(&by_provider(), &format!("{{{}}}", entries.join(" ,"))).unwrap();
            prop_assert_eq!(items, format!("[{}]", expected.join(",")));
        }
    }
}
