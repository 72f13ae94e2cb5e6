//! A key as a line of an import or an export: fields with names, and what each may be.
//!
//! The same fields in a CSV file, a JSON line and the side port's JSON. What is wrong is said by field, and never by
//! repeating what stands there, which may be a key in the wrong column. Not for: files.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::Value;

use crate::accounts::{BadField, KeyRecord};
use crate::clock::Wall;
use crate::keys::Digest;
use crate::store::OwnLimits;

/// The names of the fields, in the order in which an export has them.
pub const FIELDS: [&str; 12] = [
    "sha256",
    "name",
    "tier",
    "application",
    "prefix",
    "minute_limit",
    "day_limit",
    "contact",
    "note",
    "created_at",
    "expires_at",
    "revoked_at",
];
/// Those that no line may lack.
pub const NEEDED: [&str; 3] = ["sha256", "name", "tier"];
/// A name that is longer may be a key that lost its way, and is not repeated.
const LONGEST_NAME: usize = 15;
const INSTANT: &str = "has to be an instant such as 2027-01-31T00:00:00Z";

/// Names with values, in order, and as often as they stand there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LineObject(pub Vec<(String, Value)>);

impl LineObject {
    /// A key as a line.
    pub fn of(record: &KeyRecord) -> Self {
        let instant = |at: Option<Wall>| at.map(|at| Value::from(at.rfc3339()));
        let text = |text: &Option<String>| text.clone().map(Value::from);
        let all = [
            ("sha256", Some(Value::from(record.digest.to_string()))),
            ("name", Some(Value::from(record.name.clone()))),
            ("tier", Some(Value::from(record.tier.clone()))),
            ("application", record.application.map(|id| Value::from(id.to_string()))),
            ("prefix", text(&record.shown)),
            ("minute_limit", record.own.minute.map(Value::from)),
            ("day_limit", record.own.day.map(Value::from)),
            ("contact", text(&record.contact)),
            ("note", text(&record.note)),
            ("created_at", instant(record.created_at)),
            ("expires_at", instant(record.expires_at)),
            ("revoked_at", instant(record.revoked_at)),
        ];
        Self(all.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect())
    }

    /// The key that a line is about. What is null counts as absent.
    pub fn read(self) -> Result<KeyRecord, BadField> {
        let mut known = KnownFields::default();
        for (name, value) in self.0 {
            known.put(&name, value)?;
        }
        let record = KeyRecord {
            digest: known.needed("sha256", "has to be 64 hexadecimal digits", Digest::from_hex)?,
            name: known.needed("name", "has to be a text", |text| Some(text.to_owned()))?,
            tier: known.needed("tier", "has to be the name of a tier", |text| Some(text.to_owned()))?,
            application: known.read(
                "application",
                "has to be an application's id, `app_` and eleven letters or digits, or absent for a new one",
                |text| text.parse().ok(),
            )?,
            shown: known.text("prefix")?,
            own: OwnLimits { minute: known.number("minute_limit")?, day: known.number("day_limit")? },
            contact: known.text("contact")?,
            note: known.text("note")?,
            created_at: known.read("created_at", INSTANT, Wall::parse_rfc3339)?,
            expires_at: known.read("expires_at", INSTANT, Wall::parse_rfc3339)?,
            revoked_at: known.read("revoked_at", INSTANT, Wall::parse_rfc3339)?,
        };
        record.check()?;
        Ok(record)
    }

    /// The value of a field as a cell of a table; empty if there is none.
    pub fn cell(&self, name: &str) -> String {
        let value = self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value);
        match value {
            None => String::new(),
            Some(value) => value.as_str().map_or_else(|| value.to_string(), str::to_owned),
        }
    }
}

/// The name among ours, or what would do.
pub fn known_field(name: &str) -> Result<&'static str, BadField> {
    FIELDS.into_iter().find(|known| *known == name).ok_or_else(|| {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || " _-".contains(c);
        let repeated = name.len() <= LONGEST_NAME && name.chars().all(is_plain);
        let shown = if repeated { name } else { "a field" };
        BadField::new(shown, format!("is not among the fields, which are {}", FIELDS.join(", ")))
    })
}

