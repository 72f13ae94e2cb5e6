//! `scoregate scoring import --from`: converts logs of evaluation tools to lines of a normal import.
//!
//! Logs are converted one by one, so only the runs of one log are in memory.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use crate::cli::{
    command_error::{CommandOutcome, input_is_fine},
    printer,
};
use scoregate_base::clock::{Clock, Wall};
use scoregate_scoring::{
    Archive, BadRun, EvaluationTool, ExportLine, LogMapping, LogProblem, LogVerdict, MappedRuns,
    SuiteTable, log_files, read_log,
};

use super::{equal_messages::EqualMessages, run_file::ImportLine};

#[derive(Debug, Args)]
pub struct ToolLogArgs {
    /// Import logs of this tool; directories are searched for its files.
    #[arg(long, value_name = "TOOL", requires = "mapping")]
    from: Option<ToolName>,
    /// Mapping file (TOML): task suites and axes, model ids and prices.
    #[arg(long, value_name = "FILE", requires = "from")]
    mapping: Option<PathBuf>,
    /// Show the effect of the import, and import nothing.
    #[arg(long, requires = "from")]
    dry_run: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ToolName {
    /// Inspect AI: `.eval` files and JSON logs.
    Inspect,
    /// lm-evaluation-harness: `results_*.json` and `samples_*.jsonl` in the same directory.
    LmEval,
    /// JSON lines from any tool; the table `records` of the mapping names their fields.
    Jsonl,
    /// CSV from any tool, with a header line; the table `records` of the mapping names its columns.
    Csv,
}

/// The logs to convert.
pub struct ToolLogs {
    tool: EvaluationTool,
    mapping: LogMapping,
    files: Vec<PathBuf>,
    /// The counts for all logs that have been converted.
    pub counts: ToolLogCounts,
}

/// Counts of evaluations, trials and problems in the logs.
#[derive(Debug, Default)]
pub struct ToolLogCounts {
    evaluations: u64,
    runs: u64,
    scored: u64,
    failed: BTreeMap<&'static str, u64>,
    invalidated: u64,
    limited: u64,
    problems: BTreeMap<&'static str, u64>,
    pub messages: EqualMessages,
}

impl ToolLogArgs {
    /// The logs, if `--from` is given. Every error can be corrected by the operator.
    pub fn logs(&self, files: &[PathBuf]) -> Result<Option<ToolLogs>, String> {
        let Some((from, path)) = self.from.zip(self.mapping.as_ref()) else {
            return Ok(None);
        };
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("the mapping {} cannot be read: {error}", path.display()))?;
        let mapping =
            LogMapping::parse(&text).map_err(|problem| format!("{}: {problem}", path.display()))?;
        let tool = match from {
            ToolName::Inspect => EvaluationTool::Inspect,
            ToolName::LmEval => EvaluationTool::LmEval,
            ToolName::Jsonl => EvaluationTool::Jsonl,
            ToolName::Csv => EvaluationTool::Csv,
        };
        let files = log_files(tool, files)?;
        Ok(Some(ToolLogs {
            tool,
            mapping,
            files,
            counts: ToolLogCounts::default(),
        }))
    }

    pub fn is_dry_run(&self) -> bool {
        self.dry_run
    }
}

impl ToolLogs {
    /// The runs in the logs. Evaluations that are not imported are counted and reported.
    pub fn lines(&mut self) -> impl Iterator<Item = Result<ImportLine, String>> {
        let counts = &mut self.counts;
        self.files.iter().flat_map(|path| {
            let mut lines = Vec::new();
            for runs in read_log(self.tool, path, &self.mapping) {
                counts.add(path, &runs);
                for run in runs.into_iter().flat_map(|runs| runs.runs) {
                    lines.push(Ok(ImportLine {
                        place: format!("{}:{}", path.display(), lines.len() + 1),
                        line: Ok(ExportLine::Run(run)),
                    }));
                }
            }
            lines
        })
    }

    /// Prints the effect of an import into an archive. If the archive does not exist, the default suites apply.
    pub fn dry_run(&mut self, archive: &Path, as_json: bool) -> CommandOutcome {
        let now = Clock::system().now().wall;
        let suites = suites(archive)?;
        let mut rows = Vec::new();
        let mut entries = Vec::new();
        for path in &self.files {
            let file = path.display().to_string();
            for runs in read_log(self.tool, path, &self.mapping) {
                let runs = runs.and_then(|runs| checked(runs, now, &suites));
                self.counts.add(path, &runs);
                entries.push(entry(&file, &runs));
                rows.extend(runs.iter().map(|runs| row(&file, runs)));
            }
        }
        self.counts.messages.finish();
        if as_json {
            printer::json(&json!({"evaluations": entries, "counts": self.counts.json()}))?;
        } else {
            self.print_table(rows)?;
        }
        input_is_fine(!self.counts.has_errors())
    }

