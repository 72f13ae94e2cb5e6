//! Iterates over a table, and from its other end if it breaks off.

use rusqlite::Connection;

use super::super::fault::StoreFault;
use super::rows;
use crate::Description;
use crate::dump::DumpLine;

/// A table, and the lines of an export that have its rows.
pub(super) struct ExportedTable {
    /// The kind of the lines.
    pub(super) kind: &'static str,
    /// Columns and table.
    select: &'static str,
    /// The columns of its order.
    order: &'static str,
    /// Tables that a file of an older format lacks.
    later: Option<&'static str>,
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

/// All, in the order in which they can be written into an empty store.
pub(super) static TABLES: [ExportedTable; 9] = [
    ExportedTable { kind: "application", select: APPLICATIONS, order: "id", later: None },
    ExportedTable { kind: "key", select: KEYS, order: "application, digest", later: None },
    ExportedTable { kind: "ledger", select: LEDGER, order: "day, application", later: None },
    ExportedTable {
        kind: "usage",
        select: USAGE,
        order: "day, application",
        later: Some("usage_days, usage_nodes"),
    },
    ExportedTable {
        kind: "requests",
        select: REQUESTS,
        order: "day, application, endpoint, outcome",
        later: Some("request_days, request_nodes"),
    },
    ExportedTable { kind: "audit", select: AUDIT, order: "id", later: None },
    ExportedTable {
        kind: "availability",
        select: AVAILABILITY,
        order: "first",
        later: Some("status_minutes"),
    },
    ExportedTable { kind: "status_message", select: MESSAGES, order: "id", later: Some("status_messages") },
    ExportedTable { kind: "owner", select: OWNERS, order: "id", later: Some("owners, owned_applications") },
];

impl ExportedTable {
    /// Its columns and table in this file; `None` if the file lacks the table.
    fn columns(&self, store: &Connection) -> Option<String> {
        let has =
            |what: &str, tables: &str| store.prepare(&format!("SELECT {what} FROM {tables} LIMIT 0")).is_ok();
        if self.later.is_some_and(|tables| !has("1", tables)) {
            return None;
        }
        let list = |names: &[&str], table: &str| {
            let null = |name: &&str| if has(name, table) { "" } else { "NULL AS " };
            names.iter().map(|name| format!("{}{name}", null(name))).collect::<Vec<_>>().join(", ")
        };
        let columns = self.select.replace("{description}", &list(&Description::NAMES, "applications"));
        Some(columns.replace("{later}", &list(&LATER_COLUMNS, "keys")))
    }
}

/// Passes every record of a table to `take`, and returns what was left out. A table that breaks off is read from its
/// other end too, so lost records are between two that are named.
pub(super) fn walk(
    store: &Connection,
    table: &'static ExportedTable,
    damaged: bool,
    take: &mut dyn FnMut(DumpLine) -> Result<(), StoreFault>,
) -> Result<Vec<String>, StoreFault> {
    let mut walk = TableWalk { store, table, damaged, take, skipped: Vec::new() };
    let ExportedTable { kind: name, order, .. } = table;
    let (before, broke) = walk.walk_in_order(order, None)?;
    if broke.is_some() {
        let backwards = format!("{} DESC", order.replace(", ", " DESC, "));
        let (after, broke) = walk.walk_in_order(&backwards, before.as_deref())?;
        if let Some(reason) = broke {
            let (before, after) = (before.unwrap_or("the first".into()), after.unwrap_or("the last".into()));
            walk.skipped.push(format!("{name}: all between {before} and {after}: {reason}"));
        }
    }
    Ok(walk.skipped)
}

struct TableWalk<'w> {
    store: &'w Connection,
    table: &'static ExportedTable,
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
        let Some(columns) = self.table.columns(self.store) else { return Ok(()) };
        let line_kind = self.table.kind;
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
