//! The benchmark run: the one input of all scores.
//!
//! Valid by construction: a [`Run`] that exists can be counted, so that no statistic has to ask again whether a score
//! is a number. A failed run carries a reason and no score; it can neither lift nor lower a mean. Not for: where runs
//! come from, nor what is made of them.

use std::sync::Arc;

use crate::clock::Wall;
use crate::routes::ModelId;

/// The most trials one run may bring: far above any real one, so that a broken file cannot fill the memory.
pub const MOST_TRIALS: usize = 1_000;

/// A model under test.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    id: ModelId,
    name: String,
    provider: String,
    price_input: Option<f64>,
    price_output: Option<f64>,
}

/// What kind of task a run sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "named by `word`")]
pub enum Suite {
    Coding,
    Reasoning,
    Tooling,
}

/// What a trial is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "named by `word`")]
pub enum Axis {
    Correctness,
    Spec,
    CodeQuality,
    Efficiency,
    Stability,
    Refusal,
    Recovery,
}

/// One task set once: a score on each axis, how long it took and what it cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    scores: [f64; 7],
    latency_ms: f64,
    cost: f64,
}

/// Why a run failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Failure {
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
pub enum Outcome {
    /// It was scored: at least one trial.
    Scored(Vec<Trial>),
    /// It failed, and carries no score.
    Failed(Failure),
}

/// One run of one suite against one model.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    model: Arc<Model>,
    suite: Suite,
    at: Wall,
    outcome: Outcome,
}

/// Why something is not a run.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum BadRun {
    /// A score that is not a number from 0 to 1.
    #[error("the score {score} on the axis {} is not a number from 0 to 1", .axis.word())]
    Score {
        /// On which axis.
        axis: Axis,
        /// What was given.
        score: f64,
    },
    /// A latency that is not a finite number of milliseconds, or is negative.
    #[error("the latency {0} is not a number of milliseconds")]
    Latency(f64),
    /// A cost that is not a finite number of dollars, or is negative.
    #[error("the cost {0} is not a number of dollars")]
    Cost(f64),
    /// A price that is not a finite number of dollars, or is negative.
    #[error("the price {0} is not a number of dollars")]
    Price(f64),
    /// A name or a provider without a visible character.
    #[error("the model's name or provider is empty")]
    Nameless,
    /// A scored run without a trial.
    #[error("a scored run needs a trial; a run without one has failed")]
    NoTrials,
    /// More than [`MOST_TRIALS`].
    #[error("{0} trials are more than a run may bring")]
    TooManyTrials(usize),
}

impl Model {
    /// A model with its prices in US dollars for a million tokens, where they are known.
    pub fn new(
        id: ModelId,
        name: &str,
        provider: &str,
        price_input: Option<f64>,
        price_output: Option<f64>,
    ) -> Result<Self, BadRun> {
        if name.trim().is_empty() || provider.trim().is_empty() {
            return Err(BadRun::Nameless);
        }
        if let Some(price) = [price_input, price_output].into_iter().flatten().find(|price| !amount(*price)) {
            return Err(BadRun::Price(price));
        }
        Ok(Self { id, name: name.to_owned(), provider: provider.to_owned(), price_input, price_output })
    }

    /// Its identifier.
    pub fn id(&self) -> &ModelId {
        &self.id
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its provider's identifier.
    pub fn provider(&self) -> &str {
        &self.provider
    }

    /// US dollars for a million input tokens.
    pub fn price_input(&self) -> Option<f64> {
        self.price_input
    }

    /// US dollars for a million output tokens.
    pub fn price_output(&self) -> Option<f64> {
        self.price_output
    }
}

impl Suite {
    /// All of them, in the order of the documents.
    pub const ALL: [Self; 3] = [Self::Coding, Self::Reasoning, Self::Tooling];

    /// Its word in answers.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Coding => "coding",
            Self::Reasoning => "reasoning",
            Self::Tooling => "tooling",
        }
    }

    /// Its own of three things that stand in the order of [`Suite::ALL`].
    pub fn of<T>(self, [coding, reasoning, tooling]: &[T; 3]) -> &T {
        match self {
            Self::Coding => coding,
            Self::Reasoning => reasoning,
            Self::Tooling => tooling,
        }
    }

    /// As [`Suite::of`], to be changed.
    pub fn of_mut<T>(self, [coding, reasoning, tooling]: &mut [T; 3]) -> &mut T {
        match self {
            Self::Coding => coding,
            Self::Reasoning => reasoning,
            Self::Tooling => tooling,
        }
    }
}

impl Axis {
    /// All of them, in the order of the documents and of a trial's scores.
    pub const ALL: [Self; 7] = [
        Self::Correctness,
        Self::Spec,
        Self::CodeQuality,
        Self::Efficiency,
        Self::Stability,
        Self::Refusal,
        Self::Recovery,
    ];

