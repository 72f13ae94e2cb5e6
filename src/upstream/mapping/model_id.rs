//! Model ids at the backend: which ids are requested, and which model a response is about.
//!
//! A backend that parses ids leniently (`200abc` as 200) answers about a different model. Such an answer must not
//! become a document of the requested id. `routes` defines the general syntax of ids.

use std::{borrow::Cow, fmt};

use regex_lite::{Regex, RegexBuilder};
use serde_json::value::RawValue;

use crate::cache::Members;
use scoregate_base::routes::{ModelId, Route};

use super::body::{MappedBody, identifier};

/// Maximum size of a compiled expression in bytes. An id has at most 128 characters, so no expression needs more.
const MAX_COMPILED: usize = 256 * 1024;

/// The ids that a backend may have, as a regular expression for whole ids.
#[derive(Clone)]
pub struct IdPattern {
    /// The expression as configured.
    text: String,
    whole: Regex,
}

/// The reason why an expression for ids is rejected. The message is for the operator.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadIdPattern {
    /// The syntax is invalid, or the compiled form is too large.
    #[error("write a regular expression for whole ids, such as \"[0-9]+\": {0}")]
    Syntax(String),
    /// The expression matches no valid id.
    #[error("write a regular expression for whole ids; an empty expression matches no id")]
    Empty,
}

impl IdPattern {
    /// Compiles an expression. It is anchored at both ends.
    pub fn parse(text: &str) -> Result<Self, BadIdPattern> {
        if text.is_empty() {
            return Err(BadIdPattern::Empty);
        }
        // The expression is first compiled without anchors, because `a)|(b` is invalid but would be valid with anchors.
        compiled(text)?;
        Ok(Self {
            text: text.to_owned(),
            whole: compiled(&format!(r"\A(?:{text})\z"))?,
        })
    }

    /// Whether the backend may have this id.
    pub(super) fn allows(&self, id: &ModelId) -> bool {
        self.whole.is_match(id.as_str())
    }
}

impl fmt::Debug for IdPattern {
    /// Formats the pattern as configured. The result is part of the identity of stored documents.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.text, f)
    }
}

impl PartialEq for IdPattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for IdPattern {}

fn compiled(text: &str) -> Result<Regex, BadIdPattern> {
    let built = RegexBuilder::new(text).size_limit(MAX_COMPILED).build();
    built.map_err(|error| BadIdPattern::Syntax(error.to_string()))
}

/// The item field that contains the id of the model. In items of endpoints other than the detail, `id` identifies the
/// item itself.
fn id_field(route: Route) -> &'static str {
    if route == Route::Model {
        "id"
    } else {
        "modelId"
    }
}

