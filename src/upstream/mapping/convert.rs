//! Converts the value of a field to the type in which it is published. Numbers are validated, but keep the digits that
//! the backend wrote.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::cache::Members;
use scoregate_base::{
    clock::Wall,
    routes::{
        PublishedKind,
        shapes::{FieldShape, ItemField},
    },
};

/// The value as JSON text. `None` if it cannot be converted.
pub fn converted<'v>(value: &'v RawValue, kind: &PublishedKind) -> Option<Cow<'v, str>> {
    let text = value.get();
    match kind {
        PublishedKind::Any => Some(text.into()),
        // A null has no value and no type.
        PublishedKind::Number | PublishedKind::Text if text == "null" => Some(text.into()),
        PublishedKind::Number => number(text),
        PublishedKind::Text => string(text),
        PublishedKind::Standard(field) => standard(value, field),
        // A constant does not use a value from the backend.
        PublishedKind::Constant(_) => None,
    }
}

/// Whether a JSON text is a valid value of this API field.
pub fn is_value_of(field: &ItemField, json: &str) -> bool {
    serde_json::from_str::<&RawValue>(json).is_ok_and(|value| fits(value, field))
}

fn fits(value: &RawValue, field: &ItemField) -> bool {
    standard(value, field).is_some_and(|converted| converted == value.get())
}

/// Converts a value to the type of this API field.
fn standard<'v>(value: &'v RawValue, field: &ItemField) -> Option<Cow<'v, str>> {
    let text = value.get();
    if text == "null" {
        return field.presence.allows_null().then(|| text.into());
    }
    match &field.shape {
        FieldShape::Text => string(text),
        FieldShape::Instant => instant(text),
        FieldShape::Words(words) => {
            let word: String = serde_json::from_str(text).ok()?;
            words.contains(&word.as_str()).then(|| text.into())
        }
        FieldShape::Number => number(text),
        FieldShape::Integer => {
            number(text).filter(|digits| float(digits).is_some_and(|n| n.fract() == 0.0))
        }
        FieldShape::Score => score(text),
        FieldShape::Flag => matches!(text, "true" | "false").then(|| text.into()),
        FieldShape::Object(fields) => is_object_of(text, fields).then(|| text.into()),
        FieldShape::Objects(fields) => {
            let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
            items
                .iter()
                .all(|item| is_object_of(item.get(), fields))
                .then(|| text.into())
        }
        FieldShape::Texts => serde_json::from_str::<Vec<String>>(text)
            .ok()
            .map(|_| text.into()),
    }
}

/// Whether a value is an object in which all fields of this API are valid. Fields within an object are neither
/// converted nor omitted.
fn is_object_of(text: &str, fields: &[ItemField]) -> bool {
    let Ok(members) = Members::of(text) else {
        return false;
    };
    members.twice().is_none()
        && members.0.iter().all(|member| {
            let field = fields.iter().find(|field| field.name == member.name);
            field.is_none_or(|field| fits(member.value, field))
        })
}

fn score(text: &str) -> Option<Cow<'_, str>> {
    if serde_json::from_str::<String>(text).is_ok_and(|word| word == "unavailable") {
        return Some(text.into());
    }
    number(text).filter(|digits| float(digits).is_some_and(|score| (0.0..=100.0).contains(&score)))
}

/// An RFC 3339 time in UTC. A time in another zone is converted.
fn instant(text: &str) -> Option<Cow<'_, str>> {
    let written: String = serde_json::from_str(text).ok()?;
    // Parsing is more tolerant than RFC 3339.
    let shape: String = written
        .chars()
        .map(|char| if char.is_ascii_digit() { '0' } else { char })
        .collect();
    let rest = shape.strip_prefix("0000-00-00T00:00:00")?;
    let zone = rest
        .strip_prefix('.')
        .map_or(rest, |fraction| fraction.trim_start_matches('0'));
    let has_fraction = !rest.starts_with('.') || rest.starts_with(".0");
    if !has_fraction || !matches!(zone, "Z" | "+00:00" | "-00:00") {
        return None;
    }
    let at = Wall::parse_rfc3339(&written)?;
    Some(if zone == "Z" {
        text.into()
    } else {
        format!("\"{}\"", at.rfc3339()).into()
    })
}

/// Converts a number, or a number in a string.
fn number(text: &str) -> Option<Cow<'_, str>> {
    if is_number(text) {
        return Some(text.into());
    }
    let inner: String = serde_json::from_str(text).ok()?;
    let is_json = is_number(&inner)
        && serde_json::from_str::<&RawValue>(&inner).is_ok_and(|raw| raw.get() == inner);
    is_json.then(|| inner.into())
}

/// Converts a value to a string. A number becomes its digits, and a boolean becomes its word.
fn string(text: &str) -> Option<Cow<'_, str>> {
    if text.starts_with('"') {
        return Some(text.into());
    }
    (is_number(text) || matches!(text, "true" | "false")).then(|| format!("\"{text}\"").into())
}

