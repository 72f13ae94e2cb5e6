//! Parses a key from a JSON object: a line of an import, or an item of a batch on the side port.
//!
//! Errors name the field and never repeat its value, which may be a key in the wrong column.

use crate::registry::{BadField, KeyRecord};
use scoregate_base::json::{BadJson, read};

/// All fields, in the order of an export.
pub const FIELDS: [&str; 13] = [
    "sha256",
    "name",
    "tier",
    "application",
    "prefix",
    "key_name",
    "own_limits",
    "url",
    "contact",
    "note",
    "created_at",
    "expires_at",
    "revoked_at",
];
/// The required fields.
pub const REQUIRED: [&str; 3] = ["sha256", "name", "tier"];
/// Maximum length of an unknown name that is repeated in an error. A longer name may be a key.
const MAX_REPEATED_NAME: usize = 15;

/// Parses a JSON object, and checks everything that can be checked without the store.
pub fn read_json(line: &str) -> Result<KeyRecord, BadField> {
    if !line.trim_start().starts_with('{') {
        return Err(BadField::new("line", "is not a JSON object"));
    }
    let record: KeyRecord = read(line.as_bytes()).map_err(bad_field)?;
    record.check()?;
    Ok(record)
}

fn bad_field(BadJson { field, problem }: BadJson) -> BadField {
    if let Some(field) = field {
        // The limits share one column, so its name is used.
        let name = if field.starts_with("own_limits.") {
            "own_limits"
        } else {
            repeated(&field)
        };
        return BadField::new(name, problem);
    }
    // For a field that is missing or given twice, only the text of the problem names the field.
    let named = problem
        .strip_prefix("the field `")
        .and_then(|rest| rest.split_once("` "));
    match named {
        Some((field, problem)) => BadField::new(field, problem),
        None => BadField::new("line", problem),
    }
}

/// The name of a known field. The error lists all fields.
pub fn known_field(name: &str) -> Result<&'static str, BadField> {
    let known = FIELDS.into_iter().find(|known| *known == name);
    known.ok_or_else(|| {
        let reason = format!("unknown field; the fields are {}", FIELDS.join(", "));
        BadField::new(repeated(name), reason)
    })
}

/// The name if an error may repeat it, otherwise a general term.
fn repeated(name: &str) -> &str {
    if name.len() <= MAX_REPEATED_NAME
        && name
            .chars()
            .all(|c: char| c.is_ascii_alphanumeric() || " _-".contains(c))
    {
        name
    } else {
        "a field"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scoregate_base::keys::Digest;
    use scoregate_base::limits::{LimitSetting, OwnLimits};

    const DIGEST: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn a_line_is_parsed_as_it_was_written() {
        let minimal = format!(r#"{{"sha256":"{DIGEST}","name":"One","tier":"pro"}}"#);
        let full = format!(
            r#"{{"sha256":"{DIGEST}","name":"One, \"two\" 🌦","tier":"pro","application":"app_0123456789a","prefix":"tp_12","key_name":"Station 7","own_limits":{{"minute":7,"day":4294967295,"month":9}},"url":"https://example.org/?a=b","contact":"a@example.org","note":"'; --","created_at":"2026-01-02T03:04:05.006Z","expires_at":"2027-01-01T00:00:00Z","revoked_at":"2026-06-01T00:00:00Z"}}"#
        );
        for line in [minimal, full] {
            let record = read_json(&line).unwrap();
            assert_eq!(serde_json::to_string(&record).unwrap(), line);
        }
    }

    #[test]
    fn a_header_line_knows_the_fields_of_a_line_in_their_order() {
        let mut record = read_json(&format!(
            r#"{{"sha256":"{DIGEST}","name":"n","tier":"pro"}}"#
        ))
        .unwrap();
        let at = "2027-01-01T00:00:00Z".parse().ok();
        record.application = "app_0123456789a".parse().ok();
        for text in [
            &mut record.shown,
            &mut record.key_name,
            &mut record.url,
            &mut record.contact,
            &mut record.note,
        ] {
            *text = Some("x".into());
        }
        record.own = OwnLimits::NONE.with(LimitSetting::Day, 1);
        record.created_at = at;
        record.expires_at = at;
        record.revoked_at = at;
        let line = serde_json::to_string(&record).unwrap();
        let places = FIELDS.map(|field| line.find(&format!("\"{field}\":")));
        assert!(
            places.iter().all(Option::is_some) && places.is_sorted(),
            "{line}"
        );
        // The limits object contains one more name.
        assert_eq!(line.matches("\":").count(), FIELDS.len() + 1, "{line}");
    }

    #[test]
    fn an_invalid_line_is_rejected_with_the_field_and_the_expected_value() {
        let with = |more: &str| format!(r#"{{"sha256":"{DIGEST}","name":"n","tier":"pro"{more}}}"#);
        let without = |field: &str| with("").replace(&format!(r#""{field}":"#), r#""note":"#);
        let long = "x".repeat(201);
        for (line, field, words) in [
            (String::new(), "line", "a JSON object"),
            ("{".into(), "line", "incomplete JSON"),
            ("[1]".into(), "line", "JSON object"),
            (
                format!("{} {{}}", with("")),
                "line",
                "unexpected text after",
            ),
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
                "a string",
            ),
            (with(r#","admin":true"#), "admin", "the fields are"),
            (
                with(r#","tp_1234567890abcdef":1"#),
                "a field",
                "the fields are",
            ),
            (with(r#","tier":"free""#), "tier", "twice"),
            (with(r#","application":"weather""#), "application", "app_"),
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
                "a string",
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
    fn invalid_limits_are_rejected_with_the_expected_value() {
        for (limits, words) in [
            (r#"{"minute":0}"#, "at least 1"),
            (r#"{"owner_day":1}"#, "accounts"),
            (r#"{"hour":1}"#, "month_anchor"),
            (r#""1""#, "object"),
            (r#"{"day":"1"}"#, "integer within"),
            (r#"{"day":-1}"#, "integer within"),
            (r#"{"day":1.5}"#, "integer within"),
            (r#"{"day":4294967296}"#, "integer within"),
        ] {
            let line =
                format!(r#"{{"sha256":"{DIGEST}","name":"n","tier":"pro","own_limits":{limits}}}"#);
            let rejected = read_json(&line).unwrap_err();
            assert_eq!(rejected.field, "own_limits", "{line}: {rejected}");
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
