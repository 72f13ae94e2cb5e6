//! A run: one suite on one model at one time.

use std::sync::Arc;

use scoregate_base::clock::Wall;

use super::{BadRun, RunFailure, RunId, TestedModel, Trial};
use crate::suite::Suite;

/// Maximum number of trials per run. It is far above realistic numbers, and keeps a broken file from exhausting memory.
pub const MAX_TRIALS: usize = 1_000;

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum RunOutcome {
    /// The trials that have scores. Failed trials are listed separately. If all trials failed, the list is empty.
    Scored(Vec<Trial>),
    /// The run failed as a whole, without trials.
    Failed(RunFailure),
}

/// A run of one suite on one model.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    model: Arc<TestedModel>,
    suite: Suite,
    at: Wall,
    outcome: RunOutcome,
    failed_trials: Vec<RunFailure>,
}

/// A run with its id.
#[derive(Clone, Debug, PartialEq)]
pub struct IdentifiedRun {
    /// The id.
    pub id: RunId,
    /// The run.
    pub run: Run,
    /// An explanation of the failure, if the run failed.
    pub detail: Option<String>,
}

impl Run {
    /// A run with this outcome.
    pub fn new(
        model: Arc<TestedModel>,
        suite: Suite,
        at: Wall,
        outcome: RunOutcome,
    ) -> Result<Self, BadRun> {
        Self::with_failed_trials(model, suite, at, outcome, Vec::new())
    }

    /// A run in which some or all trials failed.
    pub fn with_failed_trials(
        model: Arc<TestedModel>,
        suite: Suite,
        at: Wall,
        outcome: RunOutcome,
        failed_trials: Vec<RunFailure>,
    ) -> Result<Self, BadRun> {
        let problem = match &outcome {
            RunOutcome::Scored(trials) if trials.is_empty() && failed_trials.is_empty() => {
                "a run needs at least one trial; a run that failed as a whole has `failure` instead"
                    .to_owned()
            }
            RunOutcome::Failed(_) if !failed_trials.is_empty() => {
                "a run that failed as a whole has no trials".to_owned()
            }
            RunOutcome::Scored(trials) if trials.len() + failed_trials.len() > MAX_TRIALS => {
                format!(
                    "{} trials; the maximum is {MAX_TRIALS}",
                    trials.len() + failed_trials.len()
                )
            }
            RunOutcome::Scored(_) | RunOutcome::Failed(_) => {
                return Ok(Self {
                    model,
                    suite,
                    at,
                    outcome,
                    failed_trials,
                });
            }
        };
        Err(BadRun::new("trials", problem))
    }

    /// The model.
    pub fn model(&self) -> &Arc<TestedModel> {
        &self.model
    }

    /// The suite.
    pub fn suite(&self) -> Suite {
        self.suite
    }

    /// The time of the run.
    pub fn at(&self) -> Wall {
        self.at
    }

    /// The outcome of the run.
    pub fn outcome(&self) -> &RunOutcome {
        &self.outcome
    }

    /// The failure of each failed trial; empty if the run failed as a whole.
    pub fn failed_trials(&self) -> &[RunFailure] {
        &self.failed_trials
    }

    /// The trials that have scores.
    pub fn trials(&self) -> &[Trial] {
        match &self.outcome {
            RunOutcome::Scored(trials) => trials,
            RunOutcome::Failed(_) => &[],
        }
    }

    /// The failed trials. A run that failed as a whole counts as one failed trial.
    pub fn failures(&self) -> &[RunFailure] {
        match &self.outcome {
            RunOutcome::Scored(_) => &self.failed_trials,
            RunOutcome::Failed(failure) => std::slice::from_ref(failure),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::Axis;
    use scoregate_base::routes::ModelId;
    use scoregate_base::routes::shapes::AXES;

    #[test]
    fn score_out_of_range_is_rejected_with_its_axis() {
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
    fn negative_or_infinite_amounts_are_rejected() {
        let of = |trial: Result<Trial, BadRun>| trial.unwrap_err().field;
        assert_eq!(of(Trial::new([0.5; 7], f64::NAN, 0.0)), "latencyMs");
        assert_eq!(of(Trial::new([0.5; 7], 1.0, -1.0)), "cost");
        let of = |name: &str, price| {
            TestedModel::new(ModelId::new("m").unwrap(), name, "p", Some(price), None)
                .unwrap_err()
                .field
        };
        assert_eq!(of("M", -1.0), "priceInput");
        assert_eq!(of(" ", 1.0), "name");
        assert_eq!(of("a\u{7}b", 1.0), "name");
        assert_eq!(of(&"x".repeat(201), 1.0), "name");
    }

    #[test]
    fn a_run_has_a_limited_nonzero_number_of_trials() {
        let model =
            Arc::new(TestedModel::new(ModelId::new("m").unwrap(), "M", "p", None, None).unwrap());
        let run = |trials| {
            Run::new(
                Arc::clone(&model),
                Suite::CODING,
                Wall::default(),
                RunOutcome::Scored(trials),
            )
        };
        let trial = Trial::new([0.5; 7], 1.0, 0.0).unwrap();
        assert!(
            run(vec![])
                .unwrap_err()
                .problem
                .contains("needs at least one trial")
        );
        assert!(
            run(vec![trial; MAX_TRIALS + 1])
                .unwrap_err()
                .problem
                .contains("1001 trials; the maximum")
        );
        assert!(run(vec![trial]).is_ok());
        let failed = |outcome, failed| {
            Run::with_failed_trials(
                Arc::clone(&model),
                Suite::CODING,
                Wall::default(),
                outcome,
                failed,
            )
        };
        assert!(failed(RunOutcome::Scored(vec![]), vec![RunFailure::Timeout]).is_ok());
        let whole = RunOutcome::Failed(RunFailure::Timeout);
        assert!(
            failed(whole, vec![RunFailure::Timeout])
                .unwrap_err()
                .problem
                .contains("has no trials")
        );
    }

    #[test]
    fn axes_match_the_api_words_in_order() {
        assert_eq!(Axis::ALL.map(Axis::word)[..], *AXES);
    }
}
