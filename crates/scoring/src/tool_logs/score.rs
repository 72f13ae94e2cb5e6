//! A value that a scorer or a metric assigned to a sample.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::RunFailure;

/// Number of characters of a word that are kept, which is enough for a message.
const LONGEST_WORD: usize = 100;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "Value")]
pub enum LoggedScore {
    Number(f64),
    /// A word, such as `C` for correct.
    Word(String),
    /// Python's `NaN`: the sample has no score, for this reason.
    Unscored(RunFailure),
    /// A list or an empty value.
    NotANumber,
    /// Several values with names.
    Several(BTreeMap<String, LoggedScore>),
}

impl LoggedScore {
    /// Adds the value to the scores of a sample. Several values are added as `name/key`.
    pub fn add_as(self, name: &str, to: &mut BTreeMap<String, Self>) {
        match self {
            Self::Several(values) => {
                for (key, value) in values {
                    value.add_as(&format!("{name}/{key}"), to);
                }
            }
            Self::Number(_) | Self::Word(_) | Self::Unscored(_) | Self::NotANumber => {
                to.insert(name.to_owned(), self);
            }
        }
    }
}

impl From<Value> for LoggedScore {
    fn from(value: Value) -> Self {
        match value {
            Value::Null | Value::Array(_) => Self::NotANumber,
            Value::Bool(value) => Self::Number(f64::from(u8::from(value))),
            Value::Number(number) => number.as_f64().map_or(Self::NotANumber, Self::Number),
            Value::String(text) => match text.as_str() {
                "NaN" => Self::Unscored(RunFailure::Harness),
                "Infinity" => Self::Number(f64::INFINITY),
                "-Infinity" => Self::Number(f64::NEG_INFINITY),
                word => Self::Word(word.chars().take(LONGEST_WORD).collect()),
            },
            Value::Object(values) => {
                let values = values.into_iter();
                Self::Several(values.map(|(key, value)| (key, value.into())).collect())
            }
        }
    }
}
