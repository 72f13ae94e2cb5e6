//! An explanation as data, for the side port and `scoregate explain`.

use serde::{Deserialize, Serialize};

use scoregate_base::keys::Digest;

/// The decisions about a request.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Explanation {
    /// Its method and its target.
    pub request: String,
    /// When it is decided.
    pub at: String,
    /// The decisions of the stages, in order.
    pub stages: Vec<ExplainedStage>,
    /// The possible outcomes; more than one if the answer depends on the backend or the ledger.
    pub outcomes: Vec<PossibleOutcome>,
}

/// The decision of a stage.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExplainedStage {
    /// The stage.
    pub stage: String,
    /// The decision and its inputs: names and values.
    pub facts: Vec<(String, String)>,
}

/// A way in which a request can end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PossibleOutcome {
    /// Its condition; empty if it is certain.
    pub condition: String,
    /// The status.
    pub status: u16,
    /// The error code.
    pub code: Option<String>,
    /// The message of the error.
    pub message: Option<String>,
    /// The source of the document.
    pub outcome: Option<String>,
    /// Its cost.
    pub cost: RuleAmounts,
    /// Amounts that the application has left.
    pub left: Option<RuleAmounts>,
    /// Names and values; empty if they depend on a document that is not stored.
    pub headers: Vec<(String, String)>,
}

/// Amounts of the three rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleAmounts {
    /// Tokens of the minute.
    pub minute: u32,
    /// Units of the day.
    pub day: u32,
    /// Tokens of the guard.
    pub guard: u32,
}

/// The key of an explained request, without the key.
#[derive(Clone, Debug)]
pub struct ExplainedKey {
    /// Its digest.
    pub digest: Digest,
    /// Its first characters.
    pub prefix: String,
}

impl Explanation {
    /// Adds the decision of a stage.
    pub fn add<'n>(&mut self, stage: &str, facts: impl IntoIterator<Item = (&'n str, String)>) {
        let facts = facts
            .into_iter()
            .map(|(name, value)| (name.into(), value))
            .collect();
        self.stages.push(ExplainedStage {
            stage: stage.into(),
            facts,
        });
    }
}
