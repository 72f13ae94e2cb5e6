//! `scoregate scoring audit`: the audit trail of withdrawn and corrected runs.

use clap::Args;
use serde_json::{Value, json};

use crate::cli::command_error::CommandOutcome;
use crate::cli::printer;
use scoregate_scoring::{RunChange, RunId};

use super::archive_place::ArchivePlace;
use super::change::run_id;

pub(super) const AFTER_HELP: &str = "Examples:\n  scoregate scoring audit --data-dir DIR\n  \
scoregate scoring audit r-17 --json --archive runs.db\n\n\
With --json each record has the run's previous content in `before`, as `scoring import` and `scoring correct` read it.";

#[derive(Debug, Args)]
pub(super) struct RunAuditArgs {
    /// Only changes of this run.
    #[arg(value_name = "ID", value_parser = run_id)]
    id: Option<RunId>,
    /// Only changes before this number.
    #[arg(long, value_name = "N")]
    before: Option<u64>,
    /// Maximum number of rows.
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: u32,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(place: &ArchivePlace, args: &RunAuditArgs) -> CommandOutcome {
    let limit = usize::try_from(args.limit).unwrap_or(usize::MAX);
    // One more, to know whether there are older ones.
    let mut changes =
        place
            .open()?
            .changes(args.id.as_ref(), args.before, limit.saturating_add(1))?;
    let is_last = changes.len() <= limit;
    changes.truncate(limit);
    let next = changes
        .last()
        .filter(|_| !is_last)
        .map(|change| change.number);
    if args.json {
        let records: Vec<Value> = changes.iter().map(value).collect();
        return Ok(printer::json(&json!({ "records": records, "next": next })));
    }
    let row = |change: RunChange| {
        let RunChange {
            number,
            at,
            actor,
            kind,
            run,
            reason,
            before: _,
        } = change;
        vec![
            number.to_string(),
            at.rfc3339(),
            actor,
            kind.word().into(),
            run.to_string(),
            reason,
        ]
    };
    let header = ["number", "time", "actor", "action", "run", "reason"];
    let exit = printer::table(&header, changes.into_iter().map(row));
    if let Some(next) = next {
        printer::message(&format!("older changes follow: --before {next}"));
    }
    Ok(exit)
}

fn value(change: &RunChange) -> Value {
    let RunChange {
        number,
        at,
        actor,
        kind,
        run,
        reason,
        before,
    } = change;
    let before: Option<Value> = before
        .as_ref()
        .and_then(|line| serde_json::from_str(line).ok());
    json!({
        "number": number, "at": at.rfc3339(), "actor": actor, "action": kind.word(), "run": run.as_str(),
        "reason": reason, "before": before
    })
}
