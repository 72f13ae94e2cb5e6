//! The lines of an export: JSON that any engine can write and read. The first line states the format; the last one
//! counts the others and contains the SHA-256 of everything before it, so that truncation is detected.
//!
//! Data only. Engines turn rows into lines and back.

use serde::{Deserialize, Serialize};

use crate::clock::{Day, Wall};
use crate::keys::{ApplicationId, Digest, OwnerId};
use crate::store::{DAY_MINUTES, IncidentState, check_website, minute_of};

pub(in crate::store) const FORMAT: &str = "scoregate-export";
/// The format version. An unknown kind of line is rejected, so a new kind needs a new version.
pub(in crate::store) const VERSION: u32 = 3;
/// The oldest version that can be read. It has no usage, and like version 2 no requests and nothing of the status page.
pub(in crate::store) const OLDEST: u32 = 1;

/// Maximum number of minutes in a line; more are never kept.
const MOST_MINUTES: u64 = 100 * DAY_MINUTES;

/// Maximum length of the name of an endpoint or outcome.
const MAX_NAME: usize = 64;

/// The first line.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::store) struct DumpHeader {
    pub(in crate::store) format: String,
    pub(in crate::store) version: u32,
    pub(in crate::store) made_at: String,
}

/// Any other line.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::store) enum DumpLine {
    Application(ApplicationLine),
    Key(KeyLine),
    Ledger(LedgerLine),
    Usage(UsageLine),
    Requests(RequestsLine),
    Audit(AuditLine),
    Availability(AvailabilityLine),
    StatusMessage(StatusMessageLine),
    Owner(OwnerLine),
    End(DumpEnd),
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::store) struct ApplicationLine {
    pub(in crate::store) id: String,
    pub(in crate::store) name: String,
    pub(in crate::store) tier: String,
    pub(in crate::store) own_minute: Option<u32>,
    pub(in crate::store) own_day: Option<u32>,
    #[serde(default)]
    pub(in crate::store) url: Option<String>,
    pub(in crate::store) contact: Option<String>,
    pub(in crate::store) note: Option<String>,
    pub(in crate::store) created_at: String,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::store) struct KeyLine {
    pub(in crate::store) application: String,
    pub(in crate::store) digest: String,
    pub(in crate::store) shown: String,
    /// Left out without a name, so that the previous release reads such an export.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::store) name: Option<String>,
    pub(in crate::store) created_at: String,
    pub(in crate::store) expires_at: Option<String>,
    pub(in crate::store) revoked_at: Option<String>,
    pub(in crate::store) last_used_at: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::store) struct LedgerLine {
    pub(in crate::store) day: String,
    pub(in crate::store) application: String,
    pub(in crate::store) granted: u32,
    pub(in crate::store) grace: u32,
}

/// Units delivered to an application on a day, by all gateways.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::store) struct UsageLine {
    pub(in crate::store) day: String,
    pub(in crate::store) application: String,
    pub(in crate::store) units: u64,
}

/// Requests of an application on a day to one endpoint with one outcome, answered by all gateways.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::store) struct RequestsLine {
    pub(in crate::store) day: String,
    pub(in crate::store) application: String,
    pub(in crate::store) endpoint: String,
    pub(in crate::store) outcome: String,
    pub(in crate::store) requests: u64,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::store) struct AuditLine {
    pub(in crate::store) number: u64,
    pub(in crate::store) at: String,
    pub(in crate::store) who: String,
    pub(in crate::store) what: String,
    pub(in crate::store) application: String,
    pub(in crate::store) detail: String,
}

/// Successive minutes in which the service was in one state.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::store) struct AvailabilityLine {
    pub(in crate::store) first: String,
    pub(in crate::store) minutes: u64,
    pub(in crate::store) ready: bool,
    pub(in crate::store) fresh: bool,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::store) struct StatusMessageLine {
    pub(in crate::store) id: u64,
    pub(in crate::store) incident: u64,
    pub(in crate::store) at: String,
    pub(in crate::store) state: String,
    pub(in crate::store) title: String,
    pub(in crate::store) message: String,
}

/// An owner who signed up, with the applications. Links, sessions and mail are not exported.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::store) struct OwnerLine {
    pub(in crate::store) id: String,
    pub(in crate::store) mailbox: String,
    pub(in crate::store) email: String,
    pub(in crate::store) created_at: String,
    pub(in crate::store) terms_version: String,
    pub(in crate::store) terms_accepted_at: String,
    pub(in crate::store) tier: Option<String>,
    pub(in crate::store) suspended_at: Option<String>,
    pub(in crate::store) applications: Vec<String>,
}

/// The last line.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(in crate::store) struct DumpEnd {
    #[serde(flatten)]
    pub(in crate::store) counts: RecordCounts,
    pub(in crate::store) sha256: String,
}

/// Number of records of each kind.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
pub struct RecordCounts {
    /// Applications.
    pub applications: u64,
    /// Keys.
    pub keys: u64,
    /// Ledger records: one per application and day.
    pub ledger: u64,
    /// Usage records: one per application and day.
    #[serde(default)]
    pub usage: u64,
    /// Request records: one per application, day, endpoint and outcome.
    #[serde(default)]
    pub requests: u64,
    /// Audit records.
    pub audit: u64,
    /// Periods in which the service was in one state.
    #[serde(default)]
    pub availability: u64,
    /// Status messages.
    #[serde(default)]
    pub status_messages: u64,
    /// Owners.
    #[serde(default)]
    pub owners: u64,
}

