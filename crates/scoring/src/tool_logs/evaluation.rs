//! An evaluation as logged by a tool, in one form for all tools.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use crate::RunFailure;
use scoregate_base::{clock::Wall, words};

use super::score::LoggedScore;

/// The samples of one task, evaluated on one model.
#[derive(Debug)]
pub struct Evaluation {
    /// Unique to this evaluation. The ids of its runs are derived from it.
    pub identity: Vec<String>,
    pub task: String,
    pub model: String,
    pub started: Wall,
    /// The order is the same in every log of this evaluation.
    pub samples: Vec<EvaluatedSample>,
    /// Names of scores for which lower values are better.
    pub lower_is_better: BTreeSet<String>,
}

/// A sample in one epoch.
#[derive(Debug)]
pub struct EvaluatedSample {
    /// The name for messages.
    pub name: String,
    pub outcome: SampleOutcome,
    pub latency_ms: Option<f64>,
    pub usage: Option<TokenUsage>,
    /// Whether the tool stopped the sample at a limit of time, tokens or messages. The outcome of such a sample still
    /// counts.
    pub is_limited: bool,
}

/// How a sample ended.
#[derive(Debug)]
pub enum SampleOutcome {
    Scored(BTreeMap<String, LoggedScore>),
    Failed(RunFailure),
    /// The sample was declared invalid after the evaluation.
    Invalidated,
}

/// The token usage of the evaluated model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenUsage {
    /// Input tokens at the full price.
    pub input: u64,
    pub output: u64,
    /// Input tokens at other prices. The mapping contains no prices for them.
    pub cached: u64,
    /// The cost reported by the tool, in US dollars.
    pub cost: Option<f64>,
}

words! {
    /// Why an evaluation is not imported.
    pub enum LogVerdict: word {
        /// The evaluation is not meant to be imported.
        Skipped = "skipped",
        /// The mapping has no entry for the evaluation.
        Missing = "missing",
        /// The evaluation cannot be read, or its scores cannot be used.
        Invalid = "invalid",
    }
}

/// An evaluation or a file that is not imported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogProblem {
    /// Why it is not imported.
    pub verdict: LogVerdict,
    /// The member, line or sample in the file; empty for the whole file.
    pub place: String,
    /// The problem and what to do about it.
    pub problem: String,
}

impl LogProblem {
    pub(super) fn skipped(problem: impl Into<String>) -> Self {
        Self {
            verdict: LogVerdict::Skipped,
            place: String::new(),
            problem: problem.into(),
        }
    }

    pub(super) fn missing(problem: impl Into<String>) -> Self {
        Self {
            verdict: LogVerdict::Missing,
            place: String::new(),
            problem: problem.into(),
        }
    }

    pub(super) fn invalid(place: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            verdict: LogVerdict::Invalid,
            place: place.into(),
            problem: problem.into(),
        }
    }
}

/// Both values, or the problem. If the first is missing from the mapping, the problem with the second is added.
pub fn both<A, B>(
    one: Result<A, LogProblem>,
    other: Result<B, LogProblem>,
) -> Result<(A, B), LogProblem> {
    match (one, other) {
        (Ok(one), Ok(other)) => Ok((one, other)),
        (Err(one), Err(other)) if one.verdict == LogVerdict::Missing => {
            Err(LogProblem::missing(format!("{one}; {other}")))
        }
        (Err(problem), _) | (_, Err(problem)) => Err(problem),
    }
}

impl fmt::Display for LogProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        f.write_str(&self.problem)
    }
}
