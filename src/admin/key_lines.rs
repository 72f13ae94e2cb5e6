//! A key as a line of an import or an export: named fields and their validation.
//!
//! The fields are the same in a CSV file, a JSON line and the side port's JSON. Errors name the field and never repeat
//! its value, which may be a key in the wrong column. Does not read files.

use std::fmt;
use std::sync::LazyLock;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::{Value, json};

use crate::registry::{BadField, KeyRecord};
use scoregate_base::clock::Wall;
use scoregate_base::keys::Digest;
use scoregate_store::{Description, OwnLimits};

/// All fields, in the order of an export.
pub static FIELDS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let limits = [
        "sha256",
        "name",
        "tier",
        "application",
        "prefix",
        "key_name",
        "minute_limit",
        "day_limit",
    ];
    let times = ["created_at", "expires_at", "revoked_at"];
    limits
        .into_iter()
        .chain(Description::NAMES)
        .chain(times)
        .collect()
});
/// The required fields.
pub const REQUIRED: [&str; 3] = ["sha256", "name", "tier"];
/// Length up to which an unknown name is repeated in an error; a longer one may be a key.
const MAX_REPEATED_NAME: usize = 15;
const TIMESTAMP: &str = "must be a timestamp such as 2027-01-31T00:00:00Z";

/// Names and values in order, with duplicates.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LineObject(pub Vec<(String, Value)>);

impl LineObject {
    /// The fields of a key.
    pub fn of(record: &KeyRecord) -> Self {
        let key = [
            ("sha256", json!(record.digest.to_string())),
            ("name", json!(record.name)),
            ("tier", json!(record.tier)),
            ("application", json!(record.application)),
            ("prefix", json!(record.shown)),
            ("key_name", json!(record.key_name)),
            ("minute_limit", json!(record.own.minute)),
            ("day_limit", json!(record.own.day)),
        ];
        let times = [
            ("created_at", json!(record.created_at)),
            ("expires_at", json!(record.expires_at)),
            ("revoked_at", json!(record.revoked_at)),
        ];
        let description = record
            .description
            .columns()
            .map(|(name, value)| (name, json!(value)));
        let given = key
            .into_iter()
            .chain(description)
            .chain(times)
            .filter(|(_, value)| !value.is_null());
        Self(
            given
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
        )
    }

    /// Validates the fields of a key. A null counts as absent.
    pub fn read(self) -> Result<KeyRecord, BadField> {
        let mut known = KnownFields::default();
        for (name, value) in self.0 {
            known.insert(&name, value)?;
        }
        let record = KeyRecord {
            digest: known.required("sha256", "must be 64 hexadecimal digits", Digest::from_hex)?,
            name: known.required("name", "must be a string", |text| Some(text.to_owned()))?,
            tier: known.required("tier", "must be the name of a tier", |text| Some(text.to_owned()))?,
            application: known.read(
                "application",
                "must be an application id (`app_` and eleven letters or digits), or absent for a new application",
                |text| text.parse().ok(),
            )?,
            shown: known.text("prefix")?,
            key_name: known.text("key_name")?,
            own: OwnLimits { minute: known.number("minute_limit")?, day: known.number("day_limit")? },
            description: Description::try_from_fn(|name| known.text(name))?,
            created_at: known.read("created_at", TIMESTAMP, Wall::parse_rfc3339)?,
            expires_at: known.read("expires_at", TIMESTAMP, Wall::parse_rfc3339)?,
            revoked_at: known.read("revoked_at", TIMESTAMP, Wall::parse_rfc3339)?,
        };
        record.check()?;
        Ok(record)
    }

    /// The value of a field as a cell of a table; empty if there is none.
    pub fn cell(&self, name: &str) -> String {
        let value = self
            .0
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value);
        match value {
            None => String::new(),
            Some(value) => value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned),
        }
    }
}

