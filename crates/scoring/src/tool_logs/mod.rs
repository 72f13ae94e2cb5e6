//! Logs of evaluation tools as benchmark runs: Inspect AI, lm-evaluation-harness, and records of any other.
//!
//! A log is read into an [`evaluation::Evaluation`], which [`convert`] turns into runs by the operator's mapping. The runs
//! are lines of JSON for the reader of ordinary imports, which validates them. Logs are untrusted: memory is bounded by
//! the number of samples, and decompression by the size of the file. Nothing is guessed: an evaluation that the mapping
//! does not describe completely is reported.

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
