//! Incidents, their records, and the known incidents of one model.
//!
//! A record is one revision of an incident. Records are never changed. A later state is recorded as a new revision.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use scoregate_base::{clock::Wall, routes::ModelId, words};

use crate::{
    figures::{Severity, points},
    hour::{Hour, HourRange},
    method::METHOD_VERSION,
    run::{ChangeAuthor, RunId},
};

words! {
    pub(in crate) enum IncidentKind: word {
        /// Scores fell.
        Degradation = "degradation",
        /// Runs failed.
        Outage = "outage",
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct Incident {
    pub kind: IncidentKind,
    pub severity: Severity,
    /// When the incident began.
    #[serde(rename = "openedAt")]
    pub opened: Wall,
    /// When the incident ended; `None` while it is ongoing.
    #[serde(rename = "resolvedAt", skip_serializing_if = "Option::is_none")]
    pub resolved: Option<Wall>,
    /// The lowest score of a round during the incident, in points; `None` for an outage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lowest: Option<f64>,
    /// The mean score of the rounds during the incident, in points; `None` for an outage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// The level before the incident, in points, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<f64>,
    /// The version of the method that found the incident.
    pub method: String,
}

/// A recorded revision of an incident.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IncidentRecord {
    pub(crate) model: ModelId,
    /// The number of the revision, starting at 1.
    pub(crate) revision: u32,
    #[serde(flatten)]
    pub(crate) incident: Incident,
    /// The date of the snapshot, or of the retraction.
    #[serde(rename = "recordedAt")]
    pub(crate) recorded: Wall,
    /// The newest run of the model in the snapshot.
    pub(crate) last_run: RunId,
    /// The time of the newest run.
    pub(crate) last_run_at: Wall,
    /// In the last revision of a deleted incident: the operator who deleted it.
    #[serde(flatten)]
    pub(crate) retraction: Option<ChangeAuthor>,
}

/// The newest scanned round and hour of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScanPosition {
    /// The newest complete round.
    pub(crate) round: Option<Hour>,
    /// The newest hour with a run.
    pub(crate) hour: Option<Hour>,
}

/// The recorded incidents of one model, and the position of the previous scan. Both are empty before the first scan.
#[derive(Clone, Debug, Default)]
pub struct IncidentHistory {
    pub incidents: Vec<KnownIncident>,
    pub position: ScanPosition,
}

/// The newest revision of an incident.
#[derive(Clone, Debug)]
pub struct KnownIncident {
    pub incident: Incident,
    pub revision: u32,
    /// When the incident was retracted, if it was.
    pub retracted: Option<Wall>,
}

/// The result of a scan of one model.
#[derive(Clone, Debug)]
pub struct ScannedIncidents {
    /// The incidents of the window except retracted ones, oldest first.
    pub published: Vec<Incident>,
    /// The revisions to record.
    pub revised: Vec<RevisedIncident>,
    /// The position after the scan.
    pub position: ScanPosition,
}

/// A revision of an incident that is not recorded yet.
#[derive(Clone, Debug, PartialEq)]
pub struct RevisedIncident {
    pub incident: Incident,
    pub revision: u32,
}

impl Incident {
    /// An incident that begins now, found by this version of the method.
    pub(crate) fn begun(kind: IncidentKind, opened: Hour, baseline: Option<f64>) -> Self {
        let severity = Severity::Warning;
        let method = METHOD_VERSION.into();
        Self {
            kind,
            severity,
            opened: opened.start(),
            resolved: None,
            lowest: None,
            mean: None,
            baseline,
            method,
        }
    }

    /// The id of the incident, which never changes.
    pub(crate) fn id(&self, model: &str) -> String {
        format!("{}-{model}-{}", self.kind.word(), self.opened.seconds())
    }

    /// Whether the incident was opened within a range.
    pub(crate) fn opened_in(&self, range: HourRange) -> bool {
        range.holds(self.opened)
    }

    /// Whether the incident overlaps a range.
    pub(crate) fn overlaps(&self, range: HourRange) -> bool {
        self.resolved
            .is_none_or(|resolved| resolved > range.from.start())
            && self.opened < range.to.start()
    }

