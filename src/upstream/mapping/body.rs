//! The body as a whole: whether it is JSON, and whether it reports an error instead of data.

use std::borrow::Cow;

use bytes::Bytes;
use serde_json::value::RawValue;

use crate::cache::Members;

/// A body that is a JSON array or object.
pub struct MappedBody<'b> {
    /// The whole body.
    pub raw: &'b RawValue,
    /// The members of the body, if it is an object.
    members: Option<Members<'b>>,
}

/// An error reported in a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoDataInBody {
    /// The reason that the body states.
    why: Option<String>,
}

impl<'b> MappedBody<'b> {
    /// Parses a body. The reason for a rejection is for the operator.
    pub fn of(body: &'b Bytes) -> Result<Self, String> {
        let text = std::str::from_utf8(body).map_err(|_| "it is not UTF-8")?;
        let start = text.trim_start();
        if !start.starts_with(['{', '[']) {
            return Err("it is neither a JSON object nor a JSON array".into());
        }
        let whole: &RawValue = serde_json::from_str(text).map_err(|error| ill_formed(&error))?;
        let members = whole
            .get()
            .starts_with('{')
            .then(|| Members::of(whole.get()))
            .transpose()
            .map_err(|error| ill_formed(&error))?;
        Ok(Self {
            raw: whole,
            members,
        })
    }

    pub fn is_array(&self) -> bool {
        self.members.is_none()
    }

    /// The id in a member of the body, if the body is an object.
    pub fn member(&self, name: &str) -> Result<Option<Cow<'b, str>>, String> {
        let Some(members) = &self.members else {
            return Ok(None);
        };
        let value = members
            .get(name)
            .map_err(|_| format!("it has `{name}` twice"))?;
        Ok(value.and_then(identifier))
    }

    /// The error that the body reports, if any. A body reports an error with `success: false` or, if the data is the
    /// whole body (`is_bare`), with an `error` text. An `error` next to the data is ignored. If the data is the whole
    /// body, a `success` that is neither true nor false is ignored too.
    pub fn reported_error(&self, is_bare: bool) -> Result<Option<NoDataInBody>, String> {
        let Some(members) = &self.members else {
            return Ok(None);
        };
        let success = match members
            .get("success")
            .map_err(|_| "it has `success` twice")?
            .map(RawValue::get)
        {
            None | Some("null") => None,
            Some("true") => Some(true),
            Some("false") => Some(false),
            Some(_) if is_bare => None,
            Some(_) => return Err("its `success` is neither true nor false".into()),
        };
        let error = words(members, "error");
        let is_refused =
            success == Some(false) || (is_bare && success.is_none() && error.is_some());
        Ok(is_refused.then(|| NoDataInBody {
            why: error.or_else(|| words(members, "message")),
        }))
    }
}

fn ill_formed(error: &serde_json::Error) -> String {
    format!("it is not well-formed JSON: {error}")
}

impl NoDataInBody {
    /// Whether the reason is that a model or its data was not found, as in `No scores found for model 17`. A document
    /// is not removed if something else was not found.
    pub fn says_not_found(&self) -> bool {
        let why = self.why.as_deref().unwrap_or_default().to_ascii_lowercase();
        let has_nothing = why.starts_with("no ") && why.contains(" found for model");
        has_nothing || (why.contains("model") && why.contains("not found"))
    }

    /// The reason, as text for the operator.
    pub fn reason(self) -> String {
        let Some(why) = self.why else {
            return "the body contains success: false".into();
        };
        let why: String = why.chars().take(120).collect();
        format!("the body reports an error: {why:?}")
    }
}

/// The text of an id: a string, or a number as written. Other values are not ids.
pub fn identifier(value: &RawValue) -> Option<Cow<'_, str>> {
    let text = value.get();
    match text.as_bytes().first() {
        Some(b'"') => serde_json::from_str(text).ok().map(Cow::<'_, str>::Owned),
        Some(b'0'..=b'9' | b'-') => Some(text.into()),
        _ => None,
    }
}

/// The text of a member, if its value is a string.
fn words(members: &Members<'_>, name: &str) -> Option<String> {
    // A duplicate member counts too.
    let mut called = members.0.iter().filter(|member| member.name == name);
    called
        .find_map(|member| serde_json::from_str(member.value.get()).ok())
        .filter(|text: &String| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(body: &'static str, is_bare: bool) -> Result<Option<bool>, String> {
        let body = Bytes::from_static(body.as_bytes());
        let refused = MappedBody::of(&body)?.reported_error(is_bare)?;
        Ok(refused.map(|refused| refused.says_not_found()))
    }

    #[test]
    fn errors_are_detected_by_success_false_or_an_error_text() {
        let words = r#"{"error":"Model 17 not found"}"#;
        for (body, enveloped, bare) in [
            ("[]", None, None),
            ("{}", None, None),
            (r#"{"success":true,"error":"not found"}"#, None, None),
            (r#"{"success":null}"#, None, None),
            (r#"{"success":false}"#, Some(false), Some(false)),
            (
                r#"{"error":"Model 17 NOT Found","success":false}"#,
                Some(true),
                Some(true),
            ),
            (
                r#"{"success":false,"message":"model was not found."}"#,
                Some(true),
                Some(true),
            ),
            (
                r#"{"success":false,"error":"table runs not found"}"#,
                Some(false),
                Some(false),
            ),
            (
                r#"{"success":false,"error":"busy","message":"model not found"}"#,
                Some(false),
                Some(false),
            ),
            (
                r#"{"success":false,"error":{"why":"model not found"}}"#,
                Some(false),
                Some(false),
            ),
            (words, None, Some(true)),
            (
                r#"{"success":false,"error":"No valid scores found for model 17"}"#,
                Some(true),
                Some(true),
            ),
            (
                r#"{"success":false,"error":"no connection found for the model store"}"#,
                Some(false),
                Some(false),
            ),
            (r#"{"error":"out of memory"}"#, None, Some(false)),
            (r#"{"error":null,"id":"17"}"#, None, None),
            (r#"{"error":0.25,"id":"17"}"#, None, None),
            (
                r#"{"error":"","message":"not found","id":"17"}"#,
                None,
                None,
            ),
        ] {
            assert_eq!(
                (refused(body, false), refused(body, true)),
                (Ok(enveloped), Ok(bare)),
                "{body}"
            );
        }
    }

    #[test]
    fn non_boolean_success_is_a_field_or_an_error() {
        assert_eq!(refused(r#"{"success":0.93}"#, true), Ok(None));
        assert!(
            refused(r#"{"success":0.93}"#, false)
                .unwrap_err()
                .contains("neither true nor false")
        );
        assert!(
            refused(r#"{"success":true,"success":false}"#, true)
                .unwrap_err()
                .contains("twice")
        );
    }

    #[test]
    fn the_reason_for_the_operator_is_short() {
        let reason = |body: String| {
            let body = Bytes::from(body);
            MappedBody::of(&body)
                .unwrap()
                .reported_error(false)
                .unwrap()
                .unwrap()
                .reason()
        };
        assert_eq!(
            reason(r#"{"success":false}"#.into()),
            "the body contains success: false"
        );
        assert_eq!(
            reason(r#"{"success":false,"error":"a\nb"}"#.into()),
            r#"the body reports an error: "a\nb""#
        );
        let long = format!(r#"{{"success":false,"error":"{}"}}"#, "é".repeat(9_999));
        assert!(reason(long).chars().count() < 200);
    }
}
