//! Logs of evaluation tools as benchmark runs: Inspect AI, lm-evaluation-harness, and records of any other tool.
//!
//! A log is read into an [`evaluation::Evaluation`], which [`convert`] converts to runs according to the operator's
//! mapping. The runs are validated like other imported runs. Logs are untrusted, so the size of the file limits
//! memory and decompression. Nothing is guessed. An evaluation that the mapping does not describe completely is
//! reported.

mod convert;
mod eval_archive;
mod evaluation;
mod evaluation_tool;
mod inspect;
mod lm_eval;
mod log_files;
mod mapping;
mod python_json;
mod reading;
mod record_mapping;
mod records;
mod sample_error;
mod score;
#[cfg(test)]
mod tests;

pub use convert::MappedRuns;
pub use evaluation::{LogProblem, LogVerdict};
pub use evaluation_tool::EvaluationTool;
pub use log_files::log_files;
pub use mapping::LogMapping;
pub use reading::read_log;
