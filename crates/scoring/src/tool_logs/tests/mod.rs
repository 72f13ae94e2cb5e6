//! Golden files of the tools as runs, and damaged and hostile files.
//!
//! The golden files are written by `tests/reference/tool_logs.py`. The runs beside them are written by this test with
//! `SCOREGATE_WRITE=1`; compare them with the logs by hand.

mod damaged_lm_eval;
mod golden;
mod hostile;
mod made_up;

use std::path::Path;
use std::path::PathBuf;

use super::*;

/// A file of `tests/reference/tool_logs`.
fn golden_file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/reference/tool_logs").join(name)
}

fn golden_mapping(name: &str) -> LogMapping {
    LogMapping::parse(&std::fs::read_to_string(golden_file(name)).unwrap()).unwrap()
}

/// The only evaluation of a log.
fn read_one(path: &Path, mapping: &LogMapping) -> Result<MappedRuns, LogProblem> {
    let mut read = read_log(EvaluationTool::Inspect, path, mapping);
    assert_eq!(read.len(), 1);
    read.pop().unwrap()
}

/// The problem of the only evaluation of a log.
fn problem_of(path: &Path, mapping: &LogMapping) -> (LogVerdict, String) {
    let problem = read_one(path, mapping).unwrap_err();
    (problem.verdict, problem.to_string())
}
