//! Parses JSON from operators and importers. Errors name the field and the expected value.
//!
//! Errors never repeat a value, which may be a secret in the wrong place. Bodies from the backend are passed through
//! unparsed.

use std::fmt;

use serde::Deserialize;
use serde_json::error::Category;

/// The reason why a JSON text was rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadJson {
    /// The field, such as `trials[0].cost`; `None` if the whole text is invalid.
    pub field: Option<String>,
    /// The problem and the expected value.
    pub problem: String,
}

impl fmt::Display for BadJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.field {
            Some(field) => write!(f, "{field}: {}", self.problem),
            None => f.write_str(&self.problem),
        }
    }
}

impl std::error::Error for BadJson {}

/// Parses a text.
pub fn read<'de, T: Deserialize<'de>>(text: &'de [u8]) -> Result<T, BadJson> {
    serde_json::from_slice(text).map_err(|_| explain::<T>(text))
}

/// Explains why a text was rejected. The text is parsed a second time, because the first parse does not track the path, which would double its cost.
pub fn explain<'de, T: Deserialize<'de>>(text: &'de [u8]) -> BadJson {
    let mut reader = serde_json::Deserializer::from_slice(text);
    match serde_path_to_error::deserialize::<_, T>(&mut reader) {
        Ok(_) => BadJson {
            field: None,
            problem: "unexpected text after the end of the JSON; remove it".into(),
        },
        Err(error) => {
            let path = error.path().to_string();
            // If the text is truncated, the path is incomplete.
            let field = (path != "." && !path.ends_with('?')).then_some(path);
            BadJson {
                field,
                problem: sentence(error.inner()),
            }
        }
    }
}

fn sentence(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let message = text
        .split_once(" at line ")
        .map_or(text.as_str(), |(message, _)| message);
    let position = match error.line() {
        0 | 1 => format!("byte {}", error.column()),
        line => format!("line {line}, byte {}", error.column()),
    };
    match error.classify() {
        Category::Eof if error.column() == 0 => "the input is empty; write a JSON object".into(),
        Category::Eof => {
            format!(
                "incomplete JSON at {position}: a closing quotation mark, bracket or brace is missing"
            )
        }
        Category::Syntax | Category::Io => {
            format!("not valid JSON at {position}: {}", syntax(message))
        }
        Category::Data => shape(message),
    }
}

/// Rewords the parser's syntax error for people who write JSON.
fn syntax(message: &str) -> &str {
    match message {
        "expected ident" | "expected value" => {
            "a value must be an object, a list, a number, a string in double quotes, true, false or null"
        }
        "key must be a string" => "the name of a field must be in double quotes",
        "expected `:`" => "a colon must follow the name of a field",
        "expected `,` or `}`" => "a comma or a closing brace must follow a field",
        "expected `,` or `]`" => "a comma or a closing bracket must follow an item of a list",
        "trailing comma" => "a comma before a closing brace or bracket is not allowed",
        "trailing characters" => "unexpected text after the end of the JSON; remove it",
        other => other,
    }
}

/// Rewords an error about well-formed JSON of the wrong shape.
fn shape(message: &str) -> String {
    if let Some(name) = message.strip_prefix("missing field ") {
        return format!("the field {name} is missing");
    }
    if let Some(name) = message.strip_prefix("duplicate field ") {
        return format!("the field {name} is given twice; keep one");
    }
    if let Some((_, known)) = message
        .strip_prefix("unknown field ")
        .and_then(|rest| rest.split_once(", "))
    {
        return format!("unknown field; the fields are {}", list(known));
    }
    if let Some((_, known)) = message
        .strip_prefix("unknown variant ")
        .and_then(|rest| rest.split_once(", "))
    {
        return format!("that is not one of {}", list(known));
    }
    let found = message
        .strip_prefix("invalid type: ")
        .or_else(|| message.strip_prefix("invalid value: "));
    match found.and_then(|rest| rest.rsplit_once(", expected ")) {
        Some((_, expected)) => format!("write {}", kind(expected)),
        None => message.to_owned(),
    }
}

