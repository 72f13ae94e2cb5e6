//! Iterates over a table, and from its other end if it breaks off.

use rusqlite::Connection;

use super::super::fault::StoreFault;
use super::rows;
use crate::Description;
use crate::dump::DumpLine;

#[derive(Clone, Copy)]
pub(super) enum TableKind {
    Applications,
    Keys,
    Ledger,
    Usage,
    Requests,
    Audit,
    Availability,
    StatusMessages,
    Owners,
}

/// Columns of keys that a file of an older format lacks.
const LATER_COLUMNS: [&str; 2] = ["last_used_at", "name"];

/// Columns and table. Usage and requests are the sums of all gateway processes. Availability has successive minutes with one
/// state: their number minus their rank is the same. Owners have an array of the applications.
const APPLICATIONS: &str = "id, name, tier, own_minute, own_day, created_at, {description} FROM applications";
const KEYS: &str = "application, digest, shown, created_at, expires_at, revoked_at, {later} FROM keys";
const LEDGER: &str = "day, application, granted, 0 AS grace FROM ledger";
const USAGE: &str = "day, application, sum(units) AS units
    FROM (SELECT * FROM usage_days UNION ALL SELECT day, application, units FROM usage_nodes)
    WHERE application IN (SELECT id FROM applications) GROUP BY day, application";
const REQUESTS: &str = "day, application, endpoint, outcome, sum(requests) AS requests
    FROM (SELECT * FROM request_days
          UNION ALL
          SELECT day, application, endpoint, outcome, requests FROM request_nodes)
    WHERE application IN (SELECT id FROM applications) GROUP BY day, application, endpoint, outcome";
const AUDIT: &str = "id AS number, at, who, what, application, detail FROM audit";
const AVAILABILITY: &str = "min(minute) * 60000 AS first, count(*) AS minutes, is_ready AS ready, is_fresh AS fresh
    FROM (SELECT minute, is_ready <> 0 AS is_ready, is_fresh <> 0 AS is_fresh,
                 minute - row_number() OVER (PARTITION BY is_ready <> 0, is_fresh <> 0 ORDER BY minute) AS period
          FROM status_minutes)
    GROUP BY is_ready, is_fresh, period";
const MESSAGES: &str = "id, incident, at, state, title, message FROM status_messages";
const OWNERS: &str = "id, mailbox, email, created_at, terms_version, terms_accepted_at, tier, suspended_at,
        (SELECT json_group_array(application) FROM (
             SELECT application FROM owned_applications WHERE owner = owners.id ORDER BY application)) AS applications
    FROM owners";

const BY_DAY: [&str; 2] = ["day, application", "day DESC, application DESC"];
const BY_ID: [&str; 2] = ["id", "id DESC"];

impl TableKind {
    /// In the order in which they can be written into an empty store.
    pub(super) const ALL: [Self; 9] = [
        Self::Applications,
        Self::Keys,
        Self::Ledger,
        Self::Usage,
        Self::Requests,
        Self::Audit,
        Self::Availability,
        Self::StatusMessages,
        Self::Owners,
    ];

