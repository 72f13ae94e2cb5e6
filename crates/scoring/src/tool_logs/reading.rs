//! Reads a log and converts it to runs.

use std::path::Path;

use super::{
    convert::{self, MappedRuns},
    evaluation::LogProblem,
    evaluation_tool::EvaluationTool,
    inspect, lm_eval,
    mapping::LogMapping,
    records,
};

/// The runs of a log, with one entry for each evaluation.
pub fn read_log(
    tool: EvaluationTool,
    path: &Path,
    mapping: &LogMapping,
) -> Vec<Result<MappedRuns, LogProblem>> {
    let evaluations = match tool {
        EvaluationTool::Inspect => vec![inspect::read(path, mapping)],
        EvaluationTool::LmEval => lm_eval::read(path, mapping),
        EvaluationTool::Jsonl => records::read(path, false, mapping),
        EvaluationTool::Csv => records::read(path, true, mapping),
    };
    evaluations
        .into_iter()
        .map(|evaluation| convert::convert(tool, &evaluation?, mapping))
        .collect()
}
