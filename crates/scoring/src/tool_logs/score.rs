//! A value that a scorer or a metric gave a sample.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::RunFailure;

use super::python_json::LimitedMap;

/// Characters of a word that are kept: enough to show it in a message.
const LONGEST_WORD: usize = 100;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum LoggedScore {
    Number(f64),
    /// Text, such as `C` for correct.
    Word(String),
    /// The sample has no score, for this reason: Python's `NaN`.
    Unscored(RunFailure),
    /// A list or an empty value.
    NotANumber,
    /// Several values by name.
    Several(BTreeMap<String, LoggedScore>),
}

impl LoggedScore {
    /// Adds it to the scores of a sample; several values as `name/key`.
    pub(super) fn add_as(self, name: &str, to: &mut BTreeMap<String, Self>) {
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

impl<'de> Deserialize<'de> for LoggedScore {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(LoggedScoreVisitor)
    }
}

struct LoggedScoreVisitor;

impl<'de> Visitor<'de> for LoggedScoreVisitor {
    type Value = LoggedScore;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a score")
    }

    fn visit_bool<E>(self, value: bool) -> Result<LoggedScore, E> {
        Ok(LoggedScore::Number(f64::from(u8::from(value))))
    }

    #[expect(clippy::cast_precision_loss, reason = "a score has few digits")]
    fn visit_i64<E>(self, value: i64) -> Result<LoggedScore, E> {
        Ok(LoggedScore::Number(value as f64))
    }

    #[expect(clippy::cast_precision_loss, reason = "a score has few digits")]
    fn visit_u64<E>(self, value: u64) -> Result<LoggedScore, E> {
        Ok(LoggedScore::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<LoggedScore, E> {
        Ok(LoggedScore::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<LoggedScore, E> {
        Ok(match value {
            "NaN" => LoggedScore::Unscored(RunFailure::Harness),
            "Infinity" => LoggedScore::Number(f64::INFINITY),
            "-Infinity" => LoggedScore::Number(f64::NEG_INFINITY),
            word => LoggedScore::Word(word.chars().take(LONGEST_WORD).collect()),
        })
    }

    fn visit_unit<E>(self) -> Result<LoggedScore, E> {
        Ok(LoggedScore::NotANumber)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<LoggedScore, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(LoggedScore::NotANumber)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<LoggedScore, A::Error> {
        Ok(LoggedScore::Several(
            LimitedMap::default().visit_map(map)?.0,
        ))
    }
}
