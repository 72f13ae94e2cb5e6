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

/// The steps; a file's format is the number of applied steps.
pub(super) const STEPS: &[&str] =
    &[FIRST, SECOND, THIRD, FOURTH, FIFTH, SIXTH, SEVENTH, EIGHTH, NINTH, TENTH, ELEVENTH, TWELFTH];

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

/// Requests by endpoint and outcome, like usage; the minutes in which the service was up; and messages about incidents.
const SIXTH: &str = "
CREATE TABLE request_nodes (
    day         TEXT    NOT NULL,
    application TEXT    NOT NULL,
    endpoint    TEXT    NOT NULL,
    outcome     TEXT    NOT NULL,
    node        INTEGER NOT NULL, -- one gateway process
    requests    INTEGER NOT NULL, -- answered by it; only grows
    PRIMARY KEY (day, application, endpoint, outcome, node)
) STRICT, WITHOUT ROWID;

CREATE TABLE request_days (
    day         TEXT    NOT NULL,
    application TEXT    NOT NULL,
    endpoint    TEXT    NOT NULL,
    outcome     TEXT    NOT NULL,
    requests    INTEGER NOT NULL, -- answered by all
    PRIMARY KEY (day, application, endpoint, outcome)
) STRICT, WITHOUT ROWID;

CREATE TABLE status_minutes (
    minute   INTEGER NOT NULL PRIMARY KEY, -- minutes since 1970: datetime(minute * 60, 'unixepoch')
    is_ready INTEGER NOT NULL,             -- 1 if a gateway was ready
    is_fresh INTEGER NOT NULL              -- 1 if the data was not stale on a ready gateway
) STRICT;

CREATE TABLE status_messages (
    id       INTEGER NOT NULL PRIMARY KEY,
    incident INTEGER NOT NULL, -- the id of its first message
    at       INTEGER NOT NULL, -- milliseconds since 1970
    state    TEXT    NOT NULL, -- investigating, identified, monitoring or resolved
    title    TEXT    NOT NULL,
    message  TEXT    NOT NULL
) STRICT;
CREATE INDEX status_messages_by_incident ON status_messages (incident, id);
";

/// Owners who signed up, with their applications, links and sessions; and mail to be sent. Links and sessions are
/// stored as digests of their tokens.
const SEVENTH: &str = "
CREATE TABLE owners (
    id                TEXT    NOT NULL PRIMARY KEY,
    mailbox           TEXT    NOT NULL UNIQUE, -- the address without what mail servers ignore
    email             TEXT    NOT NULL,        -- the address as it was entered
    created_at        INTEGER NOT NULL,        -- milliseconds since 1970, like all times below
    terms_version     TEXT    NOT NULL,
    terms_accepted_at INTEGER NOT NULL,
    tier              TEXT,                    -- of new applications; NULL: the default
    suspended_at      INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE owned_applications (
    application TEXT NOT NULL PRIMARY KEY,
    owner       TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX owned_applications_by_owner ON owned_applications (owner);

CREATE TABLE sign_in_links (
    digest     BLOB    NOT NULL PRIMARY KEY, -- SHA-256 of the token
    mailbox    TEXT    NOT NULL,
    email      TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    used_at    INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX sign_in_links_by_mailbox ON sign_in_links (mailbox, created_at);
CREATE INDEX sign_in_links_by_expiry ON sign_in_links (expires_at);

CREATE TABLE owner_sessions (
    digest     BLOB    NOT NULL PRIMARY KEY, -- SHA-256 of the token
    owner      TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX owner_sessions_by_owner ON owner_sessions (owner);
CREATE INDEX owner_sessions_by_expiry ON owner_sessions (expires_at);

CREATE TABLE mail_queue (
    message_id TEXT    NOT NULL PRIMARY KEY,
    kind       TEXT    NOT NULL, -- sign_in or notice
    recipient  TEXT    NOT NULL,
    subject    TEXT    NOT NULL,
    text       TEXT    NOT NULL,
    html       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL, -- not sent after this time
    due_at     INTEGER NOT NULL, -- the next attempt; while one gateway sends it, when another one may
    attempts   INTEGER NOT NULL,
    last_error TEXT
) STRICT, WITHOUT ROWID;
CREATE INDEX mail_queue_by_due ON mail_queue (due_at);
";

const EIGHTH: &str = "
ALTER TABLE applications ADD COLUMN url TEXT; -- the website
";

/// Applications that count against the limit of their mailbox until the day ends. There is no address: the owner may have
/// deleted the account.
const NINTH: &str = "
CREATE TABLE closed_applications (
    mailbox_digest BLOB NOT NULL, -- SHA-256 of the mailbox of the owner
    application    TEXT NOT NULL,
    day            TEXT NOT NULL, -- the UTC day on which it was closed
    PRIMARY KEY (mailbox_digest, application)
) STRICT, WITHOUT ROWID;
CREATE INDEX closed_applications_by_day ON closed_applications (day);
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

/// Notices that owners chose, and those that were queued: a mail is queued once although its record in the queue is gone once
/// it was sent.
const ELEVENTH: &str = "
ALTER TABLE owners ADD COLUMN notices TEXT; -- chosen kinds of mail, such as quota_80,key_changed; NULL: those of the tier
CREATE TABLE notices (
    id TEXT    NOT NULL PRIMARY KEY, -- the message id of the mail, without its domain
    at INTEGER NOT NULL              -- when it was queued
) STRICT, WITHOUT ROWID;
CREATE INDEX notices_by_time ON notices (at);
";

/// Evidence of how applications use the service, whose keys are deleted after two days; limits that return; webhooks of owners.
const TWELFTH: &str = "
CREATE TABLE evidence_hours (
    hour        INTEGER NOT NULL, -- hours since 1970: datetime(hour * 3600, 'unixepoch')
    application TEXT    NOT NULL,
    node        INTEGER NOT NULL, -- one gateway process
    record      BLOB    NOT NULL, -- a version and fields of fixed size, until it is merged into its day
    PRIMARY KEY (hour, application, node)
) STRICT, WITHOUT ROWID;

CREATE TABLE evidence_days (
    day         INTEGER NOT NULL, -- days since 1970: date(day * 86400, 'unixepoch')
    application TEXT    NOT NULL,
    is_compact  INTEGER NOT NULL, -- 1 once the day has ended
    record      BLOB    NOT NULL, -- of all gateways
    PRIMARY KEY (day, application)
) STRICT, WITHOUT ROWID;
CREATE INDEX evidence_days_to_compact ON evidence_days (day) WHERE NOT is_compact;

CREATE TABLE evidence_keys (
    day      INTEGER NOT NULL PRIMARY KEY, -- days since 1970
    hash_key BLOB    NOT NULL              -- of the hashes in the records of the day
) STRICT;

CREATE TABLE limits_until (
    application TEXT    NOT NULL PRIMARY KEY,
    until       INTEGER NOT NULL, -- milliseconds since 1970; then these become the limits of the application:
    minute      INTEGER,          -- NULL: that of the tier
    day         INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE owner_webhooks (
    id          TEXT    NOT NULL PRIMARY KEY,
    owner       TEXT    NOT NULL,
    url         TEXT    NOT NULL,
    secret      TEXT    NOT NULL, -- readable: it signs messages
    old_secret  TEXT,             -- before the last rotation
    rotated_at  INTEGER,
    verified_at INTEGER,          -- when the receiver answered the challenge
    created_at  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX owner_webhooks_by_owner ON owner_webhooks (owner);
CREATE INDEX mail_queue_by_recipient ON mail_queue (recipient);
";
