//! Records of incidents and scan positions as lines of an export: parsing, with the path of every error, and writing.

use serde::{Deserialize, Serialize};

use scoregate_base::clock::Wall;
use scoregate_base::routes::ModelId;

use super::incident::{Incident, IncidentKind, IncidentRecord, ScanPosition};
use crate::figures::Severity;
use crate::hour::Hour;
use crate::run::{BadRun, ChangeAuthor, ChangeReason, RunId, actor, instant, word};

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct IncidentLine {
    incident: WrittenIncident,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct WrittenIncident {
    id: String,
    revision: u32,
    model: String,
    kind: String,
    opened_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    resolved_at: Option<String>,
    severity: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    baseline: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mean: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lowest: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    recorded_at: String,
    last_run: String,
    last_run_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retracted_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ScanPositionLine {
    incident_scan: WrittenPosition,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct WrittenPosition {
    model: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    round_at: Option<String>,
    hour_at: String,
}

impl IncidentRecord {
    /// Parses a line; `now` limits its times.
    pub(crate) fn read(line: &str, now: Wall) -> Result<Self, BadRun> {
        let IncidentLine { incident } = BadRun::parse(line)?;
        incident.read(now).map_err(|bad| bad.within("incident"))
    }

    /// Writes it as a line of an export.
    pub fn write(&self) -> String {
        let Self {
            model,
            revision,
            incident: one,
            recorded,
            last_run: (last_run, last_run_at),
            retraction,
        } = self;
        let retraction = retraction.as_ref();
        let incident = WrittenIncident {
            id: self.id(),
            revision: *revision,
            model: model.to_string(),
            kind: one.kind.word().into(),
            opened_at: one.opened.rfc3339(),
            resolved_at: one.resolved.map(Wall::rfc3339),
            severity: one.severity.word().into(),
            baseline: one.baseline,
            mean: one.mean,
            lowest: one.lowest,
            method: one.method.clone(),
            recorded_at: recorded.rfc3339(),
            last_run: last_run.to_string(),
            last_run_at: last_run_at.rfc3339(),
            retracted_by: retraction.map(|retraction| retraction.actor.clone()),
            reason: retraction.map(|retraction| retraction.reason.as_str().into()),
        };
        serde_json::to_string(&IncidentLine { incident }).expect("it is text and finite numbers")
    }
}

impl WrittenIncident {
    fn read(self, now: Wall) -> Result<IncidentRecord, BadRun> {
        let model = model_id(&self.model)?;
        let opened = hour_at("openedAt", &self.opened_at, now)?.start();
        let resolved = self
            .resolved_at
            .as_deref()
            .map(|at| hour_at("resolvedAt", at, now))
            .transpose()?;
        let resolved = resolved.map(Hour::start);
        if resolved.is_some_and(|resolved| resolved < opened) {
            return Err(BadRun::new(
                "resolvedAt",
                "is before openedAt; write the end of the incident",
            ));
        }
        let kind = *word("kind", &self.kind, &IncidentKind::ALL, |kind| kind.word())?;
        let Self {
            baseline,
            mean,
            lowest,
            ..
        } = self;
        for (field, score) in [("baseline", baseline), ("mean", mean), ("lowest", lowest)] {
            check_score(kind, field, score)?;
        }
        let severity = *word("severity", &self.severity, &Severity::ALL, |severity| {
            severity.word()
        })?;
        let method = self.method;
        if method.as_ref().is_some_and(|method| !is_version(method)) {
            return Err(BadRun::new(
                "method",
                "write the version of a method, such as 4.0",
            ));
        }
        let incident = Incident {
            kind,
            severity,
            opened,
            resolved,
            lowest,
            mean,
            baseline,
            method,
        };
        let id = incident.id(model.as_str());
        if self.id != id {
            let problem = format!("is not the id of this kind, model and openedAt; write {id}");
            return Err(BadRun::new("id", problem));
        }
        if self.revision == 0 {
            return Err(BadRun::new("revision", "is 0; write a number from 1"));
        }
        let last_run = RunId::new(&self.last_run)
            .ok_or_else(|| BadRun::new("lastRun", "write the id of the model's newest run"))?;
        let recorded = at("recordedAt", &self.recorded_at, now)?;
        let last_run = (last_run, at("lastRunAt", &self.last_run_at, now)?);
        let retraction = retraction(self.retracted_by.as_deref(), self.reason.as_deref())?;
        Ok(IncidentRecord {
            model,
            revision: self.revision,
            incident,
            recorded,
            last_run,
            retraction,
        })
    }
}

impl ScanPosition {
    /// Parses a line of an export; `now` limits its times.
    pub(crate) fn read(line: &str, now: Wall) -> Result<(ModelId, Self), BadRun> {
        let ScanPositionLine {
            incident_scan:
                WrittenPosition {
                    model,
                    round_at,
                    hour_at: hour,
                },
        } = BadRun::parse(line)?;
        let read = || {
            let model = model_id(&model)?;
            let round = round_at
                .as_deref()
                .map(|round| hour_at("roundAt", round, now))
                .transpose()?;
            Ok((
                model,
                Self {
                    round,
                    hour: Some(hour_at("hourAt", &hour, now)?),
                },
            ))
        };
        read().map_err(|bad: BadRun| bad.within("incidentScan"))
    }

    /// Writes the position of a model as a line of an export.
    pub fn write(self, model: &ModelId) -> String {
        let at = |hour: Hour| hour.start().rfc3339();
        let incident_scan = WrittenPosition {
            model: model.to_string(),
            round_at: self.round.map(at),
            hour_at: self.hour.map(at).unwrap_or_default(),
        };
        serde_json::to_string(&ScanPositionLine { incident_scan }).expect("it is text")
    }
}

fn is_version(text: &str) -> bool {
    text.split_once('.').is_some_and(|(major, minor)| {
        let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
        [major, minor]
            .into_iter()
            .all(|part| (1..4).contains(&part.len()) && is_number(part))
    })
}

fn model_id(text: &str) -> Result<ModelId, BadRun> {
    ModelId::new(text).ok_or_else(|| BadRun::new("model", "write the id of a model"))
}

/// An instant as stored, in milliseconds.
fn at(field: &str, text: &str, now: Wall) -> Result<Wall, BadRun> {
    let at = instant(text, now).map_err(|bad| BadRun {
        field: field.to_owned(),
        ..bad
    })?;
    Ok(Wall::from_millis(at.millis()))
}

fn hour_at(field: &str, text: &str, now: Wall) -> Result<Hour, BadRun> {
    let at = at(field, text, now)?;
    let hour = Hour::of(at);
    if hour.start() != at {
        return Err(BadRun::new(
            field,
            format!("{text:?} is not a full hour in UTC; write one"),
        ));
    }
    Ok(hour)
}

fn check_score(kind: IncidentKind, field: &str, score: Option<f64>) -> Result<(), BadRun> {
    let problem = match (kind, score) {
        (IncidentKind::Degradation, None) => "is missing; a degradation has one".to_owned(),
        (IncidentKind::Outage, Some(_)) if field != "baseline" => {
            "an outage does not have it; remove it".to_owned()
        }
        (_, Some(number)) if !(0.0..=100.0).contains(&number) => {
            format!("{number} is not a score; write a number from 0 to 100")
        }
        (_, Some(_) | None) => return Ok(()),
    };
    Err(BadRun::new(field, problem))
}

fn retraction(by: Option<&str>, reason: Option<&str>) -> Result<Option<ChangeAuthor>, BadRun> {
    match (by, reason) {
        (None, None) => Ok(None),
        (Some(by), Some(reason)) => Ok(Some(ChangeAuthor {
            actor: actor("retractedBy", by)?,
            reason: ChangeReason::new(reason)?,
        })),
        (Some(_), None) => Err(BadRun::new(
            "reason",
            "is missing; write why the incident is retracted",
        )),
        (None, Some(_)) => Err(BadRun::new(
            "retractedBy",
            "is missing; write the user who retracted it",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"incident":{"id":"degradation-m-1789995600","revision":2,"model":"m","kind":"degradation","openedAt":"2026-09-21T13:00:00Z","resolvedAt":"2026-09-21T21:00:00Z","severity":"warning","baseline":71.19999999999999,"mean":64.92345678901235,"lowest":63.1,"method":"4.0","recordedAt":"2026-09-21T22:00:00Z","lastRun":"r-17","lastRunAt":"2026-09-21T21:10:00Z","retractedBy":"cli:anna","reason":"wrong key"}}"#;
    const OUTAGE: &str = r#"{"incident":{"id":"outage-m-1789995600","revision":1,"model":"m","kind":"outage","openedAt":"2026-09-21T13:00:00Z","severity":"critical","recordedAt":"2026-09-21T19:00:00Z","lastRun":"r-17","lastRunAt":"2026-09-21T18:10:00Z"}}"#;
    const POSITION: &str = r#"{"incidentScan":{"model":"m","roundAt":"2026-09-21T18:00:00Z","hourAt":"2026-09-21T18:00:00Z"}}"#;

    fn now() -> Wall {
        Wall::parse_rfc3339("2026-11-21T12:00:00Z").unwrap()
    }

    #[test]
    fn records_of_incidents_round_trip_through_their_line_format() {
        for line in [LINE, OUTAGE] {
            assert_eq!(IncidentRecord::read(line, now()).unwrap().write(), line);
        }
        for line in [
            POSITION,
            &POSITION.replace("\"roundAt\":\"2026-09-21T18:00:00Z\",", ""),
        ] {
            let (model, position) = ScanPosition::read(line, now()).unwrap();
            assert_eq!(position.write(&model), line);
        }
    }

    #[test]
    fn every_error_of_a_record_names_its_field_and_the_remedy() {
        for (from, to, field, problem) in [
            (
                "degradation-m-1789995600",
                "d-1",
                "incident.id",
                "write degradation-m-1789995600",
            ),
            (
                "\"revision\":2",
                "\"revision\":0",
                "incident.revision",
                "write a number from 1",
            ),
            (
                "\"revision\":2",
                "\"revision\":-1",
                "incident.revision",
                "non-negative integer",
            ),
            (
                "\"model\":\"m\"",
                "\"model\":\"../m\"",
                "incident.model",
                "the id of a model",
            ),
            (
                "\"degradation\"",
                "\"fall\"",
                "incident.kind",
                "one of degradation, outage",
            ),
            (
                "T13:00:00Z",
                "T13:00:01Z",
                "incident.openedAt",
                "not a full hour",
            ),
            (
                "T21:00:00Z",
                "T12:00:00Z",
                "incident.resolvedAt",
                "is before openedAt",
            ),
            (
                "2026-09-21T21:00:00Z",
                "2027-09-21T21:00:00Z",
                "incident.resolvedAt",
                "in the future",
            ),
            (
                "warning",
                "mild",
                "incident.severity",
                "one of warning, critical",
            ),
            (
                "71.19999999999999",
                "171",
                "incident.baseline",
                "a number from 0 to 100",
            ),
            (
                "71.19999999999999",
                "\"71\"",
                "incident.baseline",
                "write a number",
            ),
            (
                ",\"mean\":64.92345678901235",
                "",
                "incident.mean",
                "a degradation has one",
            ),
            ("63.1", "1e999", "incident.lowest", "out of range"),
            ("\"4.0\"", "\"four\"", "incident.method", "such as 4.0"),
            ("T22:00:00Z", "", "incident.recordedAt", "write one such as"),
            ("\"r-17\"", "\"\"", "incident.lastRun", "newest run"),
            ("cli:anna", "", "incident.retractedBy", "visible ASCII"),
            (
                ",\"reason\":\"wrong key\"",
                "",
                "incident.reason",
                "write why",
            ),
            ("\"reason\"", "\"note\"", "incident.note", "unknown field"),
        ] {
            let line = LINE.replacen(from, to, 1);
            assert_ne!(line, LINE, "{from}");
            let bad = IncidentRecord::read(&line, now()).expect_err(&line);
            assert!(
                bad.field == field && bad.problem.contains(problem),
                "{to}: {bad}"
            );
        }
        let outage = OUTAGE.replace("\"recordedAt\"", "\"lowest\":60,\"recordedAt\"");
        assert_eq!(
            IncidentRecord::read(&outage, now()).unwrap_err().field,
            "incident.lowest"
        );
    }

    #[test]
    fn every_error_of_a_scan_position_names_its_field_and_the_remedy() {
        for (from, to, field, problem) in [
            ("\"m\"", "\"\"", "incidentScan.model", "the id of a model"),
            (
                "\"roundAt\":\"2026-09-21T18:00:00Z",
                "\"roundAt\":\"x",
                "incidentScan.roundAt",
                "write one such",
            ),
            (
                "\"hourAt\":\"2026-09-21T18:00",
                "\"hourAt\":\"2026-09-21T18:30",
                "incidentScan.hourAt",
                "full hour",
            ),
            (
                ",\"hourAt\":\"2026-09-21T18:00:00Z\"",
                "",
                "incidentScan",
                "the field `hourAt` is missing",
            ),
        ] {
            let line = POSITION.replacen(from, to, 1);
            assert_ne!(line, POSITION, "{from}");
            let bad = ScanPosition::read(&line, now()).expect_err(&line);
            assert!(
                bad.field == field && bad.problem.contains(problem),
                "{to}: {bad}"
            );
        }
    }
}
