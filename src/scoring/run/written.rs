//! Runs as JSON, one object per line: parsing, with the path of every error, and writing.
//!
//! Strict, because silently dropping a field would lose data: unknown fields are rejected.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::Wall;
use crate::json;
use crate::routes::ModelId;

use super::{BadRun, Run, RunFailure, RunOutcome, Suite, TestedModel, Trial};

/// Maximum length of a run in bytes: [`super::MAX_TRIALS`] trials with all digits need half of it.
pub const LONGEST_RUN: usize = 1 << 20;

/// How far a run may be in the future: allowed difference of clocks.
const CLOCKS_DIFFER: Duration = Duration::from_mins(1);

/// Maximum length of the explanation of a failure, in characters.
const LONGEST_DETAIL: usize = 500;

/// The permanent id of a run: 1 to 128 visible ASCII characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(String);

/// A run with its id.
#[derive(Clone, Debug, PartialEq)]
pub struct IdentifiedRun {
    /// The id.
    pub id: RunId,
    /// The run.
    pub run: Run,
    /// The explanation of its failure, if it failed.
    pub detail: Option<String>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct WrittenRun<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    model: WrittenModel<'a>,
    #[serde(borrow)]
    suite: Cow<'a, str>,
    #[serde(borrow)]
    time: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    trials: Option<Vec<WrittenTrial<'a>>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    failure: Option<WrittenFailure<'a>>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct WrittenModel<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    #[serde(borrow)]
    provider: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    price_input: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    price_output: Option<f64>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct WrittenTrial<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scores: Option<WrittenScores>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    latency_ms: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cost: Option<f64>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    failure: Option<WrittenFailure<'a>>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct WrittenScores {
    correctness: f64,
    spec: f64,
    code_quality: f64,
    efficiency: f64,
    stability: f64,
    refusal: f64,
    recovery: f64,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct WrittenFailure<'a> {
    #[serde(borrow)]
    reason: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    detail: Option<Cow<'a, str>>,
}

impl RunId {
    /// Validates an id.
    pub fn new(text: &str) -> Option<Self> {
        let is_well_formed = (1..=128).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
        is_well_formed.then(|| Self(text.to_owned()))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl IdentifiedRun {
    /// Parses a run; `now` limits its time.
    pub fn read(line: &str, now: Wall) -> Result<Self, BadRun> {
        let written: WrittenRun<'_> = serde_json::from_str(line).map_err(|_| not_written_so(line))?;
        let id = RunId::new(&written.id)
            .ok_or_else(|| BadRun::new("id", "write 1 to 128 visible ASCII characters"))?;
        let model = written.model.read().map_err(|bad| bad.within("model"))?;
        let suite = word("suite", &written.suite, Suite::ALL.map(|suite| (suite.word(), suite)))?;
        let at = instant(&written.time, now)?;
        let (outcome, failed, detail) = match (written.trials, written.failure) {
            (Some(trials), None) => {
                let (trials, failed) = read_trials(trials)?;
                (RunOutcome::Scored(trials), failed, None)
            }
            (None, Some(failure)) => {
                let (reason, detail) = failure.read().map_err(|bad| bad.within("failure"))?;
                (RunOutcome::Failed(reason), Vec::new(), detail)
            }
            (None, None) | (Some(_), Some(_)) => {
                return Err(BadRun::new("trials", "a run has either `trials` or a `failure`"));
            }
        };
        let run = Run::with_failed_trials(Arc::new(model), suite, at, outcome, failed)?;
        Ok(Self { id, run, detail })
    }

    /// Writes it in the format that [`Self::read`] parses.
    pub fn write(&self) -> String {
        let run = &self.run;
        let failed = run.failed_trials().iter().map(|failure| WrittenTrial {
            scores: None,
            latency_ms: None,
            cost: None,
            failure: Some(written_failure(*failure, None)),
        });
        let (trials, failure) = match run.outcome() {
            RunOutcome::Scored(trials) => {
                (Some(trials.iter().map(written_trial).chain(failed).collect()), None)
            }
            RunOutcome::Failed(failure) => (None, Some(written_failure(*failure, self.detail.as_deref()))),
        };
        let model = run.model();
        let written = WrittenRun {
            id: self.id.as_str().into(),
            model: WrittenModel {
                id: model.id().as_str().into(),
                name: model.name().into(),
                provider: model.provider().into(),
                price_input: model.price_input(),
                price_output: model.price_output(),
            },
            suite: run.suite().word().into(),
            time: run.at().rfc3339().into(),
            trials,
            failure,
        };
        serde_json::to_string(&written).expect("it is text and finite numbers")
    }
}

impl WrittenModel<'_> {
    fn read(&self) -> Result<TestedModel, BadRun> {
        let rule = "write 1 to 128 of A-Z a-z 0-9 . _ : - and begin with a letter or digit";
        let id = ModelId::new(&self.id).ok_or_else(|| BadRun::new("id", rule))?;
        TestedModel::new(id, &self.name, &self.provider, self.price_input, self.price_output)
    }
}

impl WrittenFailure<'_> {
    fn read(self) -> Result<(RunFailure, Option<String>), BadRun> {
        let reason = word("reason", &self.reason, RunFailure::ALL.map(|failure| (failure.word(), failure)))?;
        if self.detail.as_ref().is_some_and(|detail| detail.chars().count() > LONGEST_DETAIL) {
            return Err(BadRun::new("detail", format!("is longer than {LONGEST_DETAIL} characters")));
        }
        Ok((reason, self.detail.map(Cow::into_owned)))
    }
}