    /// Its columns and table; its order, forwards and backwards; the kind of its lines.
    const fn parts(self) -> (&'static str, [&'static str; 2], &'static str) {
        match self {
            Self::Applications => (APPLICATIONS, BY_ID, "application"),
            Self::Keys => (KEYS, ["application, digest", "application DESC, digest DESC"], "key"),
            Self::Ledger => (LEDGER, BY_DAY, "ledger"),
            Self::Usage => (USAGE, BY_DAY, "usage"),
            Self::Requests => (
                REQUESTS,
                [
                    "day, application, endpoint, outcome",
                    "day DESC, application DESC, endpoint DESC, outcome DESC",
                ],
                "requests",
            ),
            Self::Audit => (AUDIT, BY_ID, "audit"),
            Self::Availability => (AVAILABILITY, ["first", "first DESC"], "availability"),
            Self::StatusMessages => (MESSAGES, BY_ID, "status_message"),
            Self::Owners => (OWNERS, BY_ID, "owner"),
        }
    }

    /// Tables that a file of an older format lacks.
    const fn later_tables(self) -> Option<&'static str> {
        match self {
            Self::Applications | Self::Keys | Self::Ledger | Self::Audit => None,
            Self::Usage => Some("usage_days, usage_nodes"),
            Self::Requests => Some("request_days, request_nodes"),
            Self::Availability => Some("status_minutes"),
            Self::StatusMessages => Some("status_messages"),
            Self::Owners => Some("owners, owned_applications"),
        }
    }

    /// Its columns and table in this file; `None` if the file lacks the table.
    fn columns(self, store: &Connection) -> Option<String> {
        let has =
            |what: &str, tables: &str| store.prepare(&format!("SELECT {what} FROM {tables} LIMIT 0")).is_ok();
        if self.later_tables().is_some_and(|tables| !has("1", tables)) {
            return None;
        }
        let list = |names: &[&str], table: &str| {
            let null = |name: &&str| if has(name, table) { "" } else { "NULL AS " };
            names.iter().map(|name| format!("{}{name}", null(name))).collect::<Vec<_>>().join(", ")
        };
        let columns = self.parts().0.replace("{description}", &list(&Description::NAMES, "applications"));
        Some(columns.replace("{later}", &list(&LATER_COLUMNS, "keys")))
    }
}

/// Passes every record of a table to `take`, and returns what was left out. A table that breaks off is read from its
/// other end too, so lost records are between two that are named.
pub(super) fn walk(
    store: &Connection,
    kind: TableKind,
    damaged: bool,
    take: &mut dyn FnMut(DumpLine) -> Result<(), StoreFault>,
) -> Result<Vec<String>, StoreFault> {
    let mut walk = TableWalk { store, kind, damaged, take, skipped: Vec::new() };
    let (_, [forwards, backwards], name) = kind.parts();
    let (before, broke) = walk.walk_in_order(forwards, None)?;
    if broke.is_some() {
        let (after, broke) = walk.walk_in_order(backwards, before.as_deref())?;
        if let Some(reason) = broke {
            let (before, after) = (before.unwrap_or("the first".into()), after.unwrap_or("the last".into()));
            walk.skipped.push(format!("{name}: all between {before} and {after}: {reason}"));
        }
    }
    Ok(walk.skipped)
}

struct TableWalk<'w> {
    store: &'w Connection,
    kind: TableKind,
    damaged: bool,
    take: &'w mut dyn FnMut(DumpLine) -> Result<(), StoreFault>,
    skipped: Vec<String>,
}

impl TableWalk<'_> {
    /// Iterates in one direction until the end, or until a record of this name. Returns the last record, and the
    /// error that ended it.
    fn walk_in_order(
        &mut self,
        order: &str,
        until: Option<&str>,
    ) -> Result<(Option<String>, Option<String>), StoreFault> {
        let mut last = None;
        match self.visit(order, until, &mut last) {
            Err(StoreFault::Sql(error)) if self.damaged => Ok((last, Some(error.to_string()))),
            outcome => outcome.map(|()| (last, None)),
        }
    }

    fn visit(
        &mut self,
        order: &str,
        until: Option<&str>,
        last: &mut Option<String>,
    ) -> Result<(), StoreFault> {
        let Some(columns) = self.kind.columns(self.store) else { return Ok(()) };
        let (_, _, line_kind) = self.kind.parts();
        let mut select = self.store.prepare(&format!("SELECT {columns} ORDER BY {order}"))?;
        let mut found = select.query([])?;
        while let Some(row) = found.next()? {
            let line = match rows::read(line_kind, row) {
                Err(StoreFault::Record(reason)) if self.damaged => {
                    self.skipped.push(format!("{line_kind}: {reason}"));
                    continue;
                }
                line => line?,
            };
            let label = line.label();
            if until == Some(label.as_str()) {
                return Ok(());
            }
            match (self.take)(line) {
                Err(StoreFault::Record(reason)) if self.damaged => {
                    self.skipped.push(format!("{label}: {reason}"));
                }
                taken => taken?,
            }
            *last = Some(label);
        }
        Ok(())
    }
}
