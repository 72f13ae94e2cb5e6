//! Runs as JSON, one object per line: parsing, with the path of every error, and writing.
//!
//! Strict, because silently dropping a field would lose data: unknown fields are rejected.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use scoregate_base::clock::Wall;
use scoregate_base::routes::ModelId;

use super::written_trial::{
    WrittenFailure, WrittenScores, WrittenTrial, read_trials, word, written_failed_trial,
    written_failure, written_trial,
};
use super::{BadRun, Run, RunFailure, RunOutcome, SuiteEntry, SuiteTable, TestedModel};

/// Maximum length of a run in bytes: [`super::MAX_TRIALS`] trials with all digits need half of it.
pub const LONGEST_RUN: usize = 1 << 20;

/// How far a run may be in the future: allowed difference of clocks.
const CLOCKS_DIFFER: Duration = Duration::from_mins(1);

/// The permanent id of a run: 1 to 128 visible ASCII characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(try_from = "String", into = "String")]
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

/// A run with scores of some form.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WrittenRun<'a, S = WrittenScores> {
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    #[serde(borrow)]
    pub model: WrittenModel<'a>,
    #[serde(borrow)]
    pub suite: Cow<'a, str>,
    #[serde(borrow)]
    pub time: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub trials: Option<Vec<WrittenTrial<'a, S>>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<WrittenFailure<'a>>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct WrittenModel<'a> {
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

impl RunId {
    /// Validates an id.
    pub fn new(text: &str) -> Option<Self> {
        let is_well_formed =
            (1..=128).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic());
        is_well_formed.then(|| Self(text.to_owned()))
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for RunId {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::new(&text).ok_or("write 1 to 128 visible ASCII characters")
    }
}