impl WrittenTrial<'_> {
    /// The trial, or why it failed.
    fn read(self) -> Result<Result<Trial, RunFailure>, BadRun> {
        match (self.scores, self.latency_ms, self.cost, self.failure) {
            (Some(scores), Some(latency), Some(cost), None) => {
                Trial::new(scores.in_order(), latency, cost).map(Ok)
            }
            (None, _, _, Some(failure)) => {
                failure.read().map_err(|bad| bad.within("failure")).map(|(reason, _)| Err(reason))
            }
            (Some(_), _, _, Some(_)) => Err(BadRun::new("failure", "a failed trial has no `scores`")),
            (None, _, _, None) => Err(BadRun::new("scores", "a trial has either `scores` or a `failure`")),
            (Some(_), None, _, None) => Err(BadRun::new("latencyMs", "is missing; write milliseconds")),
            (Some(_), Some(_), None, None) => Err(BadRun::new("cost", "is missing; write US dollars")),
        }
    }
}

impl WrittenScores {
    fn in_order(&self) -> [f64; 7] {
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

fn read_trials(written: Vec<WrittenTrial<'_>>) -> Result<(Vec<Trial>, Vec<RunFailure>), BadRun> {
    let (mut trials, mut failed) = (Vec::with_capacity(written.len()), Vec::new());
    for (index, trial) in written.into_iter().enumerate() {
        match trial.read().map_err(|bad| bad.within(&format!("trials[{index}]")))? {
            Ok(trial) => trials.push(trial),
            Err(failure) => failed.push(failure),
        }
    }
    Ok((trials, failed))
}

pub(super) fn instant(text: &str, now: Wall) -> Result<Wall, BadRun> {
    let at = Wall::parse_rfc3339(text).ok_or_else(|| {
        BadRun::new("time", format!("{text:?} is not a timestamp; write one such as 2026-11-21T12:00:00Z"))
    })?;
    if at > now.plus(CLOCKS_DIFFER) {
        let problem = format!("{} is in the future; it is {} now", at.rfc3339(), now.rfc3339());
        return Err(BadRun::new("time", problem));
    }
    Ok(at)
}

fn word<T: Copy, const N: usize>(field: &str, found: &str, known: [(&str, T); N]) -> Result<T, BadRun> {
    let one = known.iter().find(|(word, _)| *word == found).map(|(_, value)| *value);
    one.ok_or_else(|| {
        let words = known.map(|(word, _)| word).join(", ");
        BadRun::new(field, format!("{found:?} is unknown; write one of {words}"))
    })
}

fn written_trial(trial: &Trial) -> WrittenTrial<'static> {
    let [correctness, spec, code_quality, efficiency, stability, refusal, recovery] = *trial.scores();
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
        latency_ms: Some(trial.latency_ms()),
        cost: Some(trial.cost()),
        failure: None,
    }
}

fn written_failure(failure: RunFailure, detail: Option<&str>) -> WrittenFailure<'_> {
    WrittenFailure { reason: failure.word().into(), detail: detail.map(Cow::from) }
}