    /// Whether an hour is between the start and the end of the incident.
    pub(crate) fn covers(&self, hour: Hour) -> bool {
        let at = hour.start();
        self.opened <= at && self.resolved.is_none_or(|resolved| at < resolved)
    }

    /// Whether `later` differs enough to be recorded.
    fn differs(&self, later: &Self) -> bool {
        self.resolved != later.resolved
            || self.severity != later.severity
            || self.lowest.map(points) != later.lowest.map(points)
    }
}

impl KnownIncident {
    /// Whether the incident is ongoing and published.
    pub(crate) fn is_open(&self) -> bool {
        self.incident.resolved.is_none() && self.retracted.is_none()
    }

    /// Whether an hour is within a retracted incident, which ends when it is retracted.
    pub(crate) fn is_retracted_at(&self, hour: Hour) -> bool {
        self.retracted.is_some_and(|retracted| {
            let is_resolved = self.incident.resolved.is_some();
            self.incident.covers(hour) && (is_resolved || hour.start() < retracted)
        })
    }
}

impl IncidentHistory {
    /// The incidents of a kind.
    pub(crate) fn of(&self, kind: IncidentKind) -> impl Iterator<Item = &KnownIncident> {
        self.incidents
            .iter()
            .filter(move |known| known.incident.kind == kind)
    }

    /// The result of a scan that found these incidents, including open ones from the history.
    pub(crate) fn after(
        &self,
        mut found: Vec<Incident>,
        position: ScanPosition,
        window: HourRange,
    ) -> ScannedIncidents {
        // The id of a resolved or retracted incident is not used again.
        found.retain(|one| self.known(one).is_none_or(KnownIncident::is_open));
        let revised = found
            .iter()
            .filter_map(|one| {
                let revision = self.known(one).map_or(0, |known| known.revision);
                let is_changed = self
                    .known(one)
                    .is_none_or(|known| known.incident.differs(one));
                is_changed.then(|| RevisedIncident {
                    incident: one.clone(),
                    revision: revision + 1,
                })
            })
            .collect();
        let ended = self
            .incidents
            .iter()
            .filter(|known| known.retracted.is_none() && !known.is_open());
        let mut published: Vec<Incident> = ended
            .map(|known| known.incident.clone())
            .chain(found)
            .collect();
        published.retain(|incident| incident.overlaps(window));
        published.sort_by_key(|incident| (incident.opened, incident.kind.word()));
        ScannedIncidents {
            published,
            revised,
            position,
        }
    }

    fn known(&self, one: &Incident) -> Option<&KnownIncident> {
        self.of(one.kind)
            .find(|known| known.incident.opened == one.opened)
    }
}

impl IncidentRecord {
    /// The id of the incident.
    pub fn id(&self) -> String {
        self.incident.id(self.model.as_str())
    }

    /// All fields of the record, including the id.
    pub fn to_json(&self) -> Value {
        let mut json = json!(self);
        if let Some(fields) = json.as_object_mut() {
            fields.insert("id".into(), self.id().into());
        }
        json
    }

    /// The number of the revision, starting at 1.
    pub fn revision(&self) -> u32 {
        self.revision
    }

    /// `warning` or `critical`.
    pub fn severity_word(&self) -> &'static str {
        self.incident.severity.word()
    }

    /// When the incident began.
    pub fn opened(&self) -> Wall {
        self.incident.opened
    }

    /// When the incident ended; `None` while it is ongoing.
    pub fn resolved(&self) -> Option<Wall> {
        self.incident.resolved
    }

    /// The published lowest score and baseline, in points.
    pub fn published_scores(&self) -> [Option<f64>; 2] {
        [self.incident.lowest, self.incident.baseline].map(|score| score.map(points))
    }

    /// The retraction, if this revision retracts the incident.
    pub fn retraction(&self) -> Option<&ChangeAuthor> {
        self.retraction.as_ref()
    }
}

impl ScanPosition {
    /// The newer of both positions.
    pub(crate) fn newest(self, other: Self) -> Self {
        Self {
            round: self.round.max(other.round),
            hour: self.hour.max(other.hour),
        }
    }
}
