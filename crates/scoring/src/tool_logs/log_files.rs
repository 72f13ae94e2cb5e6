//! Finds a tool's log files among the files and directories that the operator names.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
};

use super::EvaluationTool;

/// Maximum directory depth. Links to a parent are not followed, so a greater depth can only be a mistake.
const DEEPEST: usize = 64;

/// The logs among these files and in these directories, sorted. A file may have any name, but a samples file of
/// lm-evaluation-harness is replaced with the results file next to it.
pub fn log_files(tool: EvaluationTool, paths: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut found = BTreeSet::new();
    for path in paths {
        let metadata = std::fs::metadata(path).map_err(|error| cannot_read(path, &error))?;
        if metadata.is_dir() {
            let before = found.len();
            below(tool, path, 0, &mut found)?;
            if found.len() == before {
                let names = match tool {
                    EvaluationTool::Inspect => "*.eval or DATE_*.json",
                    EvaluationTool::LmEval => "results_*.json",
                    EvaluationTool::Jsonl => "*.jsonl",
                    EvaluationTool::Csv => "*.csv",
                };
                return Err(format!("{} has no file named {names}", path.display()));
            }
        } else {
            found.insert(match tool {
                EvaluationTool::LmEval => results_of(path)?,
                EvaluationTool::Inspect | EvaluationTool::Jsonl | EvaluationTool::Csv => {
                    path.clone()
                }
            });
        }
    }
    Ok(found.into_iter().collect())
}

fn below(
    tool: EvaluationTool,
    place: &Path,
    depth: usize,
    to: &mut BTreeSet<PathBuf>,
) -> Result<(), String> {
    if depth > DEEPEST {
        return Err(format!(
            "{} is more than {DEEPEST} directories deep",
            place.display()
        ));
    }
    let entries = std::fs::read_dir(place).map_err(|error| cannot_read(place, &error))?;
    for entry in entries {
        let entry = entry.map_err(|error| cannot_read(place, &error))?;
        let kind = entry
            .file_type()
            .map_err(|error| cannot_read(&entry.path(), &error))?;
        if kind.is_dir() {
            below(tool, &entry.path(), depth + 1, to)?;
        } else if is_log(tool, &entry.file_name().to_string_lossy()) {
            to.insert(entry.path());
        }
    }
    Ok(())
}

fn is_log(tool: EvaluationTool, name: &str) -> bool {
    let (stem, suffix) = name.rsplit_once('.').unwrap_or((name, ""));
    match tool {
        EvaluationTool::Inspect => {
            let has_date = stem.len() > 11
                && stem
                    .bytes()
                    .enumerate()
                    .take(11)
                    .all(|(at, byte)| match at {
                        4 | 7 => byte == b'-',
                        10 => byte == b'T',
                        _ => byte.is_ascii_digit(),
                    });
            suffix == "eval" || (suffix == "json" && has_date)
        }
        EvaluationTool::LmEval => suffix == "json" && stem.starts_with("results_"),
        EvaluationTool::Jsonl | EvaluationTool::Csv => suffix == tool.word(),
    }
}

/// The results file for a samples file. Other files are returned unchanged.
fn results_of(path: &Path) -> Result<PathBuf, String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let Some(stem) = name
        .strip_prefix("samples_")
        .and_then(|rest| rest.strip_suffix(".jsonl"))
    else {
        return Ok(path.to_owned());
    };
    let date = stem.rsplit_once('_').map_or(stem, |(_, date)| date);
    let results = path.with_file_name(format!("results_{date}.json"));
    if results.is_file() {
        return Ok(results);
    }
    Err(format!(
        "{} has no {} next to it; name the results file",
        path.display(),
        results.display()
    ))
}

fn cannot_read(path: &Path, error: &io::Error) -> String {
    format!("{} cannot be read: {error}", path.display())
}