#[derive(Default)]
struct KnownFields(Vec<(&'static str, Value)>);

impl KnownFields {
    fn put(&mut self, name: &str, value: Value) -> Result<(), BadField> {
        let name = known_field(name)?;
        if self.0.iter().any(|(known, _)| *known == name) {
            return Err(BadField::new(name, "stands there twice"));
        }
        self.0.push((name, value));
        Ok(())
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        let place = self.0.iter().position(|(known, _)| *known == name)?;
        Some(self.0.swap_remove(place).1).filter(|value| !value.is_null())
    }

    fn text(&mut self, name: &str) -> Result<Option<String>, BadField> {
        self.read(name, "has to be a text", |text| Some(text.to_owned()))
    }

    fn read<T>(
        &mut self,
        name: &str,
        would_do: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, BadField> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let bad = || BadField::new(name, would_do);
        value.as_str().and_then(read).ok_or_else(bad).map(Some)
    }

    fn needed<T>(
        &mut self,
        name: &str,
        would_do: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, BadField> {
        self.read(name, would_do, read)?
            .ok_or_else(|| BadField::new(name, format!("is missing; it {would_do}")))
    }

    /// A number, or its digits as a table has them.
    fn number(&mut self, name: &str) -> Result<Option<u32>, BadField> {
        let Some(value) = self.take(name) else { return Ok(None) };
        let digits = |text: &str| text.parse().ok().filter(|_| !text.starts_with('+'));
        let number =
            value.as_u64().and_then(|number| u32::try_from(number).ok()).or(value.as_str().and_then(digits));
        let bad = || BadField::new(name, format!("has to be a whole number from 1 to {}", u32::MAX));
        number.ok_or_else(bad).map(Some)
    }
}

impl Serialize for LineObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        self.0.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))?;
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

/// Reads a line of JSON. What is no JSON is told without repeating it.
pub fn read_json(line: &str) -> Result<KeyRecord, BadField> {
    let fields: LineObject = serde_json::from_str(line).map_err(|error| {
        let byte = error.column();
        BadField::new("line", format!("is not one JSON object: it cannot be read from byte {byte} on"))
    })?;
    fields.read()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn a_line_is_read_back_as_it_was_written() {
        let bare = format!(r#"{{"sha256":"{DIGEST}","name":"One","tier":"pro"}}"#);
        let whole = format!(
            r#"{{"sha256":"{DIGEST}","name":"One, \"two\" 🌦","tier":"pro","application":"app_0123456789a","prefix":"tp_12","minute_limit":7,"day_limit":4294967295,"contact":"a@example.org","note":"'; --","created_at":"2026-01-02T03:04:05.006Z","expires_at":"2027-01-01T00:00:00Z","revoked_at":"2026-06-01T00:00:00Z"}}"#
        );
        for line in [bare, whole] {
            let record = read_json(&line).unwrap();
            assert_eq!(serde_json::to_string(&LineObject::of(&record)).unwrap(), line);
        }
    }

    #[test]
    fn every_line_that_cannot_be_taken_is_refused_by_field_with_what_would_do() {
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
            (with("").replace(DIGEST, &"g".repeat(64)), "sha256", "64 hexadecimal"),
            (with("").replace(&format!("\"{DIGEST}\""), "7"), "sha256", "64 hexadecimal"),
            (with(r#","admin":true"#), "admin", "among the fields"),
            (with(r#","tp_1234567890abcdef":1"#), "a field", "among the fields"),
            (with(r#","tier":"free""#), "tier", "twice"),
            (with(r#","application":"weather""#), "application", "app_"),
            (with(r#","minute_limit":0"#), "minute_limit", "at least 1"),
            (with(r#","day_limit":"0""#), "day_limit", "at least 1"),
            (with(r#","day_limit":-1"#), "day_limit", "whole number"),
            (with(r#","day_limit":1.5"#), "day_limit", "whole number"),
            (with(r#","day_limit":"+1""#), "day_limit", "whole number"),
            (with(r#","minute_limit":4294967296"#), "minute_limit", "whole number"),
            (with(r#","contact":7"#), "contact", "text"),
            (with(&format!(r#","note":"{long}""#)), "note", "1 to 200"),
            (with(r#","note":"a\u001bb""#), "note", "printable"),
            (with(r#","note":"txt.\u202egnp""#), "note", "printable"),
            (with(r#","name":" ""#).replacen(r#""name":"n","#, "", 1), "name", "1 to 200"),
            (with(r#","created_at":"yesterday""#), "created_at", "2027-01-31T00:00:00Z"),
            (with(r#","expires_at":1767225600"#), "expires_at", "2027-01-31T00:00:00Z"),
            (with(r#","revoked_at":"1969-01-01T00:00:00Z""#), "revoked_at", "2027-01-31T00:00:00Z"),
            (with(r#","prefix":"a key with spaces""#), "prefix", "visible ASCII"),
            (with(r#","prefix":"0123456789012345678901234""#), "prefix", "1 to 24"),
        ] {
            let refused = read_json(&line).unwrap_err();
            assert_eq!(refused.field, field, "{line}: {refused}");
            assert!(refused.reason.contains(words), "{line}: {refused}");
        }
    }

    #[test]
    fn a_whole_key_in_the_wrong_place_is_refused_and_not_repeated() {
        let key = "tp_1234567890abcdef";
        let digest = Digest::of(key);
        for line in [
            format!(r#"{{"sha256":"{digest}","name":"n","tier":"pro","prefix":"{key}"}}"#),
            format!(r#"{{"sha256":"{key}","name":"n","tier":"pro"}}"#),
            format!(r#"{{"{key}":"{digest}","name":"n","tier":"pro"}}"#),
            format!(r#"{{"sha256":"{digest}","name":"n","tier":"pro"}} {key}"#),
        ] {
            let refused = read_json(&line).unwrap_err();
            assert!(!refused.to_string().contains(key), "{refused}");
        }
    }
}