impl From<RunId> for String {
    fn from(id: RunId) -> Self {
        id.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl IdentifiedRun {
    /// Parses a run; `now` limits its time, and the table its suite and axes.
    pub fn read(line: &str, now: Wall, suites: &SuiteTable) -> Result<Self, BadRun> {
        let written: WrittenRun<'_> = BadRun::parse(line)?;
        if arrays(line) != usize::from(written.trials.is_some()) {
            let problem = "an object is written as an array; write its fields with their names";
            return Err(BadRun::new("line", problem));
        }
        let id = RunId::new(&written.id)
            .ok_or_else(|| BadRun::new("id", "write 1 to 128 visible ASCII characters"))?;
        let model = written.model.read().map_err(|bad| bad.within("model"))?;
        let suite = word(
            "suite",
            &written.suite,
            suites.suites(),
            SuiteEntry::name_text,
        )?;
        let at = instant(&written.time, now)?;
        let (outcome, failed, detail) = ending(written.trials, written.failure, suite)?;
        let run = Run::with_failed_trials(Arc::new(model), suite.name(), at, outcome, failed)?;
        Ok(Self { id, run, detail })
    }

    /// Writes it in the format that [`Self::read`] parses.
    pub fn write(&self) -> String {
        let run = &self.run;
        let failed = run
            .failed_trials()
            .iter()
            .map(|failure| written_failed_trial(*failure));
        let (trials, failure) = match run.outcome() {
            RunOutcome::Scored(trials) => (
                Some(trials.iter().map(written_trial).chain(failed).collect()),
                None,
            ),
            RunOutcome::Failed(failure) => (
                None,
                Some(written_failure(*failure, self.detail.as_deref())),
            ),
        };
        let written = WrittenRun {
            id: self.id.as_str().into(),
            model: WrittenModel::of(run.model()),
            suite: run.suite().name().to_owned().into(),
            time: run.at().rfc3339().into(),
            trials,
            failure,
        };
        serde_json::to_string(&written).expect("it is text and finite numbers")
    }
}

impl<'a> WrittenModel<'a> {
    pub(crate) fn of(model: &'a TestedModel) -> Self {
        Self {
            id: model.id().as_str().into(),
            name: model.name().into(),
            provider: model.provider().into(),
            price_input: model.price_input(),
            price_output: model.price_output(),
        }
    }

    fn read(&self) -> Result<TestedModel, BadRun> {
        let rule = "write 1 to 128 of A-Z a-z 0-9 . _ : - and begin with a letter or digit";
        let id = ModelId::new(&self.id).ok_or_else(|| BadRun::new("id", rule))?;
        TestedModel::new(
            id,
            &self.name,
            &self.provider,
            self.price_input,
            self.price_output,
        )
    }
}

/// How a run ended, with its failed trials and the explanation of its failure.
fn ending(
    trials: Option<Vec<WrittenTrial<'_>>>,
    failure: Option<WrittenFailure<'_>>,
    suite: &SuiteEntry,
) -> Result<(RunOutcome, Vec<RunFailure>, Option<String>), BadRun> {
    match (trials, failure) {
        (Some(trials), None) => {
            let (trials, failed) = read_trials(trials, suite)?;
            Ok((RunOutcome::Scored(trials), failed, None))
        }
        (None, Some(failure)) => {
            let (reason, detail) = failure.read().map_err(|bad| bad.within("failure"))?;
            Ok((RunOutcome::Failed(reason), Vec::new(), detail))
        }
        (None, None) | (Some(_), Some(_)) => Err(BadRun::new(
            "trials",
            "a run has either `trials` or a `failure`",
        )),
    }
}

/// Parses an instant that is not after `now`.
fn instant(text: &str, now: Wall) -> Result<Wall, BadRun> {
    let at = Wall::parse_rfc3339(text).ok_or_else(|| {
        BadRun::new(
            "time",
            format!("{text:?} is not a timestamp; write one such as 2026-11-21T12:00:00Z"),
        )
    })?;
    if at > now.plus(CLOCKS_DIFFER) {
        let problem = format!(
            "{} is in the future; it is {} now",
            at.rfc3339(),
            now.rfc3339()
        );
        return Err(BadRun::new("time", problem));
    }
    Ok(at)
}

/// Counts the arrays of a valid JSON text. Only the trials are one, but serde accepts one for each object.
fn arrays(line: &str) -> usize {
    let mut count = 0;
    let mut in_string = false;
    let mut is_escaped = false;
    for byte in line.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => in_string = !in_string,
            b'[' if !in_string => count += 1,
            _ => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Wall {
        Wall::parse_rfc3339("2026-11-21T12:00:00Z").unwrap()
    }

    fn read(line: &str) -> Result<IdentifiedRun, BadRun> {
        IdentifiedRun::read(line, now(), &SuiteTable::default())
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
        let all_failed = good().replace(
            "{\"scores\"",
            "{\"failure\":{\"reason\":\"harness\"}},{\"scores\"",
        );
        let start = all_failed.find(",{\"scores\"").unwrap();
        let end = all_failed.rfind(",{\"failure\"").unwrap();
        let all_failed = [
            all_failed.get(..start).unwrap(),
            all_failed.get(end..).unwrap(),
        ]
        .concat();
        let unmeasured = good().replace(",\"latencyMs\":4200,\"cost\":0.031", "");
        assert!(!unmeasured.contains("4200"));
        for line in [good(), failed, all_failed, unmeasured] {
            let record = read(&line).unwrap();
            assert_eq!(read(&record.write()).unwrap(), record, "{line}");
        }
        let record = read(&good()).unwrap();
        assert_eq!(record.run.failed_trials(), [RunFailure::Timeout]);
        assert!(matches!(record.run.outcome(), RunOutcome::Scored(trials) if trials.len() == 1));
    }

    /// A part of a line, its replacement, the wrong field, and the problem.
    const MISTAKES: [(&str, &str, &str, &str); 21] = [
        (
            "\"spec\":0.8",
            "\"spec\":1.2",
            "trials[0].scores.spec",
            "1.2 is not a score; write a number from 0 to 1",
        ),
        (
            "\"spec\":0.8",
            "\"spec\":NaN",
            "trials[0].scores.spec",
            "not valid JSON at byte",
        ),
        (
            "\"spec\":0.8",
            "\"spec\":1e999",
            "trials[0].scores.spec",
            "out of range",
        ),
        (
            "\"spec\":0.8",
            "\"spec\":\"0.8\"",
            "trials[0].scores.spec",
            "write a number",
        ),
        (
            "\"spec\":0.8,",
            "",
            "trials[0].scores.spec",
            "is missing; write a number from 0 to 1",
        ),
        (
            "\"latencyMs\":4200",
            "\"latencyMs\":-1",
            "trials[0].latencyMs",
            "-1 is not an amount",
        ),
        (
            "\"cost\":0.031",
            "\"costs\":0.031",
            "trials[0].costs",
            "unknown field; the fields are `scores`",
        ),
        (
            "\"coding\"",
            "\"poetry\"",
            "suite",
            "write one of coding, reasoning, tooling",
        ),
        (
            "2026-11-21T11:02:03Z",
            "2026-11-21T12:01:01Z",
            "time",
            "is in the future",
        ),
        (
            "2026-11-21T11:02:03Z",
            "yesterday",
            "time",
            "is not a timestamp; write one such as",
        ),
        (
            "\"timeout\"",
            "\"bored\"",
            "trials[1].failure.reason",
            "write one of timeout, throttled",
        ),
        ("\"r-1\"", "\"\"", "id", "visible ASCII"),
        (
            "\"atlas\"",
            "\"../atlas\"",
            "model.id",
            "begin with a letter or digit",
        ),
        ("\"Atlas\"", "\"\"", "model.name", "is empty"),
        (
            "\"priceInput\":5",
            "\"priceInput\":-5",
            "model.priceInput",
            "-5 is not an amount",
        ),
        (
            "\"trials\":[",
            "\"trials\":[],\"spare\":[",
            "spare",
            "unknown field",
        ),
        ("}}]}", "}}]} {", "line", "unexpected text after the end"),
        ("}}]}", "}}]", "line", "incomplete JSON"),
        ("\"id\":\"r-1\",", "", "line", "the field `id` is missing"),
        (
            "\"id\":\"r-1\"",
            "\"id\":\"r-1\",\"id\":\"r-2\"",
            "line",
            "the field `id` is given twice",
        ),
        (
            "}}]}",
            "}}],\"failure\":{\"reason\":\"timeout\"}}",
            "trials",
            "either `trials` or a `failure`",
        ),
    ];

    #[test]
    fn every_error_names_its_field_and_the_remedy() {
        for (from, to, field, problem) in MISTAKES {
            let line = good().replacen(from, to, 1);
            assert_ne!(line, good(), "{from}");
            let bad = read(&line).expect_err(&line);
            assert!(
                bad.field == field && bad.problem.contains(problem),
                "{to}: {bad}"
            );
        }
        for line in ["", "[]", "null", "7", "not json"] {
            assert_eq!(read(line).unwrap_err().field, "line", "{line}");
        }
    }

    #[test]
    fn an_array_in_place_of_an_object_is_rejected() {
        let model = r#"{"id":"atlas","name":"Atlas","provider":"meridian","priceInput":5,"priceOutput":20}"#;
        let scores = "[0.9,0.8,0.7,0.6,0.5,1,0]";
        let whole = format!(
            r#"["r-1",{model},"coding","2026-11-21T11:02:03Z",null,{{"reason":"timeout"}}]"#
        );
        let lines = [
            whole,
            good().replace(model, r#"["atlas","Atlas","meridian",5,20]"#),
            good().replace(SCORES, scores),
            good().replace(r#"{"reason":"timeout"}"#, r#"["timeout"]"#),
        ];
        for line in lines {
            assert_ne!(line, good());
            let bad = read(&line).expect_err(&line);
            assert!(bad.to_string().contains("write"), "{line}: {bad}");
        }
        let text = good().replace("\"Atlas\"", r#""Atlas [\"one\"] \\[""#);
        assert_eq!(
            read(&text).unwrap().run.model().name(),
            r#"Atlas ["one"] \["#
        );
    }

    #[test]
    fn a_trial_has_exactly_the_axes_of_its_suite() {
        let text = SuiteTable::default()
            .write()
            .replacen("\"correctness\", ", "", 1);
        let table = SuiteTable::read(&text).unwrap();
        let read = |line: &str| IdentifiedRun::read(line, now(), &table);
        let bad = read(&good()).unwrap_err();
        assert_eq!(bad.field, "trials[0].scores.correctness");
        assert!(
            bad.problem
                .contains("the suite coding does not have this axis; remove it"),
            "{bad}"
        );
        let record = read(&good().replace("\"correctness\":0.9,", "")).unwrap();
        assert_eq!(read(&record.write()).unwrap(), record);
        assert!(read(&good().replace("coding", "tooling")).is_ok());
    }

    #[test]
    fn small_clock_skew_is_tolerated() {
        let line = good().replace("11:02:03", "12:00:30");
        assert!(read(&line).is_ok());
    }
}
