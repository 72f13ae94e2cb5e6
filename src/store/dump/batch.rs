//! Records of an export, gathered so that an engine can write many at once.

use std::io;

use super::lines::{
    ApplicationLine, AuditLine, AvailabilityLine, DumpLine, KeyLine, LedgerLine, OwnerLine, RequestsLine,
    StatusMessageLine, UsageLine,
};

/// Records by kind.
#[derive(Default)]
pub(in crate::store) struct DumpBatch {
    applications: Vec<ApplicationLine>,
    keys: Vec<KeyLine>,
    ledger: Vec<LedgerLine>,
    usage: Vec<UsageLine>,
    requests: Vec<RequestsLine>,
    audit: Vec<AuditLine>,
    availability: Vec<AvailabilityLine>,
    status_messages: Vec<StatusMessageLine>,
    owners: Vec<OwnerLine>,
}

impl DumpBatch {
    /// Adds a record.
    pub(in crate::store) fn push(&mut self, line: DumpLine) {
        match line {
            DumpLine::Application(line) => self.applications.push(line),
            DumpLine::Key(line) => self.keys.push(line),
            DumpLine::Ledger(line) => self.ledger.push(line),
            DumpLine::Usage(line) => self.usage.push(line),
            DumpLine::Requests(line) => self.requests.push(line),
            DumpLine::Audit(line) => self.audit.push(line),
            DumpLine::Availability(line) => self.availability.push(line),
            DumpLine::StatusMessage(line) => self.status_messages.push(line),
            DumpLine::Owner(line) => self.owners.push(line),
            DumpLine::End(_) => {}
        }
    }

    /// Number of records.
    pub(in crate::store) const fn len(&self) -> usize {
        self.applications.len()
            + self.keys.len()
            + self.ledger.len()
            + self.usage.len()
            + self.requests.len()
            + self.audit.len()
            + self.availability.len()
            + self.status_messages.len()
            + self.owners.len()
    }

    /// Arrays of JSON: applications, keys, ledger records, usage, requests, audit records, availability, status messages,
    /// owners.
    pub(in crate::store) fn into_json(self) -> io::Result<[String; 9]> {
        Ok([
            serde_json::to_string(&self.applications)?,
            serde_json::to_string(&self.keys)?,
            serde_json::to_string(&self.ledger)?,
            serde_json::to_string(&self.usage)?,
            serde_json::to_string(&self.requests)?,
            serde_json::to_string(&self.audit)?,
            serde_json::to_string(&self.availability)?,
            serde_json::to_string(&self.status_messages)?,
            serde_json::to_string(&self.owners)?,
        ])
    }
}
