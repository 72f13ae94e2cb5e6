//! An incident, its records, and what is known about the incidents of one model.
//!
//! A record is one revision of an incident. Records are never changed: a later state is a new revision.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use scoregate_base::clock::Wall;
use scoregate_base::routes::ModelId;
use scoregate_base::words;

use crate::figures::{Severity, points};
use crate::hour::{Hour, HourRange};
use crate::method::METHOD_VERSION;
use crate::run::{ChangeAuthor, RunId};

words! {
    pub(in crate) enum IncidentKind: word {
        /// Scores fell.
        Degradation = "degradation",
        /// Runs failed.
        Outage = "outage",
    }
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct Incident {
    pub kind: IncidentKind,
    pub severity: Severity,
    /// When it began.
    #[serde(rename = "openedAt")]
    pub opened: Wall,
    /// When it ended; `None` while it lasts.
    #[serde(rename = "resolvedAt", skip_serializing_if = "Option::is_none")]
    pub resolved: Option<Wall>,
    /// The lowest round during it, in points; `None` for an outage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lowest: Option<f64>,
    /// The mean of its rounds, in points; `None` for an outage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// The level before it, in points, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<f64>,
    /// The version of the method that found it.
    pub method: String,
}

/// A recorded revision of an incident.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IncidentRecord {
    pub(crate) model: ModelId,
    /// From 1.
    pub(crate) revision: u32,
    #[serde(flatten)]
    pub(crate) incident: Incident,
    /// The date of the snapshot, or of the retraction.
    #[serde(rename = "recordedAt")]
    pub(crate) recorded: Wall,
    /// The newest run of the model in the snapshot.
    pub(crate) last_run: RunId,
    /// Its time.
    pub(crate) last_run_at: Wall,
    /// The operator who deleted the incident, in the last revision.
    #[serde(flatten)]
    pub(crate) retraction: Option<ChangeAuthor>,
}

/// The newest round and hour of a model that were scanned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ScanPosition {
    /// The newest complete round.
    pub(crate) round: Option<Hour>,
    /// The newest hour with a run.
    pub(crate) hour: Option<Hour>,
}

/// The recorded incidents of one model, and the position of the previous scan. Empty before the first.
#[derive(Clone, Debug, Default)]
pub(crate) struct IncidentHistory {
    pub incidents: Vec<KnownIncident>,
    pub position: ScanPosition,
}

/// The newest revision of an incident.
#[derive(Clone, Debug)]
pub(crate) struct KnownIncident {
    pub incident: Incident,
    pub revision: u32,
    /// When it was retracted.
    pub retracted: Option<Wall>,
}

/// The result of a scan of one model.
#[derive(Clone, Debug)]
pub(crate) struct ScannedIncidents {
    /// The incidents of the window, retracted ones excepted, oldest first.
    pub published: Vec<Incident>,
    /// The revisions to record.
    pub revised: Vec<RevisedIncident>,
    /// The position after the scan.
    pub position: ScanPosition,
}

/// A revision of an incident that is not recorded yet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RevisedIncident {
    pub incident: Incident,
    pub revision: u32,
}

impl Incident {
    /// An incident that begins, as found by this version of the method.
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

    /// Its id, which never changes.
    pub(crate) fn id(&self, model: &str) -> String {
        format!("{}-{model}-{}", self.kind.word(), self.opened.seconds())
    }

    /// Whether it was opened within a range.
    pub(crate) fn opened_in(&self, range: HourRange) -> bool {
        range.holds(self.opened)
    }

    /// Whether it overlaps a range.
    pub(crate) fn overlaps(&self, range: HourRange) -> bool {
        self.resolved
            .is_none_or(|resolved| resolved > range.from.start())
            && self.opened < range.to.start()
    }

    /// Whether an hour is between its opening and its resolution.
    pub(crate) fn covers(&self, hour: Hour) -> bool {
        let at = hour.start();
        self.opened <= at && self.resolved.is_none_or(|resolved| at < resolved)
    }

    /// Whether a later state has to be recorded.
    fn differs(&self, later: &Self) -> bool {
        let state = |incident: &Self| {
            (
                incident.resolved,
                incident.severity,
                incident.lowest.map(points),
            )
        };
        state(self) != state(later)
    }
}

impl KnownIncident {
    /// Whether it lasts and is published.
    pub(crate) fn is_open(&self) -> bool {
        self.incident.resolved.is_none() && self.retracted.is_none()
    }

    /// Whether an hour is in a retracted incident, which ends with its retraction.
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

    /// The result of a scan that found these incidents, open ones of the history included.
    pub(crate) fn after(
        &self,
        mut found: Vec<Incident>,
        position: ScanPosition,
        window: HourRange,
    ) -> ScannedIncidents {
        let known = |one: &Incident| {
            self.of(one.kind)
                .find(|known| known.incident.opened == one.opened)
        };
        // The id of an ended or retracted incident is not used again.
        found.retain(|one| known(one).is_none_or(KnownIncident::is_open));
        let revise = |one: &Incident| {
            let revision = known(one).map_or(0, |known| known.revision);
            let is_changed = known(one).is_none_or(|known| known.incident.differs(one));
            is_changed.then(|| RevisedIncident {
                incident: one.clone(),
                revision: revision + 1,
            })
        };
        let revised = found.iter().filter_map(revise).collect();
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
}

impl IncidentRecord {
    /// The id of the incident.
    pub fn id(&self) -> String {
        self.incident.id(self.model.as_str())
    }

    /// All its fields, with the id.
    pub fn to_json(&self) -> Value {
        let mut json = json!(self);
        if let Some(fields) = json.as_object_mut() {
            fields.insert("id".into(), self.id().into());
        }
        json
    }

    /// The revision, from 1.
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

    /// When it ended; `None` while it lasts.
    pub fn resolved(&self) -> Option<Wall> {
        self.incident.resolved
    }

    /// The lowest score and the baseline, in points, as published.
    pub fn published_scores(&self) -> [Option<f64>; 2] {
        [self.incident.lowest, self.incident.baseline].map(|score| score.map(points))
    }

    /// The retraction, if this revision is one.
    pub fn retraction(&self) -> Option<&ChangeAuthor> {
        self.retraction.as_ref()
    }
}

impl ScanPosition {
    /// The newer of both.
    pub(crate) fn newest(self, other: Self) -> Self {
        Self {
            round: self.round.max(other.round),
            hour: self.hour.max(other.hour),
        }
    }
}
