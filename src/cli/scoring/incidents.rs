//! `scoregate scoring incidents`: lists recorded incidents, and retracts one.

use std::path::Path;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::cli::control::operator;
use crate::cli::exit::Exit;
use crate::cli::printer;
use scoregate_base::clock::{Clock, Wall};
use scoregate_scoring::{Archive, ChangeAuthor, ChangeReason, IncidentRecord, IncidentRetractionError};

use super::change::{missing, reason};
use super::import::notify_server;

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

pub(super) fn run(archive: &Path, data_dir: Option<&Path>, command: IncidentsCommand) -> Exit {
    if !archive.exists() {
        return missing(archive);
    }
    let done = match command {
        IncidentsCommand::List(args) => list(archive, &args),
        IncidentsCommand::Retract(args) => retract(archive, data_dir, args),
    };
    done.unwrap_or_else(|error| printer::fault(&error))
}

fn list(path: &Path, args: &IncidentListArgs) -> anyhow::Result<Exit> {
    let mut records = Vec::new();
    Archive::open(path, Clock::system().now().wall)?.each_incident_record(&mut |record| {
        records.push(record);
        true
    })?;
    if args.json {
        let records: Vec<Value> = records.iter().map(value).collect();
        return Ok(printer::json(&json!({ "records": records })));
    }
    // Revisions of one incident follow each other: the newest is shown, with the retraction, which is final.
    let incidents = records.chunk_by(|a, b| a.id() == b.id()).rev().filter_map(row);
    let header = ["incident", "severity", "opened", "resolved", "lowest", "baseline", "retracted by"];
    Ok(printer::table(&header, incidents))
}

fn row(revisions: &[IncidentRecord]) -> Option<Vec<String>> {
    let newest = revisions.last()?;
    let retraction = revisions.iter().find_map(IncidentRecord::retraction);
    let [lowest, baseline] =
        newest.published_scores().map(|score| score.map_or("-".into(), |score| score.to_string()));
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

fn retract(path: &Path, data_dir: Option<&Path>, args: RetractArgs) -> anyhow::Result<Exit> {
    let RetractArgs { id, reason, json } = args;
    let clock = Clock::system();
    let archive = Archive::open(path, clock.now().wall)?;
    let author = ChangeAuthor { actor: operator(), reason };
    match archive.retract_incident(&id, &author, clock.now().wall) {
        Ok(()) => {}
        Err(IncidentRetractionError::Archive(error)) => return Err(error.into()),
        Err(refused) => return Ok(printer::input_error(&refused.to_string())),
    }
    let text = if json { format!("{:#}\n", json!({ "retracted": id })) } else { format!("retracted {id}\n") };
    let exit = printer::data(&text);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.context("the server cannot be notified")?;
    runtime.block_on(notify_server(data_dir.into_iter().chain(path.parent())));
    Ok(exit)
}
