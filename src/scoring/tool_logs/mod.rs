//! Logs of evaluation tools as benchmark runs: Inspect AI and lm-evaluation-harness.
//!
//! A log is read into an [`evaluation::Evaluation`], which [`convert`] turns into runs by the operator's mapping. The runs
//! are lines of JSON for the reader of ordinary imports, which validates them. Logs are untrusted: memory is bounded by
//! the number of samples, and decompression by the size of the file. Nothing is guessed: an evaluation that the mapping
//! does not describe completely is reported.

mod convert;
mod eval_archive;
mod evaluation;
mod inspect;
mod lm_eval;
mod log_files;
mod mapping;
mod python_json;
mod sample_error;
mod score;
#[cfg(test)]
mod tests;

use std::path::Path;

pub use convert::MappedRuns;
pub use evaluation::{LogProblem, LogVerdict};
pub use log_files::log_files;
pub use mapping::LogMapping;

/// Maximum number of samples of an evaluation, so that a broken file cannot exhaust the memory.
const MOST_SAMPLES: usize = 1_000_000;

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
    const fn word(self) -> &'static str {
        match self {
            Self::Inspect => "inspect",
            Self::LmEval => "lm-eval",
        }
    }
}

/// The runs of a log, one entry for each evaluation in it.
pub fn read_log(
    tool: EvaluationTool,
    path: &Path,
    mapping: &LogMapping,
) -> Vec<Result<MappedRuns, LogProblem>> {
    let evaluations = match tool {
        EvaluationTool::Inspect => vec![inspect::read(path, mapping)],
        EvaluationTool::LmEval => lm_eval::read(path, mapping),
    };
    let convert = |evaluation: Result<_, _>| evaluation.and_then(|one| convert::convert(tool, &one, mapping));
    evaluations.into_iter().map(convert).collect()
}
