//! The benchmark run: the one input of all scores.
//!
//! Valid by construction: a [`Run`] that exists can be counted, so that no statistic has to ask again whether a score
//! is a number. A failed run carries a reason and no score; it can neither lift nor lower a mean. Not for: where runs
//! are kept, nor what is made of them.

mod model;
mod suite;
mod trial;
mod written;

use std::sync::Arc;

use crate::clock::Wall;

pub use model::TestedModel;
pub use suite::Suite;
pub use trial::{Axis, Trial};
pub use written::{IdentifiedRun, LONGEST_RUN, RunId};

/// The most trials one run may bring: far above any real one, so that a broken file cannot fill the memory.
pub const MOST_TRIALS: usize = 1_000;

/// Why a run, or one of its trials, failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RunFailure {
    /// The model did not answer in time.
    Timeout,
    /// The provider refused for too many requests.
    Throttled,
    /// The provider failed or could not be reached.
    Unreachable,
    /// The harness could not use what came back.
    Unusable,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum RunOutcome {
    /// It was scored: at least one trial.
    Scored(Vec<Trial>),
    /// It failed, and carries no score.
    Failed(RunFailure),
}

/// One run of one suite against one model.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    model: Arc<TestedModel>,
    suite: Suite,
    at: Wall,
    outcome: RunOutcome,
    failed_trials: Vec<RunFailure>,
}

/// Why something is not a run: which field, and what would do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct BadRun {
    /// The field's path, such as `trials[2].scores.spec`.
    pub field: String,
    /// What is wrong with it, and what would do.
    pub problem: String,
}

impl BadRun {
    pub(super) fn new(field: &str, problem: impl Into<String>) -> Self {
        Self { field: field.to_owned(), problem: problem.into() }
    }

    /// The same about something that stands within another.
    fn within(self, whole: &str) -> Self {
        Self { field: format!("{whole}.{}", self.field), ..self }
    }
}

impl RunFailure {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Timeout, Self::Throttled, Self::Unreachable, Self::Unusable];

    /// Its word in a written run.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Timeout => "timeout",
            Self::Throttled => "throttled",
            Self::Unreachable => "unreachable",
            Self::Unusable => "unusable",
        }
    }
}

impl Run {
    /// A run that ended so.
    pub fn new(model: Arc<TestedModel>, suite: Suite, at: Wall, outcome: RunOutcome) -> Result<Self, BadRun> {
        Self::with_failed_trials(model, suite, at, outcome, Vec::new())
    }

    /// A run some of whose trials failed. They are counted, and carry no score.
    pub fn with_failed_trials(
        model: Arc<TestedModel>,
        suite: Suite,
        at: Wall,
        outcome: RunOutcome,
        failed_trials: Vec<RunFailure>,
    ) -> Result<Self, BadRun> {
        let bad = |problem: String| Err(BadRun::new("trials", problem));
        match &outcome {
            RunOutcome::Scored(trials) if trials.is_empty() => {
                bad("a run needs a trial with scores; one without has failed, and says so in `failure`"
                    .into())
            }
            RunOutcome::Scored(trials) if trials.len() + failed_trials.len() > MOST_TRIALS => {
                let found = trials.len() + failed_trials.len();
                bad(format!("{found} are more than the {MOST_TRIALS} that one run may bring"))
            }
            RunOutcome::Scored(_) | RunOutcome::Failed(_) => {
                Ok(Self { model, suite, at, outcome, failed_trials })
            }
        }
    }

    /// The model it was set to.
    pub fn model(&self) -> &Arc<TestedModel> {
        &self.model
    }

    /// Its suite.
    pub fn suite(&self) -> Suite {
        self.suite
    }

    /// When it was made.
    pub fn at(&self) -> Wall {
        self.at
    }

    /// How it ended.
    pub fn outcome(&self) -> &RunOutcome {
        &self.outcome
    }

    /// Why trials of it failed, where others have scores.
    pub fn failed_trials(&self) -> &[RunFailure] {
        &self.failed_trials
    }
}

fn amount(field: &str, number: f64) -> Result<(), BadRun> {
    if number.is_finite() && number >= 0.0 {
        return Ok(());
    }
    Err(BadRun::new(field, format!("{number} is no amount; write a number of 0 or more")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::ModelId;
    use crate::routes::shapes::{AXES, SUITES};

    #[test]
    fn a_score_that_is_no_number_from_0_to_1_is_refused_with_its_axis() {
        for bad in [f64::NAN, f64::INFINITY, -0.1, 1.2] {
            let mut scores = [0.5; 7];
            scores[3] = bad;
            let refusal = Trial::new(scores, 100.0, 0.01).unwrap_err();
            assert_eq!(refusal.field, "scores.efficiency");
            assert!(refusal.problem.contains("from 0 to 1"), "{refusal}");
        }
        assert!(Trial::new([0.0, 1.0, 0.5, 0.5, 0.5, 0.5, 0.5], 0.0, 0.0).is_ok());
    }

    #[test]
    fn a_latency_a_cost_or_a_price_that_is_no_amount_is_refused() {
        let of = |trial: Result<Trial, BadRun>| trial.unwrap_err().field;
        assert_eq!(of(Trial::new([0.5; 7], f64::NAN, 0.0)), "latencyMs");
        assert_eq!(of(Trial::new([0.5; 7], 1.0, -1.0)), "cost");
        let of = |name: &str, price| {
            TestedModel::new(ModelId::new("m").unwrap(), name, "p", Some(price), None).unwrap_err().field
        };
        assert_eq!(of("M", -1.0), "priceInput");
        assert_eq!(of(" ", 1.0), "name");
        assert_eq!(of("a\u{7}b", 1.0), "name");
        assert_eq!(of(&"x".repeat(201), 1.0), "name");
    }

    #[test]
    fn a_scored_run_has_trials_and_not_without_end() {
        let model = Arc::new(TestedModel::new(ModelId::new("m").unwrap(), "M", "p", None, None).unwrap());
        let run =
            |trials| Run::new(Arc::clone(&model), Suite::Coding, Wall::default(), RunOutcome::Scored(trials));
        let trial = Trial::new([0.5; 7], 1.0, 0.0).unwrap();
        assert!(run(vec![]).unwrap_err().problem.contains("needs a trial"));
        assert!(run(vec![trial; MOST_TRIALS + 1]).unwrap_err().problem.contains("1001 are more"));
        assert!(run(vec![trial]).is_ok());
    }

    #[test]
    fn suites_and_axes_bear_the_words_of_the_api_in_its_order() {
        assert_eq!(Suite::ALL.map(Suite::word)[..], *SUITES);
        assert_eq!(Axis::ALL.map(Axis::word)[..], *AXES);
    }
}
