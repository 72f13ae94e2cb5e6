//! The tables, as a list of migration steps.
//!
//! A released step is never changed: files in that format exist. The comments inside the statements are for
//! operators; `.schema` shows them. There are no CHECK constraints: one record edited by hand must not make the
//! start-up check reject the whole file; it is skipped and reported instead.
//!
//! Digests are blobs, half the size of text in both trees; `hex(digest)` shows one, `digest = x'…'` finds one, and
//! `shown` is for people to tell keys apart. Text order equals the order of ids, because all have one length and
//! their digits are in ASCII order. Keys are sorted by application, and so is a day's ledger, so that all three
//! tables can be read in parallel.

use crate::sql::steps::{
    CLOSED_APPLICATIONS, EVIDENCE_AND_WEBHOOKS, NOTICES, REQUESTS_AND_STATUS, SELF_SERVICE,
    WEBSITES,
};

/// The steps; a file's format is the number of applied steps.
pub(super) const STEPS: &[&str] = &[
    FIRST,
    SECOND,
    THIRD,
    FOURTH,
    FIFTH,
    REQUESTS_AND_STATUS,
    SELF_SERVICE,
    WEBSITES,
    CLOSED_APPLICATIONS,
    TENTH,
    NOTICES,
    EVIDENCE_AND_WEBHOOKS,
];

/// The format of the files that this program writes.
pub(crate) const FORMAT: usize = STEPS.len();

const FIRST: &str = "
CREATE TABLE applications (
    id         TEXT    NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL,
    tier       TEXT    NOT NULL,
    own_minute INTEGER,           -- requests a minute; NULL: as the tier
    own_day    INTEGER,           -- requests a UTC day; NULL: as the tier
    contact    TEXT,
    note       TEXT,
    created_at INTEGER NOT NULL   -- milliseconds since 1970: datetime(created_at / 1000, 'unixepoch')
) STRICT, WITHOUT ROWID;

CREATE TABLE keys (
    application TEXT    NOT NULL REFERENCES applications (id),
    digest      BLOB    NOT NULL, -- SHA-256 of the key: hex(digest)
    shown       TEXT    NOT NULL, -- the key's first characters
    created_at  INTEGER NOT NULL, -- milliseconds since 1970, like the two below
    expires_at  INTEGER,
    revoked_at  INTEGER,
    PRIMARY KEY (application, digest)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX keys_by_digest ON keys (digest);

CREATE TABLE ledger (
    day         TEXT    NOT NULL, -- 2026-11-21, UTC; every day before the newest is closed
    application TEXT    NOT NULL REFERENCES applications (id),
    granted     INTEGER NOT NULL, -- units leased to gateways; what they did not spend is part of it
    PRIMARY KEY (day, application)
) STRICT, WITHOUT ROWID;

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

const SECOND: &str = "
ALTER TABLE keys ADD COLUMN last_used_at INTEGER; -- the hour in which it was last used, milliseconds since 1970
ALTER TABLE ledger ADD COLUMN grace INTEGER NOT NULL DEFAULT 0; -- units promised to gateways for when they cannot write here
";

/// Ledger records survive their application: one that is missing in an older backup may be restored later, and its
/// grants of today must remain.
const THIRD: &str = "
ALTER TABLE ledger RENAME TO ledger_before;
CREATE TABLE ledger (
    day         TEXT    NOT NULL, -- 2026-11-21, UTC; every day before the newest is closed
    application TEXT    NOT NULL,
    granted     INTEGER NOT NULL, -- units leased to gateways; what they did not spend is part of it
    grace       INTEGER NOT NULL DEFAULT 0, -- units promised to gateways for when they cannot write here
    PRIMARY KEY (day, application)
) STRICT, WITHOUT ROWID;
INSERT INTO ledger SELECT day, application, granted, grace FROM ledger_before;
DROP TABLE ledger_before;
";

/// Totals of each gateway process, so that a repeated report is granted once. The current day has a record of its own,
/// because units of the next day are granted before it begins.
const FOURTH: &str = "
CREATE TABLE ledger_nodes (
    day         TEXT    NOT NULL,
    application TEXT    NOT NULL,
    node        INTEGER NOT NULL, -- one gateway process
    granted     INTEGER NOT NULL, -- each of these only grows
    returned    INTEGER NOT NULL,
    promised    INTEGER NOT NULL,
    released    INTEGER NOT NULL,
    PRIMARY KEY (day, application, node)
) STRICT, WITHOUT ROWID;

CREATE TABLE calendar (
    day TEXT NOT NULL -- the current day; every earlier day is closed
) STRICT;
";

/// Usage, for reports: totals of each gateway process while a day is open for reports, then one record for each
/// application and day.
const FIFTH: &str = "
CREATE TABLE usage_nodes (
    day         TEXT    NOT NULL,
    application TEXT    NOT NULL,
    node        INTEGER NOT NULL, -- one gateway process
    units       INTEGER NOT NULL, -- delivered by it; only grows
    PRIMARY KEY (day, application, node)
) STRICT, WITHOUT ROWID;

CREATE TABLE usage_days (
    day         TEXT    NOT NULL,
    application TEXT    NOT NULL,
    units       INTEGER NOT NULL, -- delivered by all
    PRIMARY KEY (day, application)
) STRICT, WITHOUT ROWID;
";

/// Shares of a day's grace, and names of keys. On days on which earlier versions promised grace to processes, nobody gets a share.
const TENTH: &str = "
CREATE TABLE grace_shares (
    day    TEXT    NOT NULL,
    share  INTEGER NOT NULL, -- its number, from 0
    shares INTEGER NOT NULL, -- the number of shares of the day
    token  INTEGER NOT NULL, -- the holder, and the processes that continue it
    life   INTEGER NOT NULL, -- the number of the process among them
    node   INTEGER NOT NULL, -- the process; 0: nobody gets it
    PRIMARY KEY (day, share)
) STRICT, WITHOUT ROWID;
INSERT INTO grace_shares SELECT DISTINCT day, 0, 1, 0, 0, 0 FROM ledger WHERE grace > 0;
ALTER TABLE keys ADD COLUMN name TEXT; -- given by its owner
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
