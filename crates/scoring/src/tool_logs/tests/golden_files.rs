//! Golden files, and functions that read logs with one evaluation.

use std::path::{Path, PathBuf};

use crate::tool_logs::*;

/// A file of `tests/reference/tool_logs`.
pub fn golden_file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../tests/reference/tool_logs")
        .join(name)
}

pub fn golden_mapping(name: &str) -> LogMapping {
    LogMapping::parse(&std::fs::read_to_string(golden_file(name)).unwrap()).unwrap()
}

/// The runs of the only evaluation in a log.
pub fn read_one(path: &Path, mapping: &LogMapping) -> Result<MappedRuns, LogProblem> {
    let mut read = read_log(EvaluationTool::Inspect, path, mapping);
    assert_eq!(read.len(), 1);
    read.pop().unwrap()
}

/// The problem with the only evaluation in a log.
pub fn problem_of(path: &Path, mapping: &LogMapping) -> (LogVerdict, String) {
    let problem = read_one(path, mapping).unwrap_err();
    (problem.verdict, problem.to_string())
}
