//! The lines of an export: JSON that any engine can write and read. The first line states the format; the last one
//! counts the others and contains the SHA-256 of everything before it, so that truncation is detected.
//!
//! Data only. Engines turn rows into lines and back.

use serde::{Deserialize, Serialize};

use crate::clock::{Day, Wall};
use crate::keys::{ApplicationId, Digest};

pub(in crate::store) const FORMAT: &str = "scoregate-export";
/// The format version. An unknown kind of line is rejected, so a new kind needs a new version.
pub(in crate::store) const VERSION: u32 = 2;
/// The oldest version that can be read. It has no usage.
pub(in crate::store) const OLDEST: u32 = 1;

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
    Audit(AuditLine),
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
    /// Audit records.
    pub audit: u64,
}

impl RecordCounts {
    pub(in crate::store) const fn count(&mut self, line: &DumpLine) {
        match line {
            DumpLine::Application(_) => self.applications += 1,
            DumpLine::Key(_) => self.keys += 1,
            DumpLine::Ledger(_) => self.ledger += 1,
            DumpLine::Usage(_) => self.usage += 1,
            DumpLine::Audit(_) => self.audit += 1,
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
            Self::Audit(line) => format!("audit record {}", line.number),
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
            Self::Audit(line) => {
                i64::try_from(line.number).map_err(|error| format!("number: {error}"))?;
                instant("at", &line.at)
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
            Self::Application(_) | Self::Audit(_) | Self::End(_) => None,
        }
    }
}

fn verify_day(text: &str) -> Result<(), String> {
    Day::parse(text).map(drop).ok_or_else(|| format!("day: {text}"))
}