/// Only the list of names.
fn list(known: &str) -> &str {
    known
        .trim_start_matches("expected ")
        .trim_start_matches("one of ")
}

/// The JSON term for a type of the program.
fn kind(expected: &str) -> &str {
    match expected.split(' ').next().unwrap_or_default() {
        "struct" | "map" | "internally" | "adjacently" => "a JSON object",
        "u8" | "u16" | "u32" | "u64" | "usize" => "a non-negative integer within the allowed range",
        "i8" | "i16" | "i32" | "i64" | "isize" => "an integer",
        "f32" | "f64" => "a number",
        _ => match expected {
            "a string" | "string" | "a borrowed string" | "str" => "a string in double quotes",
            "a boolean" => "true or false",
            "a sequence" => "a list in brackets",
            "a map" => "a JSON object",
            other => other,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(
        dead_code,
        reason = "the tests check only whether the fields can be parsed"
    )]
    struct Order {
        name: String,
        count: u32,
        #[serde(default)]
        price: Option<f64>,
        #[serde(default)]
        parts: Vec<BTreeMap<String, bool>>,
        #[serde(default)]
        kind: Option<Kind>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        Large,
        Small,
    }

    #[test]
    fn every_error_is_a_sentence_with_the_remedy() {
        for (text, sentence) in [
            ("", "the input is empty; write a JSON object"),
            (
                "not json",
                "not valid JSON at byte 2: a value must be an object, a list, a number, a string in double quotes, true, false or null",
            ),
            (
                "{name: 1}",
                "not valid JSON at byte 2: the name of a field must be in double quotes",
            ),
            (
                r#"{"name" "x"}"#,
                "not valid JSON at byte 9: a colon must follow the name of a field",
            ),
            (
                r#"{"name":"x","count":1,}"#,
                "not valid JSON at byte 23: a comma before a closing brace or bracket is not allowed",
            ),
            (
                "{\"name\":\"x\",\n\"count\"=1}",
                "not valid JSON at line 2, byte 8: a colon must follow the name of a field",
            ),
            (
                r#"{"name":"x""#,
                "incomplete JSON at byte 11: a closing quotation mark, bracket or brace is missing",
            ),
            (
                r#"{"name":"x","count":1} {}"#,
                "unexpected text after the end of the JSON; remove it",
            ),
            (r#"{"name":"x"}"#, "the field `count` is missing"),
            (
                r#"{"name":"x","name":"y"}"#,
                "the field `name` is given twice; keep one",
            ),
            (
                r#"{"name":7,"count":1}"#,
                "name: write a string in double quotes",
            ),
            (
                r#"{"name":"x","count":"s3cret"}"#,
                "count: write a non-negative integer within the allowed range",
            ),
            (
                r#"{"name":"x","count":-1}"#,
                "count: write a non-negative integer within the allowed range",
            ),
            (
                r#"{"name":"x","count":1,"price":"s3cret"}"#,
                "price: write a number",
            ),
            (
                r#"{"name":"x","count":1,"parts":{}}"#,
                "parts: write a list in brackets",
            ),
            (
                r#"{"name":"x","count":1,"parts":["s3cret"]}"#,
                "parts[0]: write a JSON object",
            ),
            (
                r#"{"name":"x","count":1,"parts":[{"a":2}]}"#,
                "parts[0].a: write true or false",
            ),
            (
                r#"{"name":"x","count":1,"kind":"s3cret"}"#,
                "kind: that is not one of `large` or `small`",
            ),
            (
                r#"{"name":"x","count":1,"nmae":1}"#,
                "nmae: unknown field; the fields are `name`, `count`, `price`, `parts`, `kind`",
            ),
            ("[1]", "[0]: write a string in double quotes"),
            ("7", "write a JSON object"),
        ] {
            let bad = read::<Order>(text.as_bytes()).unwrap_err().to_string();
            assert_eq!(bad, sentence, "{text}");
        }
        read::<Order>(br#"{"name":"x","count":1,"kind":"small","parts":[]}"#).unwrap();
    }
}
