//! The allowed values of a parameter, for people and for programs. Parsing is in `params`.

use std::fmt;

use serde_json::{Value, json};

use super::bodies::{ALLOWED, MAXIMUM, MINIMUM, PATTERN};

/// The allowed values of a parameter. Each variant has separate members in an error body, so that each member has one
/// type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedValues {
    /// One of these words.
    Words(Vec<&'static str>),
    /// A whole number between two bounds, inclusive.
    Range {
        /// The minimum.
        minimum: u8,
        /// The maximum.
        maximum: u8,
    },
    /// A string that matches this regular expression as a whole.
    Pattern {
        /// The expression, without anchors.
        expression: &'static str,
        /// A description in words.
        words: &'static str,
    },
}

impl AllowedValues {
    /// The members that describe the allowed values in an error body, with their values.
    pub fn members(&self) -> Vec<(&'static str, Value)> {
        match self {
            Self::Words(words) => vec![(ALLOWED, json!(words))],
            Self::Range { minimum, maximum } => {
                vec![(MINIMUM, json!(minimum)), (MAXIMUM, json!(maximum))]
            }
            Self::Pattern { expression, .. } => vec![(PATTERN, format!("^{expression}$").into())],
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_ranges_and_patterns_have_members_of_their_own() {
        let words = AllowedValues::Words(vec!["latest", "24h"]);
        assert_eq!(words.to_string(), "latest, 24h");
        assert_eq!(words.members(), [("allowed", json!(["latest", "24h"]))]);
        let range = AllowedValues::Range {
            minimum: 1,
            maximum: 9,
        };
        assert_eq!(
            range.members(),
            [("minimum", json!(1)), ("maximum", json!(9))]
        );
        let pattern = AllowedValues::Pattern {
            expression: "[a-z]\"",
            words: "a letter",
        };
        assert_eq!(pattern.members(), [("pattern", json!("^[a-z]\"$"))]);
    }
}
