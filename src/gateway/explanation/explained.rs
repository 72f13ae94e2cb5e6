//! An explanation as data, for the side port and `scoregate explain`.

use serde::{Deserialize, Serialize};

use scoregate_base::keys::Digest;

/// The decisions about a request.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Explanation {
    /// The method and the target.
    pub request: String,
    /// The time of the decision.
    pub at: String,
    /// The decisions of the stages, in order.
    pub stages: Vec<ExplainedStage>,
    /// The possible outcomes. There are several if the answer depends on the backend or the ledger.
    pub outcomes: Vec<PossibleOutcome>,
}

/// A stage and its decision.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ExplainedStage {
    /// The stage.
    pub stage: String,
    /// The decision and its inputs, as names and values.
    pub facts: Vec<(String, String)>,
}

/// A way in which a request can end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PossibleOutcome {
    /// The condition for this outcome. Empty if the outcome is certain.
    pub condition: String,
    /// The status.
    pub status: u16,
    /// The error code.
    pub code: Option<String>,
    /// The message of the error.
    pub message: Option<String>,
    /// The source of the document.
    pub outcome: Option<String>,
    /// The cost of the request.
    pub cost: RuleAmounts,
    /// The amounts that the application has left.
    pub left: Option<RuleAmounts>,
    /// The names and values of the headers. Empty if they depend on a document that is not stored.
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

/// Identifies the key of an explained request without containing it.
#[derive(Clone, Debug)]
pub struct ExplainedKey {
    /// The digest of the key.
    pub digest: Digest,
    /// The first characters of the key.
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
