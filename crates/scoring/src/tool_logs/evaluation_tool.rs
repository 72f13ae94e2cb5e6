//! The evaluation tools whose logs can be imported.

use scoregate_base::words;

words! {
    /// An evaluation tool whose logs can be imported.
    pub enum EvaluationTool: word {
        /// Inspect AI.
        Inspect = "inspect",
        /// lm-evaluation-harness.
        LmEval = "lm-eval",
        /// Any tool, as JSON lines.
        Jsonl = "jsonl",
        /// Any tool, as CSV.
        Csv = "csv",
    }
}
