//! The lines of an export: JSON that any engine can write and read. The first line states the format; the last one
//! counts the others and contains the SHA-256 of everything before it, so that truncation is detected.
//!
//! Data and its two representations, a row and a line. Stores are read and written in `dump` and `load`.

use rusqlite::{Connection, Row, params};
use serde::{Deserialize, Serialize};

use super::super::fault::{StoreFault, is_conflict};
use super::super::{ledger, records};
use crate::clock::Wall;
use crate::keys::{ApplicationId, Digest};

pub(super) const FORMAT: &str = "scoregate-export";
/// The format version. An unknown kind of line is rejected, so a new kind needs a new version.
pub(super) const VERSION: u32 = 1;

/// The first line.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DumpHeader {
    pub(super) format: String,
    pub(super) version: u32,
    pub(super) made_at: String,
}

/// Any other line.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum DumpLine {
    Application(ApplicationLine),
    Key(KeyLine),
    Ledger(LedgerLine),
    Audit(AuditLine),
    End(DumpEnd),
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ApplicationLine {
    pub(super) id: String,
    name: String,
    tier: String,
    own_minute: Option<u32>,
    own_day: Option<u32>,
    contact: Option<String>,
    note: Option<String>,
    created_at: String,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeyLine {
    pub(super) application: String,
    pub(super) digest: String,
    shown: String,
    created_at: String,
    pub(super) expires_at: Option<String>,
    pub(super) revoked_at: Option<String>,
    last_used_at: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LedgerLine {
    pub(super) day: String,
    pub(super) application: String,
    pub(super) granted: u32,
    pub(super) grace: u32,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AuditLine {
    number: u64,
    at: String,
    who: String,
    what: String,
    application: String,
    detail: String,
}

/// The last line.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DumpEnd {
    #[serde(flatten)]
    pub(super) counts: RecordCounts,
    pub(super) sha256: String,
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
    /// Audit records.
    pub audit: u64,
}

impl RecordCounts {
    pub(super) const fn count(&mut self, line: &DumpLine) {
        match line {
            DumpLine::Application(_) => self.applications += 1,
            DumpLine::Key(_) => self.keys += 1,
            DumpLine::Ledger(_) => self.ledger += 1,
            DumpLine::Audit(_) => self.audit += 1,
            DumpLine::End(_) => {}
        }
    }
}

impl ApplicationLine {
    pub(super) fn read(row: &Row<'_>) -> Result<DumpLine, StoreFault> {
        let id = records::text(row, 0, "id")?;
        let read = records::described(row, &id)?;
        Ok(DumpLine::Application(Self {
            id,
            name: read.name,
            tier: read.tier,
            own_minute: read.own.minute,
            own_day: read.own.day,
            contact: read.contact,
            note: read.note,
            created_at: read.created_at.rfc3339(),
        }))
    }
}

impl KeyLine {
    pub(super) fn read(row: &Row<'_>) -> Result<DumpLine, StoreFault> {
        let (application, key) = (records::text(row, 0, "application")?, records::key(row)?);
        Ok(DumpLine::Key(Self {
            application,
            digest: key.digest.to_string(),
            shown: key.shown,
            created_at: key.created_at.rfc3339(),
            expires_at: key.expires_at.map(Wall::rfc3339),
            revoked_at: key.revoked_at.map(Wall::rfc3339),
            last_used_at: key.last_used_at.map(Wall::rfc3339),
        }))
    }
}

impl LedgerLine {
    pub(super) fn read(row: &Row<'_>) -> Result<DumpLine, StoreFault> {
        let units =
            |column, name| Ok::<_, StoreFault>(records::limit(row, column, name)?.unwrap_or_default());
        let (day, application) = (records::text(row, 0, "day")?, records::text(row, 1, "application")?);
        if ledger::read(&day).is_none() {
            return Err(StoreFault::Record(format!("{day:?} is not a day")));
        }
        Ok(DumpLine::Ledger(Self {
            day,
            application,
            granted: units(2, "granted")?,
            grace: units(3, "grace")?,
        }))
    }
}

impl AuditLine {
    pub(super) fn read(row: &Row<'_>) -> Result<DumpLine, StoreFault> {
        let number = records::number(row, 0, "id")?.and_then(|number| u64::try_from(number).ok());
        let at = records::instant(row, 1, "at")?;
        Ok(DumpLine::Audit(Self {
            number: number.ok_or_else(|| StoreFault::Record("its number is invalid".into()))?,
            at: at.unwrap_or_default().rfc3339(),
            who: records::text(row, 2, "who")?,
            what: records::text(row, 3, "what")?,
            application: records::text(row, 4, "application")?,
            detail: records::text(row, 5, "detail")?,
        }))
    }
}

impl DumpLine {
    /// A description that is unique among lines of its kind.
    pub(super) fn label(&self) -> String {
        match self {
            Self::Application(line) => format!("application {}", line.id),
            Self::Key(line) => {
                // The visible characters may be equal for two keys.
                let digest = line.digest.get(..16).unwrap_or_default();
                format!("key {} ({digest}…) of {}", line.shown, line.application)
            }
            Self::Ledger(line) => format!("ledger of {} for {}", line.application, line.day),
            Self::Audit(line) => format!("audit record {}", line.number),
            Self::End(_) => "the end".into(),
        }
    }

    /// The application that must exist for it.
    pub(super) fn owner(&self) -> Option<&str> {
        match self {
            Self::Key(line) => Some(&line.application),
            Self::Ledger(line) => Some(&line.application),
            Self::Application(_) | Self::Audit(_) | Self::End(_) => None,
        }
    }

    /// Writes it into a store.
    pub(super) fn insert(&self, store: &Connection) -> Result<(), StoreFault> {
        let inserted = match self {
            Self::Application(line) => {
                line.id.parse::<ApplicationId>().map_err(|error| bad("id", &error))?;
                store
                    .prepare_cached("INSERT INTO applications VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)")?
                    .execute(params![
                        line.id,
                        line.name,
                        line.tier,
                        line.own_minute,
                        line.own_day,
                        line.contact,
                        line.note,
                        millis(&line.created_at)?
                    ])
            }
            Self::Key(line) => insert_key(store, line)?,
            Self::Ledger(line) => {
                ledger::read(&line.day).ok_or_else(|| bad("day", &line.day))?;
                store
                    .prepare_cached(
                        "INSERT INTO ledger (day, application, granted, grace) VALUES (?1, ?2, ?3, ?4)",
                    )?
                    .execute(params![line.day, line.application, line.granted, line.grace])
            }
            Self::Audit(line) => {
                let number = i64::try_from(line.number).map_err(|error| bad("number", &error))?;
                store.prepare_cached("INSERT INTO audit VALUES (?1, ?2, ?3, ?4, ?5, ?6)")?.execute(params![
                    number,
                    millis(&line.at)?,
                    line.who,
                    line.what,
                    line.application,
                    line.detail
                ])
            }
            Self::End(_) => Ok(0),
        };
        match inserted {
            Err(error) if is_conflict(&error) => {
                Err(StoreFault::Record(format!("{}: {error}", self.label())))
            }
            other => Ok(other.map(drop)?),
        }
    }
}

fn insert_key(store: &Connection, line: &KeyLine) -> Result<rusqlite::Result<usize>, StoreFault> {
    let digest = Digest::from_hex(&line.digest).ok_or_else(|| bad("digest", &line.digest))?;
    let instant = |text: &Option<String>| text.as_deref().map(millis).transpose();
    let row = params![
        line.application,
        digest.as_bytes(),
        line.shown,
        millis(&line.created_at)?,
        instant(&line.expires_at)?,
        instant(&line.revoked_at)?,
        instant(&line.last_used_at)?
    ];
    Ok(store
        .prepare_cached(
            "INSERT INTO keys (application, digest, shown, created_at, expires_at, revoked_at, last_used_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(row))
}

/// A time as stored.
pub(super) fn millis(text: &str) -> Result<i64, StoreFault> {
    let at = Wall::parse_rfc3339(text).ok_or_else(|| bad("instant", &text))?;
    i64::try_from(at.millis()).map_err(|error| bad("instant", &error))
}

fn bad(name: &str, found: &dyn std::fmt::Display) -> StoreFault {
    StoreFault::Record(format!("{name}: {found}"))
}
