//! Trials and failures as JSON, within a run: parsing against the suite, and writing.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::{Axis, BadRun, RunFailure, SuiteEntry, Trial};

/// Maximum length of the explanation of a failure, in characters.
const LONGEST_DETAIL: usize = 500;

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct WrittenTrial<'a, S = WrittenScores> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scores: Option<S>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<WrittenFailure<'a>>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct WrittenScores {
    #[serde(skip_serializing_if = "Option::is_none")]
    correctness: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    spec: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code_quality: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    efficiency: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stability: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recovery: Option<f64>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenFailure<'a> {
    #[serde(borrow)]
    reason: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    detail: Option<Cow<'a, str>>,
}

impl WrittenFailure<'_> {
    pub(super) fn read(self) -> Result<(RunFailure, Option<String>), BadRun> {
        let reason = *word("reason", &self.reason, &RunFailure::ALL, |failure| {
            failure.word()
        })?;
        if self
            .detail
            .as_ref()
            .is_some_and(|detail| detail.chars().count() > LONGEST_DETAIL)
        {
            return Err(BadRun::new(
                "detail",
                format!("is longer than {LONGEST_DETAIL} characters"),
            ));
        }
        Ok((reason, self.detail.map(Cow::into_owned)))
    }
}

impl WrittenTrial<'_> {
    /// The trial, or why it failed.
    fn read(self, suite: &SuiteEntry) -> Result<Result<Trial, RunFailure>, BadRun> {
        match (self.scores, self.failure) {
            (Some(scores), None) => {
                let scores = scores.in_order();
                declared(&scores, suite).map_err(|bad| bad.within("scores"))?;
                Trial::on_axes(scores, self.latency_ms, self.cost).map(Ok)
            }
            (None, Some(failure)) => failure
                .read()
                .map_err(|bad| bad.within("failure"))
                .map(|(reason, _)| Err(reason)),
            (Some(_), Some(_)) => Err(BadRun::new("failure", "a failed trial has no `scores`")),
            (None, None) => Err(BadRun::new(
                "scores",
                "a trial has either `scores` or a `failure`",
            )),
        }
    }
}

impl WrittenScores {
    fn in_order(&self) -> [Option<f64>; 7] {
        [
            self.correctness,
            self.spec,
            self.code_quality,
            self.efficiency,
            self.stability,
            self.refusal,
            self.recovery,
        ]
    }
}

/// Scores without an axis could not be compared with the others of the suite.
fn declared(scores: &[Option<f64>; 7], suite: &SuiteEntry) -> Result<(), BadRun> {
    for ((axis, score), is_declared) in Axis::ALL.into_iter().zip(scores).zip(suite.axes().flags())
    {
        let name = suite.name();
        if is_declared && score.is_none() {
            let problem =
                format!("is missing; write a number from 0 to 1, the suite {name} has this axis");
            return Err(BadRun::new(axis.word(), problem));
        }
        if !is_declared && score.is_some() {
            let problem = format!("the suite {name} does not have this axis; remove it");
            return Err(BadRun::new(axis.word(), problem));
        }
    }
    Ok(())
}

pub(super) fn read_trials(
    written: Vec<WrittenTrial<'_>>,
    suite: &SuiteEntry,
) -> Result<(Vec<Trial>, Vec<RunFailure>), BadRun> {
    let mut trials = Vec::with_capacity(written.len());
    let mut failed = Vec::new();
    for (index, trial) in written.into_iter().enumerate() {
        match trial
            .read(suite)
            .map_err(|bad| bad.within(&format!("trials[{index}]")))?
        {
            Ok(trial) => trials.push(trial),
            Err(failure) => failed.push(failure),
        }
    }
    Ok((trials, failed))
}

/// The value with this word.
pub(crate) fn word<'k, T>(
    field: &str,
    found: &str,
    known: &'k [T],
    of: fn(&T) -> &str,
) -> Result<&'k T, BadRun> {
    known
        .iter()
        .find(|value| of(value) == found)
        .ok_or_else(|| {
            let words: Vec<&str> = known.iter().map(of).collect();
            let words = words.join(", ");
            BadRun::new(field, format!("{found:?} is unknown; write one of {words}"))
        })
}

pub(super) fn written_trial(trial: &Trial) -> WrittenTrial<'static> {
    let [
        correctness,
        spec,
        code_quality,
        efficiency,
        stability,
        refusal,
        recovery,
    ] = *trial.scores();
    WrittenTrial {
        scores: Some(WrittenScores {
            correctness,
            spec,
            code_quality,
            efficiency,
            stability,
            refusal,
            recovery,
        }),
        latency_ms: trial.latency_ms(),
        cost: trial.cost(),
        failure: None,
    }
}

/// A failed trial.
pub(crate) fn written_failed_trial<'a, S>(failure: RunFailure) -> WrittenTrial<'a, S> {
    let failure = Some(written_failure(failure, None));
    WrittenTrial {
        scores: None,
        latency_ms: None,
        cost: None,
        failure,
    }
}

pub(super) fn written_failure(failure: RunFailure, detail: Option<&str>) -> WrittenFailure<'_> {
    WrittenFailure {
        reason: failure.word().into(),
        detail: detail.map(Cow::from),
    }
}
