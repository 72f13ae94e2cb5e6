//! The allowed values of a parameter, for people and for programs. Parsing is in `params`; values that a tier may not
//! use are removed with `without`.

use std::fmt;

use serde::{Serialize, Serializer};

/// The allowed values of a parameter. As JSON: a list of words, or a JSON Schema fragment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedValues {
    /// One of these words.
    Words(Vec<&'static str>),
    /// A whole number between two bounds, both included.
    Range {
        /// The smallest.
        minimum: u8,
        /// The largest.
        maximum: u8,
    },
    /// A text that this regular expression matches as a whole.
    Pattern {
        /// The expression, without anchors.
        expression: &'static str,
        /// The same in words.
        words: &'static str,
    },
}

impl AllowedValues {
    /// The same values without this word.
    #[must_use]
    pub fn without(self, word: &str) -> Self {
        match self {
            Self::Words(words) => Self::Words(words.into_iter().filter(|known| *known != word).collect()),
            other @ (Self::Range { .. } | Self::Pattern { .. }) => other,
        }
    }
}

impl fmt::Display for AllowedValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Words(words) => f.write_str(&words.join(", ")),
            Self::Range { minimum, maximum } => write!(f, "an integer from {minimum} to {maximum}"),
            Self::Pattern { words, .. } => f.write_str(words),
        }
    }
}

impl Serialize for AllowedValues {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(tag = "type", rename_all = "lowercase")]
        enum Schema {
            Integer { minimum: u8, maximum: u8 },
            String { pattern: String },
        }
        match *self {
            Self::Words(ref words) => words.serialize(serializer),
            Self::Range { minimum, maximum } => Schema::Integer { minimum, maximum }.serialize(serializer),
            Self::Pattern { expression, .. } => {
                Schema::String { pattern: format!("^{expression}$") }.serialize(serializer)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_form_is_a_list_of_words_or_a_schema() {
        let json = |allowed: &AllowedValues| serde_json::to_string(allowed).unwrap();
        let words = AllowedValues::Words(vec!["latest", "24h"]);
        assert_eq!((json(&words), words.to_string()), (r#"["latest","24h"]"#.into(), "latest, 24h".into()));
        assert_eq!(json(&words.without("latest")), r#"["24h"]"#);
        let range = AllowedValues::Range { minimum: 1, maximum: 9 };
        assert_eq!(json(&range), r#"{"type":"integer","minimum":1,"maximum":9}"#);
        assert_eq!(range.clone().without("latest"), range);
        let pattern = AllowedValues::Pattern { expression: "[a-z]\"", words: "a letter" };
        assert_eq!(json(&pattern), r#"{"type":"string","pattern":"^[a-z]\"$"}"#);
    }
}
