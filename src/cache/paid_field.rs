//! Removes a field, such as the field that only paid callers may see, from the backend's data without leaving a trace.

use std::ops::Range;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::members::{Member, Members};

/// The field for paid callers only.
pub const PAID_FIELD: &str = "latestScore";
/// Maximum nesting of the data.
// The search is recursive, so this limits its stack.
pub const DEEPEST: u8 = 64;

/// The error for backend data that cannot become a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the data is not an array of well-formed items nested at most {DEEPEST} deep")]
pub struct BadContent;

/// The data without the paid field. See [`without_member`].
pub fn without_paid_field(data: &Bytes) -> Result<Option<Bytes>, BadContent> {
    without_member(data, PAID_FIELD)
}

/// The data without a field, at any depth. Returns `None` if the field does not occur. The field is cut out with one
/// adjacent comma and the white space on that side. Nothing else changes, so the result equals data that never had the
/// field. Every nested object is searched, so whether data is accepted does not depend on the presence of the field.
pub fn without_member(data: &Bytes, name: &str) -> Result<Option<Bytes>, BadContent> {
    let text = std::str::from_utf8(data).map_err(|_| BadContent)?;
    let whole: &RawValue = serde_json::from_str(text).map_err(|_| BadContent)?;
    let mut cuts = Vec::new();
    find_cuts(text, whole.get(), name, DEEPEST, &mut cuts)?;
    if cuts.is_empty() {
        return Ok(None);
    }
    let mut kept = Vec::with_capacity(text.len());
    let mut from = 0;
    for cut in cuts {
        kept.extend_from_slice(data.get(from..cut.start).ok_or(BadContent)?);
        from = cut.end;
    }
    kept.extend_from_slice(data.get(from..).ok_or(BadContent)?);
    Ok(Some(Bytes::from(kept)))
}

/// Collects the ranges to cut out of `value`, a part of `whole`, in the order of the text.
fn find_cuts(
    whole: &str,
    value: &str,
    name: &str,
    depth: u8,
    cuts: &mut Vec<Range<usize>>,
) -> Result<(), BadContent> {
    let deeper = depth.checked_sub(1).ok_or(BadContent);
    match value.as_bytes().first() {
        Some(b'{') => {
            let fields = Members::of(value).map_err(|_| BadContent)?;
            // With duplicate names, parsers would disagree about which value counts.
            if fields.twice().is_some() {
                return Err(BadContent);
            }
            let depth = deeper?;
            for (index, field) in fields.0.iter().enumerate() {
                if field.name == name {
                    cuts.push(cut(whole, value, &fields.0, index));
                } else {
                    find_cuts(whole, field.value.get(), name, depth, cuts)?;
                }
            }
            Ok(())
        }
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(value).map_err(|_| BadContent)?;
            let depth = deeper?;
            items
                .into_iter()
                .try_for_each(|item| find_cuts(whole, item.get(), name, depth, cuts))
        }
        _ => Ok(()),
    }
}

/// The range in `whole` of a field of `object`, with one adjacent comma.
fn cut(whole: &str, object: &str, fields: &[Member<'_>], index: usize) -> Range<usize> {
    let start = |part: &str| part.as_ptr().addr() - whole.as_ptr().addr();
    let end = |part: &str| start(part) + part.len();
    let leading = index.checked_sub(1).and_then(|index| fields.get(index));
    match (leading, fields.get(index), fields.get(index + 1)) {
        (Some(leading), Some(field), _) => end(leading.value.get())..end(field.value.get()),
        (None, Some(field), Some(after)) => start(field.written)..start(after.written),
        (None, _, _) | (_, None, _) => start(object) + 1..end(object) - 1,
    }
}
