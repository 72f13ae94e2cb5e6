//! The lines of an export: JSON that any engine can write and read. The first line states the format; the last one
//! counts the others and contains the SHA-256 of everything before it, so that truncation is detected.
//!
//! Data only. Engines turn rows into lines and back.

use serde::{Deserialize, Serialize};

use crate::{DAY_MINUTES, Description, IncidentState, minute_of};
use scoregate_base::clock::{Day, Wall};
use scoregate_base::keys::{ApplicationId, Digest, OwnerId, check_website};

pub(crate) const FORMAT: &str = "scoregate-export";
/// The format version. An unknown kind of line is rejected, so a new kind needs a new version.
pub(crate) const VERSION: u32 = 1;

/// Maximum number of minutes in a line; more are never kept.
const MOST_MINUTES: u64 = 100 * DAY_MINUTES;

/// Maximum length of the name of an endpoint or outcome.
const MAX_NAME: usize = 64;

/// The first line.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DumpHeader {
    pub(crate) format: String,
    pub(crate) version: u32,
    pub(crate) made_at: String,
}

/// Any other line.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DumpLine {
    Application(ApplicationLine),
    Key(KeyLine),
    Ledger(LedgerLine),
    Requests(RequestsLine),
    Audit(AuditLine),
    Availability(AvailabilityLine),
    StatusMessage(StatusMessageLine),
    Owner(OwnerLine),
    End(DumpEnd),
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApplicationLine {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) tier: String,
    pub(crate) own_minute: Option<u32>,
    pub(crate) own_day: Option<u32>,
    #[serde(flatten)]
    pub(crate) description: Description,
    pub(crate) created_at: String,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyLine {
    pub(crate) application: String,
    pub(crate) digest: String,
    pub(crate) shown: String,
    pub(crate) name: Option<String>,
    pub(crate) created_at: String,
    pub(crate) expires_at: Option<String>,
    pub(crate) revoked_at: Option<String>,
    pub(crate) last_used_at: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LedgerLine {
    pub(crate) day: String,
    pub(crate) application: String,
    pub(crate) granted: u32,
}

/// Requests of an application on a day to one endpoint with one outcome, answered by all gateways.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RequestsLine {
    pub(crate) day: String,
    pub(crate) application: String,
    pub(crate) endpoint: String,
    pub(crate) outcome: String,
    pub(crate) requests: u64,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AuditLine {
    pub(crate) number: u64,
    pub(crate) at: String,
    pub(crate) who: String,
    pub(crate) what: String,
    pub(crate) application: String,
    pub(crate) detail: String,
}

/// Successive minutes in which the service was in one state.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AvailabilityLine {
    pub(crate) first: String,
    pub(crate) minutes: u64,
    pub(crate) ready: bool,
    pub(crate) fresh: bool,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StatusMessageLine {
    pub(crate) id: u64,
    pub(crate) incident: u64,
    pub(crate) at: String,
    pub(crate) state: String,
    pub(crate) title: String,
    pub(crate) message: String,
}

/// An owner who signed up, with the applications. Links, sessions and mail are not exported.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OwnerLine {
    pub(crate) id: String,
    pub(crate) mailbox: String,
    pub(crate) email: String,
    pub(crate) created_at: String,
    pub(crate) terms_version: String,
    pub(crate) terms_accepted_at: String,
    pub(crate) tier: Option<String>,
    pub(crate) suspended_at: Option<String>,
    pub(crate) notices: Option<String>,
    pub(crate) applications: Vec<String>,
}

/// The last line.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DumpEnd {
    #[serde(flatten)]
    pub(crate) counts: RecordCounts,
    pub(crate) sha256: String,
}

/// Number of records of each kind.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(default)]
pub struct RecordCounts {
    /// Applications.
    pub applications: u64,
    /// Keys.
    pub keys: u64,
    /// Ledger records: one per application and day.
    pub ledger: u64,
    /// Request records: one per application, day, endpoint and outcome.
    pub requests: u64,
    /// Audit records.
    pub audit: u64,
    /// Periods in which the service was in one state.
    pub availability: u64,
    /// Status messages.
    pub status_messages: u64,
    /// Owners.
    pub owners: u64,
}

impl RecordCounts {
    pub(crate) const fn count(&mut self, line: &DumpLine) {
        match line {
            DumpLine::Application(_) => self.applications += 1,
            DumpLine::Key(_) => self.keys += 1,
            DumpLine::Ledger(_) => self.ledger += 1,
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
    pub(crate) fn label(&self) -> String {
        match self {
            Self::Application(line) => format!("application {}", line.id),
            Self::Key(line) => {
                // The visible characters may be equal for two keys.
                let digest = line.digest.get(..16).unwrap_or_default();
                format!("key {} ({digest}…) of {}", line.shown, line.application)
            }
            Self::Ledger(line) => format!("ledger of {} for {}", line.application, line.day),
            Self::Requests(line) => {
                let RequestsLine {
                    day,
                    application,
                    endpoint,
                    outcome,
                    ..
                } = line;
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
                line.id
                    .parse::<ApplicationId>()
                    .map_err(|error| format!("id: {error}"))?;
                let url = line
                    .description
                    .url
                    .as_deref()
                    .map_or(Ok(()), check_website);
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
            Self::Requests(line) => line.verify(),
            Self::Audit(line) => {
                i64::try_from(line.number).map_err(|error| format!("number: {error}"))?;
                instant("at", &line.at)
            }
            Self::Availability(line) => {
                line.first_minute()
                    .ok_or_else(|| format!("first: {}", line.first))?;
                let is_kept = (1..=MOST_MINUTES).contains(&line.minutes);
                if is_kept {
                    Ok(())
                } else {
                    Err(format!("minutes: {}", line.minutes))
                }
            }
            Self::StatusMessage(line) => {
                i64::try_from(line.id).map_err(|error| format!("id: {error}"))?;
                i64::try_from(line.incident).map_err(|error| format!("incident: {error}"))?;
                IncidentState::parse(&line.state)
                    .ok_or_else(|| format!("state: {}", line.state))?;
                instant("at", &line.at)
            }
            Self::Owner(line) => {
                line.id
                    .parse::<OwnerId>()
                    .map_err(|error| format!("id: {error}"))?;
                let always = [&line.created_at, &line.terms_accepted_at];
                let mut instants = always.into_iter().chain(&line.suspended_at);
                instants.try_for_each(|text| instant("instant", text))
            }
            Self::End(_) => Ok(()),
        }
    }

    /// The application that must exist for it.
    pub(crate) fn owner(&self) -> Option<&str> {
        match self {
            Self::Key(KeyLine { application, .. })
            | Self::Ledger(LedgerLine { application, .. })
            | Self::Requests(RequestsLine { application, .. }) => Some(application),
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
    pub(crate) fn verify(&self) -> Result<(), String> {
        i64::try_from(self.requests).map_err(|error| format!("requests: {error}"))?;
        let is_name = |text: &str| {
            let mut bytes = text.bytes();
            (1..=MAX_NAME).contains(&text.len())
                && bytes
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
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
    pub(crate) fn first_minute(&self) -> Option<u64> {
        Wall::parse_rfc3339(&self.first).map(minute_of)
    }
}

fn verify_day(text: &str) -> Result<(), String> {
    Day::parse(text)
        .map(drop)
        .ok_or_else(|| format!("day: {text}"))
}
