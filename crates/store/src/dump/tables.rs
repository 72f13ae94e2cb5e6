//! The tables of an export, in the statements of both engines.

use crate::Description;

/// A table, and the lines of an export that have its rows.
pub(crate) struct ExportedTable {
    /// The kind of the lines.
    pub(crate) kind: &'static str,
    /// Columns and table.
    select: &'static str,
    /// The columns of its order.
    pub(crate) order: &'static str,
}

/// Columns and table. Requests are the sums of all gateway processes. Availability has successive minutes with one
/// state: their number minus their rank is the same; `AND true`, because a file may contain other numbers than 0 and 1. Owners
/// have an array of the applications.
const APPLICATIONS: &str =
    "id, name, tier, own_minute, own_day, created_at, {description} FROM {schema}.applications";
const KEYS: &str = "application, {digest}, shown, created_at, expires_at, revoked_at, last_used_at, name FROM {schema}.keys k";
const LEDGER: &str = "day, application, {granted} FROM {schema}.ledger_days";
const REQUESTS: &str = "day, application, endpoint, outcome, sum(requests) AS requests
    FROM (SELECT * FROM {schema}.request_days
          UNION ALL
          SELECT day, application, endpoint, outcome, requests FROM {schema}.request_nodes) r
    WHERE application IN (SELECT id FROM {schema}.applications) GROUP BY day, application, endpoint, outcome";
const AUDIT: &str = "id AS number, at, who, what, application, detail FROM {schema}.audit";
const AVAILABILITY: &str = "min(minute) * 60000 AS first, count(*) AS minutes, is_ready AS ready, is_fresh AS fresh
    FROM (SELECT minute, is_ready AND true AS is_ready, is_fresh AND true AS is_fresh,
                 minute - row_number() OVER (PARTITION BY is_ready AND true, is_fresh AND true ORDER BY minute) AS period
          FROM {schema}.status_minutes) m
    GROUP BY is_ready, is_fresh, period";
const MESSAGES: &str = "id, incident, at, state, title, message FROM {schema}.status_messages";
const OWNERS: &str = "id, mailbox, email, created_at, terms_version, terms_accepted_at, tier, suspended_at, notices,
        (SELECT coalesce({array}(application ORDER BY application), '[]') FROM {schema}.owned_applications WHERE owner = o.id)
            AS applications
    FROM {schema}.owners o";

/// All, in the order in which they can be written into an empty store.
pub(crate) static TABLES: [ExportedTable; 8] = [
    ExportedTable {
        kind: "application",
        select: APPLICATIONS,
        order: "id",
    },
    ExportedTable {
        kind: "key",
        select: KEYS,
        order: "application, k.digest",
    },
    ExportedTable {
        kind: "ledger",
        select: LEDGER,
        order: "day, application",
    },
    ExportedTable {
        kind: "requests",
        select: REQUESTS,
        order: "day, application, endpoint, outcome",
    },
    ExportedTable {
        kind: "audit",
        select: AUDIT,
        order: "id",
    },
    ExportedTable {
        kind: "availability",
        select: AVAILABILITY,
        order: "first",
    },
    ExportedTable {
        kind: "status_message",
        select: MESSAGES,
        order: "id",
    },
    ExportedTable {
        kind: "owner",
        select: OWNERS,
        order: "id",
    },
];

impl ExportedTable {
    /// Columns and table as an engine has them: `terms` are the digest, the granted units, and the function for an array.
    pub(crate) fn columns(&self, terms: [&str; 3]) -> String {
        let columns = self
            .select
            .replace("{description}", &Description::NAMES.join(", "));
        let names = ["{digest}", "{granted}", "{array}"];
        names
            .iter()
            .zip(terms)
            .fold(columns, |columns, (name, term)| columns.replace(name, term))
    }
}
