//! A trial in the line of a run, before it is checked against the suite.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error as _, MapAccess, Visitor},
};

use super::{BadRun, RunFailure, SuiteEntry, Trial};
use crate::suite::Axis;

/// Maximum length of the explanation of a failure, in characters.
const LONGEST_DETAIL: usize = 500;

/// A trial: its scores and measurements, or the reason for its failure.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct TrialLine {
    #[serde(skip_serializing_if = "Option::is_none")]
    scores: Option<TrialScores>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<FailureLine>,
}

/// The scores of a trial by axis, in the order of [`Axis::ALL`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TrialScores([Option<f64>; 7]);

/// Why a trial or a run failed.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct FailureLine {
    #[serde(deserialize_with = "read_reason")]
    pub reason: RunFailure,
    #[serde(
        default,
        deserialize_with = "read_detail",
        skip_serializing_if = "Option::is_none"
    )]
    pub detail: Option<String>,
}

impl TrialLine {
    /// A trial with scores.
    pub fn new(scores: TrialScores, latency_ms: Option<f64>, cost: Option<f64>) -> Self {
        Self {
            scores: Some(scores),
            latency_ms,
            cost,
            failure: None,
        }
    }

    /// A trial that failed.
    pub fn from_failure(reason: RunFailure) -> Self {
        let detail = None;
        Self {
            failure: Some(FailureLine { reason, detail }),
            ..Self::default()
        }
    }

    /// The trial, or the reason for its failure.
    pub(super) fn check(self, suite: &SuiteEntry) -> Result<Result<Trial, RunFailure>, BadRun> {
        match (self.scores, self.failure) {
            (Some(scores), None) => {
                scores.check_axes(suite)?;
                Trial::on_axes(scores.0, self.latency_ms, self.cost).map(Ok)
            }
            (None, Some(failure)) => Ok(Err(failure.reason)),
            (Some(_), Some(_)) => Err(BadRun::new("failure", "a failed trial has no `scores`")),
            (None, None) => Err(BadRun::new(
                "scores",
                "a trial has either `scores` or a `failure`",
            )),
        }
    }
}

impl From<&Trial> for TrialLine {
    fn from(trial: &Trial) -> Self {
        Self::new(
            TrialScores(*trial.scores()),
            trial.latency_ms(),
            trial.cost(),
        )
    }
}

impl TrialScores {
    /// Sets the score of an axis, and returns the previous one.
    pub fn set(&mut self, axis: Axis, score: f64) -> Option<f64> {
        let mut places = Axis::ALL.into_iter().zip(&mut self.0);
        let place = places.find(|(known, _)| *known == axis);
        place.and_then(|(_, place)| place.replace(score))
    }

    /// Checks that the scores are on the axes of the suite. Otherwise they could not be compared with other scores of
    /// the suite.
    fn check_axes(&self, suite: &SuiteEntry) -> Result<(), BadRun> {
        let declared = suite.axes().flags();
        for ((axis, score), is_declared) in Axis::ALL.into_iter().zip(self.0).zip(declared) {
            let name = suite.name();
            let problem = match (is_declared, score) {
                (true, None) => format!(
                    "is missing; write a number from 0 to 1, because the suite {name} has this axis"
                ),
                (false, Some(_)) => {
                    format!("the suite {name} does not have this axis; remove it")
                }
                (true, Some(_)) | (false, None) => continue,
            };
            return Err(BadRun::new(format!("scores.{}", axis.word()), problem));
        }
        Ok(())
    }
}

impl Serialize for TrialScores {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let scores = Axis::ALL.into_iter().zip(self.0);
        to.collect_map(scores.filter_map(|(axis, score)| Some((axis, score?))))
    }
}

impl<'de> Deserialize<'de> for TrialScores {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(TrialScoresVisitor)
    }
}

struct TrialScoresVisitor;

impl<'de> Visitor<'de> for TrialScoresVisitor {
    type Value = TrialScores;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<TrialScores, A::Error> {
        let mut scores = TrialScores::default();
        while let Some(axis) = entries.next_key::<Axis>()? {
            if scores.set(axis, entries.next_value()?).is_some() {
                return Err(A::Error::duplicate_field(axis.word()));
            }
        }
        Ok(scores)
    }
}

fn read_reason<'de, D: Deserializer<'de>>(from: D) -> Result<RunFailure, D::Error> {
    let reason = String::deserialize(from)?;
    let found = find_word("reason", &reason, &RunFailure::ALL, |failure| {
        failure.word()
    });
    found.copied().map_err(|bad| D::Error::custom(bad.problem))
}

fn read_detail<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let detail = Option::<String>::deserialize(from)?;
    let length = detail.as_ref().map_or(0, |detail| detail.chars().count());
    if length > LONGEST_DETAIL {
        let problem = format!("is longer than {LONGEST_DETAIL} characters");
        return Err(D::Error::custom(problem));
    }
    Ok(detail)
}

/// The value that has this word.
pub fn find_word<'k, T>(
    field: &str,
    found: &str,
    known: &'k [T],
    word: fn(&T) -> &str,
) -> Result<&'k T, BadRun> {
    let value = known.iter().find(|value| word(value) == found);
    value.ok_or_else(|| {
        let words: Vec<&str> = known.iter().map(word).collect();
        let words = words.join(", ");
        BadRun::new(field, format!("{found:?} is unknown; write one of {words}"))
    })
}
