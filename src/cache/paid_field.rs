//! Cutting the field that only paid callers may see out of the backend's data, so that nothing tells that it was there.
//!
//! Not for: whose form of a document is without it (`document.rs`), nor for anything else in an item.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;

use bytes::Bytes;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::document::BadContent;

/// The field that only paid callers see.
pub(super) const PAID_FIELD: &str = "latestScore";
/// Deeper nesting is no benchmark data.
pub(super) const DEEPEST: u8 = 64;

/// The data without the paid field, wherever in an item it stands; `None` if there is none. The field is cut out with
/// one comma and the space on that comma's side, and nothing else is touched: data that never had it has the same
/// bytes. It is looked for even where it cannot be, so that its presence never decides whether the rest is taken.
pub(super) fn without_paid_field(data: &Bytes) -> Result<Option<Bytes>, BadContent> {
    let text = std::str::from_utf8(data).map_err(|_| BadContent)?;
    let whole: &RawValue = serde_json::from_str(text).map_err(|_| BadContent)?;
    let mut cuts = Vec::new();
    find_paid(text, whole.get(), DEEPEST, &mut cuts)?;
    if cuts.is_empty() {
        return Ok(None);
    }
    let (mut kept, mut from) = (Vec::with_capacity(text.len()), 0);
    for cut in cuts {
        kept.extend_from_slice(data.get(from..cut.start).ok_or(BadContent)?);
        from = cut.end;
    }
    kept.extend_from_slice(data.get(from..).ok_or(BadContent)?);
    Ok(Some(Bytes::from(kept)))
}

/// Finds what has to be cut out of `value`, a part of `whole`, in the order of the text.
fn find_paid(whole: &str, value: &str, depth: u8, cuts: &mut Vec<Range<usize>>) -> Result<(), BadContent> {
    let deeper = depth.checked_sub(1).ok_or(BadContent);
    match value.as_bytes().first() {
        Some(b'{') => {
            let Fields(fields) = serde_json::from_str(value).map_err(|_| BadContent)?;
            let depth = deeper?;
            for (place, field) in fields.iter().enumerate() {
                if field.is_paid {
                    cuts.push(cut(whole, value, &fields, place));
                } else {
                    find_paid(whole, field.value, depth, cuts)?;
                }
            }
            Ok(())
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(value).map_err(|_| BadContent)?;
            let depth = deeper?;
            items.into_iter().try_for_each(|item| find_paid(whole, item.get(), depth, cuts))
        }
        _ => Ok(()),
    }
}

/// Where in `whole` a field of `object` begins and ends, with the comma that goes with it.
fn cut(whole: &str, object: &str, fields: &[Field<'_>], place: usize) -> Range<usize> {
    let start = |part: &str| part.as_ptr().addr() - whole.as_ptr().addr();
    let end = |part: &str| start(part) + part.len();
    let before = place.checked_sub(1).and_then(|place| fields.get(place));
    match (before, fields.get(place), fields.get(place + 1)) {
        (Some(before), Some(field), _) => end(before.value)..end(field.value),
        (None, Some(field), Some(after)) => start(field.name)..start(after.name),
        (None, _, _) | (_, None, _) => start(object) + 1..end(object) - 1,
    }
}

/// The fields of an object in their order. An object that names a field twice is refused: readers would disagree
/// about which of the two counts.
struct Fields<'de>(Vec<Field<'de>>);

/// A field as it is written.
struct Field<'de> {
    name: &'de str,
    value: &'de str,
    is_paid: bool,
}

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
                while let Some((name, value)) = map.next_entry::<&RawValue, &RawValue>()? {
                    let Name(decoded) = serde_json::from_str(name.get()).map_err(serde::de::Error::custom)?;
                    let is_paid = decoded == PAID_FIELD;
                    if !seen.insert(decoded) {
                        return Err(serde::de::Error::custom("a field is named twice"));
                    }
                    fields.push(Field { name: name.get(), value: value.get(), is_paid });
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
