//! `scoregate scoring incidents`: lists recorded incidents, and retracts one.

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::cli::command_error::{CommandError, CommandOutcome};
use crate::cli::control::operator;
use crate::cli::printer;
use crate::cli::serve::runtime_of_this_thread;
use scoregate_base::clock::{Clock, Wall};
use scoregate_scoring::{ChangeAuthor, ChangeReason, IncidentRecord, IncidentRetractionError};

use super::archive_place::ArchivePlace;
use super::change::reason;

pub(super) const AFTER_HELP: &str = "Examples:\n  scoregate scoring incidents list --data-dir DIR\n  \
scoregate scoring incidents retract degradation-m-1789995600 --reason 'wrong API key' --data-dir DIR\n\n\
Records of incidents do not change with the runs. A retracted incident is not published; a retraction is final.";

#[derive(Debug, Subcommand)]
pub(super) enum IncidentsCommand {
    /// List incidents, newest first.
    List(IncidentListArgs),
    /// Retract an incident: it is not published.
    Retract(RetractArgs),
}

#[derive(Debug, Args)]
pub(super) struct IncidentListArgs {
    /// Print all revisions and unrounded numbers as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(super) struct RetractArgs {
    /// Id of the incident.
    id: String,
    /// Reason for the record.
    #[arg(long, value_name = "TEXT", value_parser = reason)]
    reason: ChangeReason,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(place: &ArchivePlace, command: IncidentsCommand) -> CommandOutcome {
    match command {
        IncidentsCommand::List(args) => list(place, &args),
        IncidentsCommand::Retract(args) => retract(place, args),
    }
}

fn list(place: &ArchivePlace, args: &IncidentListArgs) -> CommandOutcome {
    let mut records = Vec::new();
    place.open()?.each_incident_record(&mut |record| {
        records.push(record);
        true
    })?;
    if args.json {
        let records: Vec<Value> = records.iter().map(value).collect();
        return Ok(printer::json(&json!({ "records": records })));
    }
    // Revisions of one incident follow each other: the newest is shown, with the retraction, which is final.
    let incidents = records
        .chunk_by(|a, b| a.id() == b.id())
        .rev()
        .filter_map(row);
    let header = [
        "incident",
        "severity",
        "opened",
        "resolved",
        "lowest",
        "baseline",
        "retracted by",
    ];
    Ok(printer::table(&header, incidents))
}

fn row(revisions: &[IncidentRecord]) -> Option<Vec<String>> {
    let newest = revisions.last()?;
    let retraction = revisions.iter().find_map(IncidentRecord::retraction);
    let [lowest, baseline] = newest
        .published_scores()
        .map(|score| score.map_or("-".into(), |score| score.to_string()));
    Some(vec![
        newest.id(),
        newest.severity_word().into(),
        newest.opened().rfc3339(),
        newest.resolved().map_or("-".into(), Wall::rfc3339),
        lowest,
        baseline,
        retraction.map_or("-".into(), |retraction| retraction.actor.clone()),
    ])
}

/// The record as in its line of an export.
fn value(record: &IncidentRecord) -> Value {
    let line: Value = serde_json::from_str(&record.write()).unwrap_or_default();
    line.get("incident").cloned().unwrap_or_default()
}

fn retract(place: &ArchivePlace, args: RetractArgs) -> CommandOutcome {
    let RetractArgs { id, reason, json } = args;
    let archive = place.open()?;
    let author = ChangeAuthor {
        actor: operator(),
        reason,
    };
    match archive.retract_incident(&id, &author, Clock::system().now().wall) {
        Ok(()) => {}
        Err(IncidentRetractionError::Archive(error)) => return Err(error.into()),
        Err(refused) => return Err(CommandError::Input(refused.to_string())),
    }
    let text = if json {
        format!("{:#}\n", json!({ "retracted": id }))
    } else {
        format!("retracted {id}\n")
    };
    let exit = printer::data(&text);
    let runtime = runtime_of_this_thread().context("the server cannot be notified")?;
    runtime.block_on(place.notify_server());
    Ok(exit)
}