/// The id that a response states in an item or next to the data, if it differs from `requested`. A response without an
/// id counts as a response about the requested model.
pub fn other_id<'b>(
    route: Route,
    requested: &ModelId,
    body: &MappedBody<'b>,
    items: &[&'b RawValue],
) -> Result<Option<Cow<'b, str>>, String> {
    let field = id_field(route);
    // The envelope of a detail may have an id that is not the model's.
    let beside = if route == Route::Model {
        None
    } else {
        body.member(field)?
    };
    let mut stated = beside;
    for item in items {
        if stated.as_ref().is_some_and(|id| id != requested.as_str()) {
            break;
        }
        let members = Members::of(item.get()).map_err(|error| error.to_string())?;
        let value = members
            .get(field)
            .map_err(|_| format!("an item has `{field}` twice"))?;
        stated = value.and_then(identifier);
    }
    Ok(stated.filter(|id| id != requested.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn id(text: &str) -> ModelId {
        ModelId::new(text).unwrap()
    }

    #[test]
    fn an_expression_matches_whole_ids_only() {
        for (expression, allowed, refused) in [
            (
                "[0-9]+",
                &["0", "17", "200"][..],
                &["200abc", "a200", "2.0", "-1x", "1e3"][..],
            ),
            (r"\d{1,4}", &["1234"], &["12345", "x"]),
            (
                "gpt|claude-.*",
                &["gpt", "claude-4"],
                &["gpt-5", "xclaude-4", "my-gpt"],
            ),
            ("^a+$", &["aa"], &["ab"]),
            ("(?i)atlas", &["Atlas", "ATLAS"], &["atlas2"]),
            ("a|ab", &["a", "ab"], &["abb"]),
            (".*", &["x", "a:b"], &[]),
        ] {
            let pattern = IdPattern::parse(expression).unwrap();
            for text in allowed {
                assert!(pattern.allows(&id(text)), "{expression} {text}");
            }
            for text in refused.iter().filter_map(|text| ModelId::new(text)) {
                assert!(!pattern.allows(&text), "{expression} {text}");
            }
        }
    }

    #[test]
    fn invalid_expressions_are_reported_with_the_reason() {
        for (expression, reason) in [
            ("[0-9", "found unclosed character class"),
            ("a)|(b", "found closing ')' without matching"),
            ("(?x)a # b", "found open group without closing"),
            ("a{2,1}", "min bigger than"),
            (r"(\d+)\1", "backreferences are not supported"),
        ] {
            let bad = IdPattern::parse(expression).unwrap_err();
            let BadIdPattern::Syntax(found) = &bad else {
                panic!("{bad:?}")
            };
            assert!(found.contains(reason), "{expression}: {found}");
            assert!(!bad.to_string().contains('\n'), "{bad}");
        }
        assert_eq!(IdPattern::parse("").unwrap_err(), BadIdPattern::Empty);
        let large = IdPattern::parse("((a{99}){99}){99}")
            .unwrap_err()
            .to_string();
        assert!(large.contains("exceeded size limit"), "{large}");
    }

    fn other(route: Route, requested: &str, body: &'static str) -> Result<Option<String>, String> {
        let bytes = Bytes::from_static(body.as_bytes());
        let body = MappedBody::of(&bytes)?;
        let data = crate::upstream::mapping::JsonPointer::member("data")
            .find(body.raw)
            .unwrap()
            .unwrap();
        let items: Vec<&RawValue> = serde_json::from_str(data.get()).unwrap();
        Ok(other_id(route, &id(requested), &body, &items)?.map(Cow::into_owned))
    }

    #[test]
    fn a_response_states_another_id_in_an_item_or_beside_the_data() {
        for (route, body, expected) in [
            (Route::Model, r#"{"data":[{"id":200}]}"#, Some("200")),
            (Route::Model, r#"{"data":[{"id":"200"}]}"#, Some("200")),
            (
                Route::Model,
                r#"{"data":[{"id":"200\u0061bc"}],"id":7}"#,
                None,
            ),
            (Route::Model, r#"{"data":[{"id":-1}]}"#, Some("-1")),
            (
                Route::Model,
                r#"{"data":[{"id":null,"modelId":"x"}]}"#,
                None,
            ),
            (Route::Model, r#"{"data":[{"name":"200"}]}"#, None),
            // Each point of a history has its own id.
            (Route::History, r#"{"data":[{"id":9},{"id":10}]}"#, None),
            (
                Route::History,
                r#"{"data":[{"modelId":"200abc"},{"modelId":200}]}"#,
                Some("200"),
            ),
            (Route::History, r#"{"modelId":200,"data":[]}"#, Some("200")),
            (Route::History, r#"{"modelId":"200abc","data":[{}]}"#, None),
            (Route::Drift, r#"{"data":[{"modelId":200}]}"#, Some("200")),
            (
                Route::Drift,
                r#"{"data":[{"id":3,"modelId":"200abc"}]}"#,
                None,
            ),
        ] {
            assert_eq!(
                other(route, "200abc", body),
                Ok(expected.map(str::to_owned)),
                "{body}"
            );
        }
        let twice = r#"{"data":[{"id":"200abc","id":200}]}"#;
        assert!(
            other(Route::Model, "200abc", twice)
                .unwrap_err()
                .contains("`id` twice")
        );
    }
}