    fn print_table(&self, rows: Vec<Vec<String>>) -> anyhow::Result<()> {
        let header = [
            "file", "task", "model", "suite", "axes", "time", "runs", "trials", "failed", "absent",
        ];
        if !rows.is_empty() {
            printer::table(&header, rows)?;
        }
        printer::data(&format!(
            "{}; nothing was imported\n",
            self.counts.summary()
        ))
    }
}

fn suites(archive: &Path) -> anyhow::Result<Arc<SuiteTable>> {
    if archive.exists() {
        return Ok(Archive::open(archive)?.suites()?);
    }
    let path = archive.display();
    printer::message(&format!(
        "there is no archive {path}: runs are checked against the default suites"
    ));
    Ok(Arc::default())
}

/// Returns the runs if an import would accept them.
fn checked(runs: MappedRuns, now: Wall, suites: &SuiteTable) -> Result<MappedRuns, LogProblem> {
    let mut all = runs.runs.iter();
    match all.find_map(|run| run.clone().check(now, suites).err()) {
        None => Ok(runs),
        Some(BadRun { field, problem }) => Err(LogProblem {
            verdict: LogVerdict::Invalid,
            place: format!("task {}: {field}", runs.task),
            problem,
        }),
    }
}

fn row(file: &str, runs: &MappedRuns) -> Vec<String> {
    let failed: u64 = runs.failed.values().sum();
    vec![
        file.to_owned(),
        runs.task.clone(),
        runs.model_id.clone(),
        runs.suite.clone(),
        runs.axes.join(","),
        runs.time.clone(),
        runs.runs.len().to_string(),
        (runs.scored + failed).to_string(),
        failed.to_string(),
        runs.absent.join(","),
    ]
}

fn entry(file: &str, runs: &Result<MappedRuns, LogProblem>) -> Value {
    match runs {
        Ok(runs) => json!({
            "file": file, "verdict": "importable", "task": runs.task, "model": runs.model,
            "modelId": runs.model_id, "suite": runs.suite, "axes": runs.axes, "time": runs.time,
            "scored": runs.scored, "failed": runs.failed, "invalidated": runs.invalidated,
            "limited": runs.limited, "absent": runs.absent, "runs": runs.runs,
        }),
        Err(problem) => json!({
            "file": file, "verdict": problem.verdict, "place": problem.place,
            "problem": problem.problem,
        }),
    }
}

impl ToolLogCounts {
    /// Counts the runs of an evaluation, or reports its problem.
    fn add(&mut self, path: &Path, runs: &Result<MappedRuns, LogProblem>) {
        match runs {
            Ok(runs) => {
                self.evaluations += 1;
                self.runs += runs.runs.len() as u64;
                self.scored += runs.scored;
                self.invalidated += runs.invalidated;
                self.limited += runs.limited;
                for (failure, count) in &runs.failed {
                    *self.failed.entry(failure.word()).or_default() += count;
                }
            }
            Err(problem) => {
                let verdict = problem.verdict.word();
                *self.problems.entry(verdict).or_default() += 1;
                self.messages
                    .report(path.display(), format_args!("{verdict}: {problem}"));
            }
        }
    }

    /// Whether an evaluation was rejected or is missing from the mapping.
    pub fn has_errors(&self) -> bool {
        [LogVerdict::Missing, LogVerdict::Invalid]
            .iter()
            .any(|verdict| self.problems.contains_key(verdict.word()))
    }

    /// The counts as text.
    pub fn summary(&self) -> String {
        let failed: u64 = self.failed.values().sum();
        let reasons: Vec<String> = self
            .failed
            .iter()
            .map(|(reason, count)| format!("{count} {reason}"))
            .collect();
        let reasons = if reasons.is_empty() {
            String::new()
        } else {
            format!(" ({})", reasons.join(", "))
        };
        let mut parts = vec![format!(
            "evaluations: {}, runs: {}, trials: {} scored and {failed} failed{reasons}",
            self.evaluations, self.runs, self.scored
        )];
        if self.invalidated > 0 {
            parts.push(format!(
                "samples skipped: {} (declared invalid in the log)",
                self.invalidated
            ));
        }
        if self.limited > 0 {
            parts.push(format!(
                "samples stopped by a limit: {} (counted with their scores)",
                self.limited
            ));
        }
        parts.extend(
            self.problems
                .iter()
                .map(|(verdict, count)| format!("{verdict}: {count}")),
        );
        parts.join(", ")
    }

    pub fn json(&self) -> Value {
        json!({"evaluations": self.evaluations, "runs": self.runs, "scored": self.scored, "failed": self.failed,
            "invalidated": self.invalidated, "limited": self.limited, "problems": self.problems})
    }
}
