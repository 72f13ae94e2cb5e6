//! The tables, as a list of migration steps: first the tables of this engine, then those that both engines have.
//!
//! A released step is never changed: files in that format exist. The comments inside the statements are for
//! operators; `.schema` shows them. There are no CHECK constraints: one record edited by hand must not make the
//! start-up check reject the whole file; it is skipped and reported instead.
//!
//! Digests are blobs, half the size of text in both trees; `hex(digest)` shows one, `digest = x'…'` finds one, and
//! `shown` is for people to tell keys apart. Text order equals the order of ids, because all have one length and
//! their digits are in ASCII order. Keys are sorted by application, and so is a day's ledger, so that all three
//! tables can be read in parallel.

use crate::sql::steps::SHARED;

/// The steps; a file's format is the number of applied steps.
pub(super) const STEPS: &[&str] = &[OWN, SHARED];

/// The format of the files that this program writes.
pub(crate) const FORMAT: usize = STEPS.len();

/// Ledger records have no reference to an application: one that is missing in a backup may be restored later, and its grants of
/// today must remain. The calendar has the current day, because units of the next day are granted before it begins.
const OWN: &str = "
CREATE TABLE applications (
    id         TEXT    NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL,
    tier       TEXT    NOT NULL,
    own_minute INTEGER,           -- requests a minute; NULL: as the tier
    own_day    INTEGER,           -- requests a UTC day; NULL: as the tier
    contact    TEXT,
    note       TEXT,
    created_at INTEGER NOT NULL,  -- milliseconds since 1970: datetime(created_at / 1000, 'unixepoch')
    url        TEXT               -- the website
) STRICT, WITHOUT ROWID;

CREATE TABLE keys (
    application  TEXT    NOT NULL REFERENCES applications (id),
    digest       BLOB    NOT NULL, -- SHA-256 of the key: hex(digest)
    shown        TEXT    NOT NULL, -- the key's first characters
    created_at   INTEGER NOT NULL, -- milliseconds since 1970, like the three below
    expires_at   INTEGER,
    revoked_at   INTEGER,
    last_used_at INTEGER,          -- the hour in which it was last used
    name         TEXT,             -- given by its owner
    PRIMARY KEY (application, digest)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX keys_by_digest ON keys (digest);

CREATE TABLE ledger (
    day         TEXT    NOT NULL, -- 2026-11-21, UTC; every day before the current one is closed
    application TEXT    NOT NULL,
    granted     INTEGER NOT NULL, -- units leased to gateways; what they did not spend is part of it
    PRIMARY KEY (day, application)
) STRICT, WITHOUT ROWID;

CREATE TABLE calendar (
    day TEXT NOT NULL -- the current day; every earlier day is closed
) STRICT;

CREATE TABLE audit (
    id          INTEGER NOT NULL PRIMARY KEY,
    at          INTEGER NOT NULL, -- milliseconds since 1970
    who         TEXT    NOT NULL,
    what        TEXT    NOT NULL,
    application TEXT    NOT NULL,
    detail      TEXT    NOT NULL
) STRICT;
CREATE INDEX audit_by_application ON audit (application, at);
";

/// Terms of the steps that both engines have, and those of this one.
const TERMS: [(&str, &str); 7] = [
    ("{schema}.", ""),
    (" COLLATE \"C\"", ""),
    (" bigint PRIMARY KEY", " integer NOT NULL PRIMARY KEY"),
    (" bigint", " integer"),
    (" boolean", " integer"),
    (" bytea", " blob"),
    (" date ", " text "),
];

/// The statements of a step. A table whose key is one number has it as its row id.
pub(super) fn statements(step: &str) -> String {
    if !step.contains("{schema}") {
        return step.to_owned();
    }
    let mut statements = String::new();
    let mut end = "";
    for line in step
        .lines()
        .filter(|line| !line.starts_with("UPDATE {schema}.site"))
    {
        if line.starts_with("CREATE TABLE") {
            end = ") STRICT, WITHOUT ROWID;";
        } else if line.contains(" bigint PRIMARY KEY") {
            end = ") STRICT;";
        }
        let own = TERMS
            .iter()
            .fold(line.to_owned(), |line, (term, own)| line.replace(term, own));
        statements.push_str(if line.starts_with(')') { end } else { &own });
        statements.push('\n');
    }
    statements
}
