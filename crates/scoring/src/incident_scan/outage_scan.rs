//! Scans the hours of one model for outages: sequences of hours in which every run failed. Hours without runs are
//! skipped.

use super::incident::{Incident, IncidentHistory, IncidentKind, KnownIncident};
use crate::{figures::Severity, hour::Hour, method};

/// An hourly scan of one model.
pub struct OutageScan {
    /// Open outages, each with its number of hours.
    open: Vec<(Incident, u64)>,
    /// Outages that this scan resolved.
    resolved: Vec<Incident>,
    retracted: Vec<KnownIncident>,
    /// The end of the last recorded outage. Earlier hours do not count towards another outage.
    ended: Hour,
    /// The current sequence of hours in which every run failed: its first hour and the number of hours.
    sequence: Option<(Hour, u64)>,
}

impl OutageScan {
    /// A scan that continues from the records.
    pub(crate) fn after(history: &IncidentHistory) -> Self {
        let known = || history.of(IncidentKind::Outage);
        let open = known().filter(|known| known.is_open());
        let ends = known()
            .filter(|known| known.retracted.is_none())
            .filter_map(|one| one.incident.resolved);
        Self {
            open: open.map(|one| (one.incident.clone(), 0)).collect(),
            resolved: Vec::new(),
            retracted: known()
                .filter(|known| known.retracted.is_some())
                .cloned()
                .collect(),
            ended: ends.max().map_or(Hour::numbered(0), Hour::of),
            sequence: None,
        }
    }

    /// Adds the next hour, which was scanned before, so no outage opens or ends.
    pub(crate) fn recall_hour(&mut self, hour: Hour, runs: u32, failed: u32) {
        if runs > failed {
            self.sequence = None;
        } else if runs > 0 {
            self.count(hour);
        }
    }

    /// Scans the next hour. The level before an outage is computed only if an outage opens.
    pub(crate) fn observe_hour(
        &mut self,
        hour: Hour,
        runs: u32,
        failed: u32,
        baseline: impl FnOnce(Hour) -> Option<f64>,
    ) {
        self.recall_hour(hour, runs, failed);
        if runs > failed {
            self.resolved
                .extend(self.open.drain(..).map(|(incident, _)| {
                    let resolved = Some(hour.start().max(incident.opened));
                    Incident {
                        resolved,
                        ..incident
                    }
                }));
        } else if let Some((since, hours)) = self.sequence.take_if(|(_, hours)| {
            runs > 0 && self.open.is_empty() && *hours >= method::OUTAGE_HOURS
        }) {
            let incident = Incident::begun(IncidentKind::Outage, since, baseline(since));
            self.open.push((incident, hours));
        }
        for (incident, _) in self
            .open
            .iter_mut()
            .filter(|(_, hours)| *hours >= method::OUTAGE_CRITICAL_HOURS)
        {
            incident.severity = Severity::Critical;
        }
    }

    /// The newest states of the outages that were open before the scan or found by it.
    pub(crate) fn found(&self) -> impl Iterator<Item = Incident> {
        self.resolved
            .iter()
            .chain(self.open.iter().map(|(incident, _)| incident))
            .cloned()
    }

    /// Counts an hour in which every run failed.
    fn count(&mut self, hour: Hour) {
        if hour < self.ended
            || self
                .retracted
                .iter()
                .any(|known| known.is_retracted_at(hour))
        {
            return;
        }
        for (_, hours) in self
            .open
            .iter_mut()
            .filter(|(incident, _)| Hour::of(incident.opened) <= hour)
        {
            *hours += 1;
        }
        if self.open.is_empty() {
            self.sequence.get_or_insert((hour, 0)).1 += 1;
        }
    }
}