/// The name of a field; an error lists all fields.
pub fn known_field(name: &str) -> Result<&'static str, BadField> {
    FIELDS
        .iter()
        .copied()
        .find(|known| *known == name)
        .ok_or_else(|| {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || " _-".contains(c);
            let repeated = name.len() <= MAX_REPEATED_NAME && name.chars().all(is_plain);
            let shown = if repeated { name } else { "a field" };
            BadField::new(
                shown,
                format!("is not a known field; the fields are {}", FIELDS.join(", ")),
            )
        })
}

#[derive(Default)]
struct KnownFields(Vec<(&'static str, Value)>);

impl KnownFields {
    fn insert(&mut self, name: &str, value: Value) -> Result<(), BadField> {
        let name = known_field(name)?;
        if self.0.iter().any(|(known, _)| *known == name) {
            return Err(BadField::new(name, "is given twice"));
        }
        self.0.push((name, value));
        Ok(())
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        let index = self.0.iter().position(|(known, _)| *known == name)?;
        Some(self.0.swap_remove(index).1).filter(|value| !value.is_null())
    }

    fn text(&mut self, name: &str) -> Result<Option<String>, BadField> {
        self.read(name, "must be a string", |text| Some(text.to_owned()))
    }

    fn read<T>(
        &mut self,
        name: &str,
        expected: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, BadField> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        let bad = || BadField::new(name, expected);
        value.as_str().and_then(read).ok_or_else(bad).map(Some)
    }

    fn required<T>(
        &mut self,
        name: &str,
        expected: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, BadField> {
        self.read(name, expected, read)?
            .ok_or_else(|| BadField::new(name, format!("is missing; it {expected}")))
    }

    /// A JSON number, or a string of digits as in CSV.
    fn number(&mut self, name: &str) -> Result<Option<u32>, BadField> {
        let Some(value) = self.take(name) else {
            return Ok(None);
        };
        let digits = |text: &str| text.parse().ok().filter(|_| !text.starts_with('+'));
        let number = value
            .as_u64()
            .and_then(|number| u32::try_from(number).ok())
            .or(value.as_str().and_then(digits));
        let bad = || BadField::new(name, format!("must be an integer from 1 to {}", u32::MAX));
        number.ok_or_else(bad).map(Some)
    }
}

impl Serialize for LineObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        self.0
            .iter()
            .try_for_each(|(name, value)| map.serialize_entry(name, value))?;
        map.end()
    }
}

impl<'de> Deserialize<'de> for LineObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = LineObject;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with the fields of one key")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LineObject, A::Error> {
                let mut fields = Vec::with_capacity(FIELDS.len());
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(LineObject(fields))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// Parses a line of JSON. An error does not repeat the line.
pub fn read_json(line: &str) -> Result<KeyRecord, BadField> {
    let fields: LineObject = serde_json::from_str(line).map_err(|error| {
        let byte = error.column();
        BadField::new(
            "line",
            format!("is not a single JSON object: syntax error at byte {byte}"),
        )
    })?;
    fields.read()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn a_line_is_parsed_as_it_was_written() {
        let minimal = format!(r#"{{"sha256":"{DIGEST}","name":"One","tier":"pro"}}"#);
        let full = format!(
            r#"{{"sha256":"{DIGEST}","name":"One, \"two\" 🌦","tier":"pro","application":"app_0123456789a","prefix":"tp_12","key_name":"Station 7","minute_limit":7,"day_limit":4294967295,"url":"https://example.org/?a=b","contact":"a@example.org","note":"'; --","created_at":"2026-01-02T03:04:05.006Z","expires_at":"2027-01-01T00:00:00Z","revoked_at":"2026-06-01T00:00:00Z"}}"#
        );
        for line in [minimal, full] {
            let record = read_json(&line).unwrap();
            assert_eq!(
                serde_json::to_string(&LineObject::of(&record)).unwrap(),
                line
            );
        }
    }

    #[test]
    fn an_invalid_line_is_rejected_with_the_field_and_the_expected_value() {
        let with = |more: &str| format!(r#"{{"sha256":"{DIGEST}","name":"n","tier":"pro"{more}}}"#);
        let without = |field: &str| with("").replace(&format!(r#""{field}":"#), r#""note":"#);
        let long = "x".repeat(201);
        for (line, field, words) in [
            (String::new(), "line", "JSON object"),
            ("{".into(), "line", "JSON object"),
            ("[1]".into(), "line", "JSON object"),
            (format!("{} {{}}", with("")), "line", "JSON object"),
            (without("sha256"), "sha256", "missing"),
            (without("name"), "name", "missing"),
            (without("tier"), "tier", "missing"),
            (with("").replace(DIGEST, "0123"), "sha256", "64 hexadecimal"),
            (
                with("").replace(DIGEST, &"g".repeat(64)),
                "sha256",
                "64 hexadecimal",
            ),
            (
                with("").replace(&format!("\"{DIGEST}\""), "7"),
                "sha256",
                "64 hexadecimal",
            ),
            (with(r#","admin":true"#), "admin", "the fields are"),
            (
                with(r#","tp_1234567890abcdef":1"#),
                "a field",
                "the fields are",
            ),
            (with(r#","tier":"free""#), "tier", "twice"),
            (with(r#","application":"weather""#), "application", "app_"),
            (with(r#","minute_limit":0"#), "minute_limit", "at least 1"),
            (with(r#","day_limit":"0""#), "day_limit", "at least 1"),
            (with(r#","day_limit":-1"#), "day_limit", "an integer from"),
            (with(r#","day_limit":1.5"#), "day_limit", "an integer from"),
            (with(r#","day_limit":"+1""#), "day_limit", "an integer from"),
            (
                with(r#","minute_limit":4294967296"#),
                "minute_limit",
                "an integer from",
            ),
            (with(r#","url":7"#), "url", "string"),
            (
                with(r#","url":"javascript:alert(1)""#),
                "url",
                "begin with https://",
            ),
            (
                with(r#","url":"https://example.org/\"""#),
                "url",
                "ASCII without",
            ),
            (with(r#","contact":7"#), "contact", "string"),
            (with(&format!(r#","note":"{long}""#)), "note", "1 to 200"),
            (with(r#","note":"a\u001bb""#), "note", "printable"),
            (with(r#","note":"txt.\u202egnp""#), "note", "printable"),
            (
                with(r#","name":" ""#).replacen(r#""name":"n","#, "", 1),
                "name",
                "1 to 200",
            ),
            (
                with(r#","created_at":"yesterday""#),
                "created_at",
                "2027-01-31T00:00:00Z",
            ),
            (
                with(r#","expires_at":1767225600"#),
                "expires_at",
                "2027-01-31T00:00:00Z",
            ),
            (
                with(r#","revoked_at":"1969-01-01T00:00:00Z""#),
                "revoked_at",
                "2027-01-31T00:00:00Z",
            ),
            (
                with(r#","prefix":"a key with spaces""#),
                "prefix",
                "visible ASCII",
            ),
            (
                with(r#","prefix":"0123456789012345678901234""#),
                "prefix",
                "1 to 24",
            ),
        ] {
            let rejected = read_json(&line).unwrap_err();
            assert_eq!(rejected.field, field, "{line}: {rejected}");
            assert!(rejected.reason.contains(words), "{line}: {rejected}");
        }
    }

    #[test]
    fn key_in_the_wrong_field_is_rejected_and_not_printed() {
        let key = "tp_1234567890abcdef";
        let digest = Digest::of(key);
        for line in [
            format!(r#"{{"sha256":"{digest}","name":"n","tier":"pro","prefix":"{key}"}}"#),
            format!(r#"{{"sha256":"{key}","name":"n","tier":"pro"}}"#),
            format!(r#"{{"{key}":"{digest}","name":"n","tier":"pro"}}"#),
            format!(r#"{{"sha256":"{digest}","name":"n","tier":"pro"}} {key}"#),
        ] {
            let rejected = read_json(&line).unwrap_err();
            assert!(!rejected.to_string().contains(key), "{rejected}");
        }
    }
}