impl RecordCounts {
    pub(in crate::store) const fn count(&mut self, line: &DumpLine) {
        match line {
            DumpLine::Application(_) => self.applications += 1,
            DumpLine::Key(_) => self.keys += 1,
            DumpLine::Ledger(_) => self.ledger += 1,
            DumpLine::Usage(_) => self.usage += 1,
            DumpLine::Requests(_) => self.requests += 1,
            DumpLine::Audit(_) => self.audit += 1,
            DumpLine::Availability(_) => self.availability += 1,
            DumpLine::StatusMessage(_) => self.status_messages += 1,
            DumpLine::Owner(_) => self.owners += 1,
            DumpLine::End(_) => {}
        }
    }
}

impl DumpLine {
    /// A description that is unique among lines of its kind.
    pub(in crate::store) fn label(&self) -> String {
        match self {
            Self::Application(line) => format!("application {}", line.id),
            Self::Key(line) => {
                // The visible characters may be equal for two keys.
                let digest = line.digest.get(..16).unwrap_or_default();
                format!("key {} ({digest}…) of {}", line.shown, line.application)
            }
            Self::Ledger(line) => format!("ledger of {} for {}", line.application, line.day),
            Self::Usage(line) => format!("usage of {} on {}", line.application, line.day),
            Self::Requests(line) => {
                let RequestsLine { day, application, endpoint, outcome, .. } = line;
                format!("requests of {application} on {day} to {endpoint} with outcome {outcome}")
            }
            Self::Audit(line) => format!("audit record {}", line.number),
            Self::Availability(line) => format!("availability from {}", line.first),
            Self::StatusMessage(line) => format!("status message {}", line.id),
            Self::Owner(line) => format!("account {}", line.id),
            Self::End(_) => "the end".into(),
        }
    }

    /// Checks ids, digests, days and instants. Returns the first wrong one.
    pub(super) fn verify(&self) -> Result<(), String> {
        let instant = |name: &str, text: &str| match Wall::parse_rfc3339(text) {
            Some(_) => Ok(()),
            None => Err(format!("{name}: {text}")),
        };
        match self {
            Self::Application(line) => {
                line.id.parse::<ApplicationId>().map_err(|error| format!("id: {error}"))?;
                let url = line.url.as_deref().map_or(Ok(()), check_website);
                url.map_err(|error| format!("url: {error}"))?;
                instant("created_at", &line.created_at)
            }
            Self::Key(line) => {
                Digest::from_hex(&line.digest).ok_or_else(|| format!("digest: {}", line.digest))?;
                let optional = [&line.expires_at, &line.revoked_at, &line.last_used_at];
                let mut instants = optional.into_iter().flatten().chain([&line.created_at]);
                instants.try_for_each(|text| instant("instant", text))
            }
            Self::Ledger(LedgerLine { day, .. }) => verify_day(day),
            Self::Usage(line) => {
                i64::try_from(line.units).map_err(|error| format!("units: {error}"))?;
                verify_day(&line.day)
            }
            Self::Requests(line) => line.verify(),
            Self::Audit(line) => {
                i64::try_from(line.number).map_err(|error| format!("number: {error}"))?;
                instant("at", &line.at)
            }
            Self::Availability(line) => line.verify(),
            Self::StatusMessage(line) => {
                line.verify()?;
                instant("at", &line.at)
            }
            Self::Owner(line) => {
                line.id.parse::<OwnerId>().map_err(|error| format!("id: {error}"))?;
                let always = [&line.created_at, &line.terms_accepted_at];
                let mut instants = always.into_iter().chain(&line.suspended_at);
                instants.try_for_each(|text| instant("instant", text))
            }
            Self::End(_) => Ok(()),
        }
    }

    /// The application that must exist for it.
    pub(in crate::store) fn owner(&self) -> Option<&str> {
        match self {
            Self::Key(line) => Some(&line.application),
            Self::Ledger(line) => Some(&line.application),
            Self::Usage(line) => Some(&line.application),
            Self::Requests(line) => Some(&line.application),
            Self::Application(_)
            | Self::Audit(_)
            | Self::Availability(_)
            | Self::StatusMessage(_)
            | Self::Owner(_)
            | Self::End(_) => None,
        }
    }
}

impl RequestsLine {
    /// Checks names, day and number. Names of a newer release are accepted.
    pub(in crate::store) fn verify(&self) -> Result<(), String> {
        i64::try_from(self.requests).map_err(|error| format!("requests: {error}"))?;
        let is_name = |text: &str| {
            let mut bytes = text.bytes();
            (1..=MAX_NAME).contains(&text.len())
                && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        };
        for (name, text) in [("endpoint", &self.endpoint), ("outcome", &self.outcome)] {
            if !is_name(text) {
                return Err(format!("{name}: {text}"));
            }
        }
        verify_day(&self.day)
    }
}

impl AvailabilityLine {
    /// The number of its first minute.
    pub(in crate::store) fn first_minute(&self) -> Option<u64> {
        Wall::parse_rfc3339(&self.first).map(minute_of)
    }

    fn verify(&self) -> Result<(), String> {
        if self.first_minute().is_none() {
            return Err(format!("first: {}", self.first));
        }
        let is_kept = (1..=MOST_MINUTES).contains(&self.minutes);
        if is_kept { Ok(()) } else { Err(format!("minutes: {}", self.minutes)) }
    }
}

impl StatusMessageLine {
    fn verify(&self) -> Result<(), String> {
        i64::try_from(self.id).map_err(|error| format!("id: {error}"))?;
        i64::try_from(self.incident).map_err(|error| format!("incident: {error}"))?;
        IncidentState::parse(&self.state).map(drop).ok_or_else(|| format!("state: {}", self.state))
    }
}

fn verify_day(text: &str) -> Result<(), String> {
    Day::parse(text).map(drop).ok_or_else(|| format!("day: {text}"))
}
