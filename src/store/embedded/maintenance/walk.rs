//! Iterates over a table, and from its other end if it breaks off.

use rusqlite::{Connection, Row};

use super::super::fault::StoreFault;
use super::dump_rows::{read_application, read_audit, read_key, read_ledger, read_requests, read_usage};
use super::owner_rows::read_owner;
use super::status_rows::{read_availability, read_status_message};
use crate::store::dump::DumpLine;

/// Columns and table; order, forwards and backwards; how a row is read.
type WalkQuery = (String, [&'static str; 2], fn(&Row<'_>) -> Result<DumpLine, StoreFault>);

/// A table.
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

/// The sums of all gateway processes.
const USAGE: &str = "day, application, sum(units) AS units
    FROM (SELECT * FROM usage_days UNION ALL SELECT day, application, units FROM usage_nodes)
    WHERE application IN (SELECT id FROM applications) GROUP BY day, application";
const NO_USAGE: &str = "'' AS day, '' AS application, 0 WHERE false";
const REQUESTS: &str = "day, application, endpoint, outcome, sum(requests)
    FROM (SELECT * FROM request_days
          UNION ALL
          SELECT day, application, endpoint, outcome, requests FROM request_nodes)
    WHERE application IN (SELECT id FROM applications) GROUP BY day, application, endpoint, outcome";
const NO_REQUESTS: &str = "'' AS day, '' AS application, '' AS endpoint, '' AS outcome, 0 WHERE false";

/// Successive minutes with one state. Their number minus their rank is the same.
const AVAILABILITY: &str = "min(minute) AS minute, count(*), is_ready, is_fresh
    FROM (SELECT minute, is_ready <> 0 AS is_ready, is_fresh <> 0 AS is_fresh,
                 minute - row_number() OVER (PARTITION BY is_ready <> 0, is_fresh <> 0 ORDER BY minute) AS period
          FROM status_minutes)
    GROUP BY is_ready, is_fresh, period";
const NO_AVAILABILITY: &str = "0 AS minute, 0, 0, 0 WHERE false";
const MESSAGES: &str = "id, incident, at, state, title, message FROM status_messages";
const NO_MESSAGES: &str = "0 AS id, 0, 0, '', '', '' WHERE false";

/// Owners, each with an array of the applications.
const OWNERS: &str = "id, mailbox, email, created_at, terms_version, terms_accepted_at, tier, suspended_at,
        (SELECT json_group_array(application) FROM (
             SELECT application FROM owned_applications WHERE owner = owners.id ORDER BY application))
    FROM owners";
const NO_OWNERS: &str = "'' AS id, '', '', 0, '', 0, NULL, NULL, '[]' WHERE false";

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

    /// Its columns and table; its order, forwards and backwards; how a row is read.
    fn parts(self, store: &Connection) -> WalkQuery {
        // A file of an older format lacks four columns and eight tables.
        let has = |sql: &str| store.prepare(sql).is_ok();
        let if_kept = |tables: &str, columns: &str, nothing: &str| {
            let is_kept = has(&format!("SELECT 1 FROM {tables} LIMIT 0"));
            if is_kept { columns.to_owned() } else { nothing.to_owned() }
        };
        match self {
            Self::Applications => {
                let url = if has("SELECT url FROM applications LIMIT 0") { "url" } else { "NULL" };
                let columns = "id, name, tier, own_minute, own_day, contact, note, created_at";
                (format!("{columns}, {url} FROM applications"), ["id", "id DESC"], read_application)
            }
            Self::Keys => {
                let used = if has("SELECT last_used_at FROM keys LIMIT 0") { "last_used_at" } else { "NULL" };
                let name = if has("SELECT name FROM keys LIMIT 0") { "name" } else { "NULL" };
                let columns = "application, digest, shown, created_at, expires_at, revoked_at";
                (
                    format!("{columns}, {used}, {name} FROM keys"),
                    ["application, digest", "application DESC, digest DESC"],
                    read_key,
                )
            }
            Self::Ledger => {
                let grace = if has("SELECT grace FROM ledger LIMIT 0") { "grace" } else { "0" };
                (
                    format!("day, application, granted, {grace} FROM ledger"),
                    ["day, application", "day DESC, application DESC"],
                    read_ledger,
                )
            }
            Self::Usage => (
                if_kept("usage_days, usage_nodes", USAGE, NO_USAGE),
                ["day, application", "day DESC, application DESC"],
                read_usage,
            ),
            Self::Requests => (
                if_kept("request_days, request_nodes", REQUESTS, NO_REQUESTS),
                [
                    "day, application, endpoint, outcome",
                    "day DESC, application DESC, endpoint DESC, outcome DESC",
                ],
                read_requests,
            ),
            Self::Audit => {
                ("id, at, who, what, application, detail FROM audit".into(), ["id", "id DESC"], read_audit)
            }
            Self::Availability => (
                if_kept("status_minutes", AVAILABILITY, NO_AVAILABILITY),
                ["minute", "minute DESC"],
                read_availability,
            ),
            Self::StatusMessages => {
                (if_kept("status_messages", MESSAGES, NO_MESSAGES), ["id", "id DESC"], read_status_message)
            }
            Self::Owners => {
                (if_kept("owners, owned_applications", OWNERS, NO_OWNERS), ["id", "id DESC"], read_owner)
            }
        }
    }

    const fn table(self) -> &'static str {
        match self {
            Self::Applications => "applications",
            Self::Keys => "keys",
            Self::Ledger => "ledger",
            Self::Usage => "usage",
            Self::Requests => "requests",
            Self::Audit => "audit",
            Self::Availability => "availability",
            Self::StatusMessages => "status messages",
            Self::Owners => "accounts",
        }
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
    let (_, [forwards, backwards], _) = kind.parts(store);
    let (before, broke) = walk.walk_in_order(forwards, None)?;
    if broke.is_some() {
        let (after, broke) = walk.walk_in_order(backwards, before.as_deref())?;
        if let Some(reason) = broke {
            let (before, after) = (before.unwrap_or("the first".into()), after.unwrap_or("the last".into()));
            walk.skipped.push(format!("{}: all between {before} and {after}: {reason}", kind.table()));
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
        let (columns, _, read) = self.kind.parts(self.store);
        let mut select = self.store.prepare(&format!("SELECT {columns} ORDER BY {order}"))?;
        let mut rows = select.query([])?;
        while let Some(row) = rows.next()? {
            let line = match read(row) {
                Err(StoreFault::Record(reason)) if self.damaged => {
                    self.skipped.push(format!("{}: {reason}", self.kind.table()));
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
