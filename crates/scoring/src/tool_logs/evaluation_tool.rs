//! The evaluation tools whose logs can be imported.

/// An evaluation tool whose logs can be imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EvaluationTool {
    /// Inspect AI.
    Inspect,
    /// lm-evaluation-harness.
    LmEval,
}

impl EvaluationTool {
    /// Its name in run ids.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Inspect => "inspect",
            Self::LmEval => "lm-eval",
        }
    }
}