/// The error for a line that cannot be parsed.
fn not_written_so(line: &str) -> BadRun {
    let bad = json::explain::<WrittenRun<'_>>(line.as_bytes());
    BadRun::new(bad.field.as_deref().unwrap_or("line"), bad.problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Wall {
        Wall::parse_rfc3339("2026-11-21T12:00:00Z").unwrap()
    }

    const SCORES: &str = r#"{"correctness":0.9,"spec":0.8,"codeQuality":0.7,"efficiency":0.6,"stability":0.5,"refusal":1,"recovery":0}"#;

    fn good() -> String {
        let trial = format!(r#"{{"scores":{SCORES},"latencyMs":4200,"cost":0.031}}"#);
        format!(
            r#"{{"id":"r-1","model":{{"id":"atlas","name":"Atlas","provider":"meridian","priceInput":5,"priceOutput":20}},"suite":"coding","time":"2026-11-21T11:02:03Z","trials":[{trial},{{"failure":{{"reason":"timeout"}}}}]}}"#
        )
    }

    #[test]
    fn runs_round_trip_through_their_line_format() {
        let failed = good();
        let index = failed.find(",\"trials\"").unwrap();
        let failed = format!(
            r#"{},"failure":{{"reason":"unreachable","detail":"connection refused"}}}}"#,
            failed.get(..index).unwrap()
        );
        for line in [good(), failed] {
            let record = IdentifiedRun::read(&line, now()).unwrap();
            assert_eq!(IdentifiedRun::read(&record.write(), now()).unwrap(), record, "{line}");
        }
        let record = IdentifiedRun::read(&good(), now()).unwrap();
        assert_eq!(record.run.failed_trials(), [RunFailure::Timeout]);
        assert!(matches!(record.run.outcome(), RunOutcome::Scored(trials) if trials.len() == 1));
    }

    #[test]
    fn every_error_names_its_field_and_the_remedy() {
        let rows = [
            (
                "\"spec\":0.8",
                "\"spec\":1.2",
                "trials[0].scores.spec",
                "1.2 is not a score; write a number from 0 to 1",
            ),
            ("\"spec\":0.8", "\"spec\":NaN", "trials[0].scores.spec", "not valid JSON at byte"),
            ("\"spec\":0.8", "\"spec\":1e999", "trials[0].scores.spec", "out of range"),
            ("\"spec\":0.8", "\"spec\":\"0.8\"", "trials[0].scores.spec", "write a number"),
            ("\"spec\":0.8,", "", "trials[0].scores", "the field `spec` is missing"),
            ("\"latencyMs\":4200", "\"latencyMs\":-1", "trials[0].latencyMs", "-1 is not an amount"),
            ("\"latencyMs\":4200,", "", "trials[0].latencyMs", "is missing"),
            (
                "\"cost\":0.031",
                "\"costs\":0.031",
                "trials[0].costs",
                "unknown field; the fields are `scores`",
            ),
            ("\"coding\"", "\"poetry\"", "suite", "write one of coding, reasoning, tooling"),
            ("2026-11-21T11:02:03Z", "2026-11-21T12:01:01Z", "time", "is in the future"),
            ("2026-11-21T11:02:03Z", "yesterday", "time", "is not a timestamp; write one such as"),
            ("\"timeout\"", "\"bored\"", "trials[1].failure.reason", "write one of timeout, throttled"),
            ("\"r-1\"", "\"\"", "id", "visible ASCII"),
            ("\"atlas\"", "\"../atlas\"", "model.id", "begin with a letter or digit"),
            ("\"Atlas\"", "\"\"", "model.name", "is empty"),
            ("\"priceInput\":5", "\"priceInput\":-5", "model.priceInput", "-5 is not an amount"),
            ("\"trials\":[", "\"trials\":[],\"spare\":[", "spare", "unknown field"),
            ("}}]}", "}}]} {", "line", "unexpected text after the end"),
            ("}}]}", "}}]", "line", "incomplete JSON"),
            ("\"id\":\"r-1\",", "", "line", "the field `id` is missing"),
            ("\"id\":\"r-1\"", "\"id\":\"r-1\",\"id\":\"r-2\"", "line", "the field `id` is given twice"),
            ("}}]}", "}}],\"failure\":{\"reason\":\"timeout\"}}", "trials", "either `trials` or a `failure`"),
        ];
        for (from, to, field, problem) in rows {
            let line = good().replacen(from, to, 1);
            assert_ne!(line, good(), "{from}");
            let bad = IdentifiedRun::read(&line, now()).expect_err(&line);
            assert!(bad.field == field && bad.problem.contains(problem), "{to}: {bad}");
        }
        for line in ["", "[]", "null", "7", "not json"] {
            assert_eq!(IdentifiedRun::read(line, now()).unwrap_err().field, "line", "{line}");
        }
    }

    #[test]
    fn small_clock_skew_is_tolerated() {
        let line = good().replace("11:02:03", "12:00:30");
        assert!(IdentifiedRun::read(&line, now()).is_ok());
    }
}