fn is_number(text: &str) -> bool {
    text.starts_with(|first: char| first == '-' || first.is_ascii_digit())
}

/// The number as a float, for comparisons only, because a large number is rounded.
fn float(digits: &str) -> Option<f64> {
    digits
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use scoregate_base::routes::shapes::{INDEX, MODEL, TRANSPARENCY};

    fn to(kind: &PublishedKind, text: &str) -> Option<String> {
        let value: &RawValue = serde_json::from_str(text).unwrap();
        converted(value, kind).map(Cow::into_owned)
    }

    fn check(kind: &PublishedKind, rows: &[(&str, Option<&str>)]) {
        for (text, expected) in rows {
            assert_eq!(to(kind, text).as_deref(), *expected, "{kind:?} {text}");
        }
    }

    fn of(fields: &'static [ItemField], name: &str) -> PublishedKind {
        PublishedKind::Standard(fields.iter().find(|field| field.name == name).unwrap())
    }

    #[test]
    fn numbers_keep_their_digits_and_come_out_of_strings() {
        check(
            &PublishedKind::Number,
            &[
                ("1.10", Some("1.10")),
                ("1E+2", Some("1E+2")),
                (
                    "12345678901234567890123.0000001",
                    Some("12345678901234567890123.0000001"),
                ),
                ("\"80.250\"", Some("80.250")),
                ("\"\\u0038\"", Some("8")),
                ("\"-0.0\"", Some("-0.0")),
                ("null", Some("null")),
                ("\"080\"", None),
                ("\"+1\"", None),
                ("\" 1\"", None),
                ("\"1 \"", None),
                ("\"1,2\"", None),
                ("\"NaN\"", None),
                ("\"\"", None),
                ("\"unavailable\"", None),
                ("true", None),
                ("[1]", None),
            ],
        );
    }

    #[test]
    fn strings_contain_the_digits_of_numbers() {
        check(
            &PublishedKind::Text,
            &[
                ("17", Some("\"17\"")),
                ("1.10", Some("\"1.10\"")),
                ("\"a\\u0062\"", Some("\"a\\u0062\"")),
                ("true", Some("\"true\"")),
                ("null", Some("null")),
                ("{}", None),
                ("[]", None),
            ],
        );
    }

    #[test]
    fn a_field_of_this_api_has_its_type_or_is_left_out() {
        check(
            &of(MODEL, "id"),
            &[("17", Some("\"17\"")), ("null", None), ("[]", None)],
        );
        check(
            &of(MODEL, "currentScore"),
            &[
                ("80.10", Some("80.10")),
                ("\"80.10\"", Some("80.10")),
                ("\"unavailable\"", Some("\"unavailable\"")),
                ("null", Some("null")),
                ("100.5", None),
                ("1e999", None),
                ("-1", None),
                ("\"good\"", None),
            ],
        );
        check(
            &of(MODEL, "trend"),
            &[
                ("\"up\"", Some("\"up\"")),
                ("\"rising\"", None),
                ("1", None),
                ("null", None),
            ],
        );
        check(
            &of(MODEL, "runs"),
            &[
                ("12", Some("12")),
                ("12.0", Some("12.0")),
                ("\"12\"", Some("12")),
                ("1.5", None),
            ],
        );
        check(
            &of(MODEL, "lastUpdated"),
            &[
                ("\"2026-11-21T10:00:00Z\"", Some("\"2026-11-21T10:00:00Z\"")),
                (
                    "\"2026-11-21T10:00:00.120456789Z\"",
                    Some("\"2026-11-21T10:00:00.120456789Z\""),
                ),
                (
                    "\"2026-11-21T12:00:00+02:00\"",
                    Some("\"2026-11-21T10:00:00Z\""),
                ),
                (
                    "\"2026-11-21T09:30:00-00:30\"",
                    Some("\"2026-11-21T10:00:00Z\""),
                ),
                ("\"2026-11-21 10:00:00\"", None),
                ("\"2026-11-21T10:00:00\"", None),
                ("\"2026-11-21T10:00:00.Z\"", None),
                ("\"2026-11-21T10:00Z\"", None),
                ("\"20261121T100000Z\"", None),
                ("\"2026-13-21T10:00:00Z\"", None),
                ("\"2026-11-21T10:00:00Z[UTC]\"", None),
                ("\" 2026-11-21T10:00:00Z\"", None),
                ("1763726400", None),
            ],
        );
        check(
            &of(TRANSPARENCY, "synthetic"),
            &[("true", Some("true")), ("1", None), ("\"true\"", None)],
        );
        let points = r#"[{"timestamp":"2026-11-21T10:00:00Z","value":7.10,"more":[]}]"#;
        check(
            &of(INDEX, "history"),
            &[
                (points, Some(points)),
                ("[]", Some("[]")),
                (r#"[{"value":"7.10"}]"#, None),
                (r#"[{"value":1,"value":2}]"#, None),
                ("[7]", None),
                ("{}", None),
            ],
        );
    }
}