    /// Its word in answers.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Correctness => "correctness",
            Self::Spec => "spec",
            Self::CodeQuality => "codeQuality",
            Self::Efficiency => "efficiency",
            Self::Stability => "stability",
            Self::Refusal => "refusal",
            Self::Recovery => "recovery",
        }
    }
}

impl Trial {
    /// A trial with its scores in the order of [`Axis::ALL`], each from 0 to 1.
    pub fn new(scores: [f64; 7], latency_ms: f64, cost: f64) -> Result<Self, BadRun> {
        // `contains` is false for NaN, which is what is wanted.
        let bad = Axis::ALL.into_iter().zip(scores).find(|(_, score)| !(0.0..=1.0).contains(score));
        if let Some((axis, score)) = bad {
            return Err(BadRun::Score { axis, score });
        }
        if !amount(latency_ms) {
            return Err(BadRun::Latency(latency_ms));
        }
        if !amount(cost) {
            return Err(BadRun::Cost(cost));
        }
        Ok(Self { scores, latency_ms, cost })
    }

    /// Its scores, in the order of [`Axis::ALL`].
    pub fn scores(&self) -> &[f64; 7] {
        &self.scores
    }

    /// How long it took, in milliseconds.
    pub fn latency_ms(&self) -> f64 {
        self.latency_ms
    }

    /// What it cost, in US dollars.
    pub fn cost(&self) -> f64 {
        self.cost
    }
}

impl Run {
    /// A run that ended so.
    pub fn new(model: Arc<Model>, suite: Suite, at: Wall, outcome: Outcome) -> Result<Self, BadRun> {
        match &outcome {
            Outcome::Scored(trials) if trials.is_empty() => Err(BadRun::NoTrials),
            Outcome::Scored(trials) if trials.len() > MOST_TRIALS => Err(BadRun::TooManyTrials(trials.len())),
            Outcome::Scored(_) | Outcome::Failed(_) => Ok(Self { model, suite, at, outcome }),
        }
    }

    /// The model it was set to.
    pub fn model(&self) -> &Arc<Model> {
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
    pub fn outcome(&self) -> &Outcome {
        &self.outcome
    }
}

fn amount(number: f64) -> bool {
    number.is_finite() && number >= 0.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::shapes::{AXES, SUITES};

    #[test]
    fn a_score_that_is_no_number_from_0_to_1_is_refused_with_its_axis() {
        for bad in [f64::NAN, f64::INFINITY, -0.1, 1.2] {
            let mut scores = [0.5; 7];
            scores[3] = bad;
            let refusal = Trial::new(scores, 100.0, 0.01).unwrap_err();
            assert!(matches!(refusal, BadRun::Score { axis: Axis::Efficiency, .. }));
            assert!(refusal.to_string().contains("efficiency"), "{refusal}");
        }
        assert!(Trial::new([0.0, 1.0, 0.5, 0.5, 0.5, 0.5, 0.5], 0.0, 0.0).is_ok());
    }

    #[test]
    fn a_latency_a_cost_or_a_price_that_is_no_amount_is_refused() {
        assert!(matches!(Trial::new([0.5; 7], f64::NAN, 0.0), Err(BadRun::Latency(_))));
        assert_eq!(Trial::new([0.5; 7], 1.0, -1.0), Err(BadRun::Cost(-1.0)));
        let id = || ModelId::new("m").unwrap();
        assert_eq!(Model::new(id(), "M", "p", Some(-1.0), None), Err(BadRun::Price(-1.0)));
        assert_eq!(Model::new(id(), " ", "p", None, None), Err(BadRun::Nameless));
    }

    #[test]
    fn a_scored_run_has_trials_and_not_without_end() {
        let model = Arc::new(Model::new(ModelId::new("m").unwrap(), "M", "p", None, None).unwrap());
        let run =
            |trials| Run::new(Arc::clone(&model), Suite::Coding, Wall::default(), Outcome::Scored(trials));
        let trial = Trial::new([0.5; 7], 1.0, 0.0).unwrap();
        assert_eq!(run(vec![]), Err(BadRun::NoTrials));
        assert_eq!(run(vec![trial; MOST_TRIALS + 1]), Err(BadRun::TooManyTrials(MOST_TRIALS + 1)));
        assert!(run(vec![trial]).is_ok());
    }

    #[test]
    fn suites_and_axes_bear_the_words_of_the_api_in_its_order() {
        assert_eq!(Suite::ALL.map(Suite::word)[..], *SUITES);
        assert_eq!(Axis::ALL.map(Axis::word)[..], *AXES);
    }
}
