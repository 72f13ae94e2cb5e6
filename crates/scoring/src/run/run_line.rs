//! A run as a line of JSON: parsing, with the path of every error, and writing.
//!
//! The parser is strict and rejects unknown fields, because dropping a field silently would lose data.

use std::{sync::Arc, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};

use scoregate_base::clock::Wall;

use super::{
    BadRun, IdentifiedRun, Run, RunFailure, RunId, RunOutcome, SuiteEntry, SuiteTable, TestedModel,
    Trial,
    trial_line::{FailureLine, TrialLine, find_word},
};

/// Maximum length of a run in bytes. [`super::MAX_TRIALS`] trials with the maximum number of digits need half of it.
pub const LONGEST_RUN: usize = 1 << 20;

/// How far in the future a run may be, to allow for clock differences.
const CLOCKS_DIFFER: Duration = Duration::from_mins(1);

/// A run before it is checked against the time and the suite table.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RunLine {
    id: RunId,
    model: TestedModel,
    suite: String,
    #[serde(deserialize_with = "read_time")]
    time: Wall,
    #[serde(skip_serializing_if = "Option::is_none")]
    trials: Option<Vec<TrialLine>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<FailureLine>,
}

impl RunLine {
    /// A run with trials.
    pub(crate) fn new(
        id: RunId,
        model: &TestedModel,
        suite: &str,
        time: Wall,
        trials: Vec<TrialLine>,
    ) -> Self {
        Self {
            id,
            model: model.clone(),
            suite: suite.to_owned(),
            time,
            trials: Some(trials),
            failure: None,
        }
    }

    /// Parses a line.
    pub fn parse(line: &str) -> Result<Self, BadRun> {
        let parsed: Self = BadRun::parse(line)?;
        if arrays(line) != usize::from(parsed.trials.is_some()) {
            let problem = "an object is written as an array; write its fields with their names";
            return Err(BadRun::new("line", problem));
        }
        Ok(parsed)
    }

    /// The run, if it is not later than `now` and matches the suite table.
    pub fn check(self, now: Wall, suites: &SuiteTable) -> Result<IdentifiedRun, BadRun> {
        let suite = find_word("suite", &self.suite, suites.suites(), SuiteEntry::name_text)?;
        check_time(self.time, now)?;
        let mut detail = None;
        let mut failed = Vec::new();
        let outcome = match (self.trials, self.failure) {
            (Some(trials), None) => RunOutcome::Scored(scored(trials, suite, &mut failed)?),
            (None, Some(failure)) => {
                detail = failure.detail;
                RunOutcome::Failed(failure.reason)
            }
            (None, None) | (Some(_), Some(_)) => {
                let problem = "a run has either `trials` or a `failure`";
                return Err(BadRun::new("trials", problem));
            }
        };
        let run = Run::with_failed_trials(
            Arc::new(self.model),
            suite.name(),
            self.time,
            outcome,
            failed,
        )?;
        Ok(IdentifiedRun {
            id: self.id,
            run,
            detail,
        })
    }

    /// Writes the run in the format that [`Self::parse`] reads.
    pub fn write(&self) -> String {
        serde_json::to_string(self).expect("it is text and finite numbers")
    }
}

impl IdentifiedRun {
    /// Writes the run in the format that [`RunLine::parse`] reads.
    pub fn write(&self) -> String {
        RunLine::from(self).write()
    }
}

impl From<&IdentifiedRun> for RunLine {
    fn from(record: &IdentifiedRun) -> Self {
        let run = &record.run;
        let mut trials = None;
        let mut failure = None;
        match run.outcome() {
            RunOutcome::Scored(scored) => {
                let failed = run.failed_trials().iter().copied();
                let scored = scored.iter().map(TrialLine::from);
                trials = Some(scored.chain(failed.map(TrialLine::from_failure)).collect());
            }
            RunOutcome::Failed(reason) => {
                let detail = record.detail.clone();
                failure = Some(FailureLine {
                    reason: *reason,
                    detail,
                });
            }
        }
        Self {
            id: record.id.clone(),
            model: TestedModel::clone(run.model()),
            suite: run.suite().to_string(),
            time: run.at(),
            trials,
            failure,
        }
    }
}

/// The trials that have scores. The failures of the other trials are added to `failed`.
fn scored(
    trials: Vec<TrialLine>,
    suite: &SuiteEntry,
    failed: &mut Vec<RunFailure>,
) -> Result<Vec<Trial>, BadRun> {
    let mut scored = Vec::with_capacity(trials.len());
    for (index, trial) in trials.into_iter().enumerate() {
        let checked = trial
            .check(suite)
            .map_err(|bad| bad.within(&format!("trials[{index}]")))?;
        match checked {
            Ok(trial) => scored.push(trial),
            Err(failure) => failed.push(failure),
        }
    }
    Ok(scored)
}

fn read_time<'de, D: Deserializer<'de>>(from: D) -> Result<Wall, D::Error> {
    let text = String::deserialize(from)?;
    Wall::parse_rfc3339(&text).ok_or_else(|| {
        D::Error::custom(format!(
            "{text:?} is not a timestamp; write one such as 2026-11-21T12:00:00Z"
        ))
    })
}

fn check_time(at: Wall, now: Wall) -> Result<(), BadRun> {
    if at <= now.plus(CLOCKS_DIFFER) {
        return Ok(());
    }
    let at = at.rfc3339();
    let now = now.rfc3339();
    Err(BadRun::new(
        "time",
        format!("{at} is in the future; it is {now} now"),
    ))
}

/// Counts the arrays of a valid JSON text. Only the trials are an array, but serde also accepts an array in place of
/// each object.
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
        RunLine::parse(line)?.check(now(), &SuiteTable::default())
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

    /// A part of a line, its replacement, the invalid field, and the problem.
    const MISTAKES: [(&str, &str, &str, &str); 23] = [
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
        (
            "\"spec\":0.8",
            "\"spec\":0.8,\"spec\":0.8",
            "trials[0].scores",
            "the field `spec` is given twice",
        ),
        (
            "\"spec\":0.8",
            "\"style\":0.8",
            "trials[0].scores.style",
            "that is not one of `correctness`, `spec`",
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
        let table = SuiteTable::parse(&text).unwrap();
        let read = |line: &str| RunLine::parse(line)?.check(now(), &table);
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
