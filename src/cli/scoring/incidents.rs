//! `scoregate scoring incidents`: lists recorded incidents.

use clap::Args;
use serde_json::{Value, json};

use crate::cli::{command_error::CommandOutcome, printer};
use scoregate_base::clock::Wall;
use scoregate_scoring::IncidentRecord;

use super::archive_place::ArchivePlace;

pub const AFTER_HELP: &str = "Example:\n  scoregate scoring incidents --data-dir DIR\n\n\
Recorded incidents do not change when runs change. `scoregate scoring delete` withdraws an incident permanently.";

#[derive(Debug, Args)]
pub struct IncidentsArgs {
    /// Print all revisions and unrounded numbers as JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(place: &ArchivePlace, args: &IncidentsArgs) -> CommandOutcome {
    let mut records = Vec::new();
    place.open()?.each_incident_record(&mut |record| {
        records.push(record);
        true
    })?;
    if args.json {
        let records: Vec<Value> = records.iter().map(IncidentRecord::to_json).collect();
        return Ok(printer::json(&json!({ "records": records }))?);
    }
    // The revisions of an incident are consecutive.
    let incidents = records
        .chunk_by(|a, b| a.id() == b.id())
        .rev()
        .filter_map(<[IncidentRecord]>::last)
        .map(row);
    let header = [
        "incident",
        "severity",
        "opened",
        "resolved",
        "lowest",
        "baseline",
        "deleted by",
    ];
    Ok(printer::table(&header, incidents)?)
}

fn row(newest: &IncidentRecord) -> Vec<String> {
    let [lowest, baseline] = newest
        .published_scores()
        .map(|score| score.map_or("-".into(), |score| score.to_string()));
    let retraction = newest.retraction();
    vec![
        newest.id(),
        newest.severity_word().into(),
        newest.opened().rfc3339(),
        newest.resolved().map_or("-".into(), Wall::rfc3339),
        lowest,
        baseline,
        retraction.map_or("-".into(), |retraction| retraction.actor.clone()),
    ]
}
