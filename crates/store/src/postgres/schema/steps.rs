//! The tables, as a list of steps: first the tables of this engine, then those that both engines have.
//!
//! A released step is never changed. A step only adds: the previous release runs and restarts on the tables of this one.
//! A step that breaks that raises `compatible_from` in `site`, and releases that know fewer steps refuse to start.
//!
//! Text is compared by bytes (`COLLATE "C"`), so that ids have the same order here and in the program. Times are
//! milliseconds since 1970.

use crate::sql::steps::SHARED;

/// The format of the tables that this program requires.
pub(crate) const FORMAT: usize = STEPS.len();

/// The steps; the format of a schema is the number of applied steps.
pub(crate) const STEPS: &[&str] = &[OWN, SHARED];

const OWN: &str = r#"
CREATE TABLE {schema}.applications (
    id         text COLLATE "C" PRIMARY KEY,
    name       text   NOT NULL,
    tier       text   NOT NULL,
    own_minute bigint,
    own_day    bigint,
    contact    text,
    note       text,
    created_at bigint NOT NULL,
    url        text    -- the website
);

CREATE TABLE {schema}.keys (
    digest       bytea  PRIMARY KEY,
    application  text COLLATE "C" NOT NULL REFERENCES {schema}.applications (id),
    shown        text   NOT NULL,
    created_at   bigint NOT NULL,
    expires_at   bigint,
    revoked_at   bigint,
    last_used_at bigint,
    name         text    -- given by its owner
) WITH (fillfactor = 80);
CREATE INDEX keys_by_application ON {schema}.keys (application);

CREATE TABLE {schema}.audit (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at          bigint NOT NULL,
    who         text   NOT NULL,
    what        text   NOT NULL,
    application text COLLATE "C" NOT NULL,
    detail      text   NOT NULL
);
CREATE INDEX audit_by_application ON {schema}.audit (application, id);

CREATE TABLE {schema}.ledger_days (
    day         date   NOT NULL,
    application text COLLATE "C" NOT NULL,
    granted     bigint NOT NULL DEFAULT 0, -- units granted to gateways and not returned
    PRIMARY KEY (day, application)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE {schema}.calendar (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    day      date NOT NULL, -- the current day; every earlier day is closed
    own_oid  oid,  -- OID of this table when it was created or restored, since a dump creates another one; 0: commits are missing
    cluster  text, -- the server's system identifier then, if it was disclosed
    restored_at bigint NOT NULL DEFAULT 0, -- the last `store restore`; milliseconds since 1970
    seen_at     bigint NOT NULL DEFAULT 0  -- the last report of a gateway; only grows
);
INSERT INTO {schema}.calendar (day) VALUES ('1970-01-01');
UPDATE {schema}.calendar SET own_oid = tableoid, cluster = {cluster};

CREATE TABLE {schema}.site ( -- locked by every change, so that the numbers of audit records are in commit order
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    id       uuid NOT NULL DEFAULT gen_random_uuid(), -- identity of this data set
    format   integer NOT NULL,                        -- number of applied schema steps
    compatible_from integer NOT NULL                  -- a program must know at least this many steps
);
INSERT INTO {schema}.site (format, compatible_from) VALUES (1, 2);

CREATE TABLE {schema}.minute_pools ( -- buckets of minute limits, without the shares of gateways
    application text COLLATE "C" PRIMARY KEY,
    quota       bigint NOT NULL,
    tokens      bigint NOT NULL, -- millionths of a token at as_of
    as_of       bigint NOT NULL  -- microseconds since 1970
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE {schema}.minute_shares ( -- parts of minute limits that gateways use on their own
    application text COLLATE "C" NOT NULL,
    node        bigint  NOT NULL,
    round       bigint  NOT NULL,               -- number of the newest report of the gateway
    capacity    bigint  NOT NULL,
    ends_at     bigint  NOT NULL,               -- microseconds since 1970
    is_recalled boolean NOT NULL DEFAULT false, -- another gateway needs it
    PRIMARY KEY (application, node)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX minute_shares_by_node ON {schema}.minute_shares (node);

CREATE TABLE {schema}.nodes ( -- gateway processes, for information; a process that stops removes its row
    node              bigint PRIMARY KEY,
    name              text   NOT NULL,
    version           text   NOT NULL,
    started_at        bigint NOT NULL,
    last_seen_at      bigint NOT NULL,
    units_held        bigint NOT NULL, -- units of the day leased and not delivered
    usage_recorded_at bigint NOT NULL  -- requests answered before this time are in request_nodes
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE {schema}.documents ( -- documents of backends that gateways share; times are microseconds since 1970
    scope      text COLLATE "C" NOT NULL,      -- the backend
    name       text COLLATE "C" NOT NULL,
    claim      bigint  NOT NULL,               -- number of the newest claim; only grows, and is at least the time of the claim
    owner      bigint,                         -- gateway process that fetches the document
    held_until bigint,                         -- deadline of the claim; without an owner, when the next claim is allowed
    has_failed boolean NOT NULL DEFAULT false, -- the last fetch failed
    published  bigint  NOT NULL DEFAULT 0,     -- number of the claim that published the content; 0 without one
    confirmed  bigint,                         -- when the backend last confirmed the content
    due        bigint,
    label      text,
    PRIMARY KEY (scope, name)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

CREATE UNLOGGED TABLE {schema}.document_contents ( -- empty after a crash or a failover, and then fetched again
    scope   text COLLATE "C" NOT NULL,
    name    text COLLATE "C" NOT NULL,
    number  bigint NOT NULL,
    content bytea  NOT NULL, -- not compressed: that would take processor time of the database
    PRIMARY KEY (scope, name)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0,
        toast.autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_cost_delay = 0);
ALTER TABLE {schema}.document_contents ALTER COLUMN content SET STORAGE EXTERNAL;

CREATE TABLE {schema}.backend_refreshes ( -- the newest refresh of each backend; times are microseconds since 1970
    scope    text COLLATE "C" PRIMARY KEY,
    detected bigint NOT NULL,
    expected bigint NOT NULL -- the next expected refresh
);
"#;

/// The comments behind the columns and tables of a step, as statements that store them.
pub(super) fn comments(step: &str) -> String {
    let mut table = "";
    let mut statements = String::new();
    for line in step.lines() {
        let (code, comment) = line.split_once(" -- ").unwrap_or((line, ""));
        let subject = if code.ends_with('(') || code.starts_with("ALTER TABLE") {
            table = code
                .trim_end_matches(" (")
                .rsplit(' ')
                .next()
                .unwrap_or_default();
            format!("TABLE {table}")
        } else {
            let column = code
                .trim_start()
                .trim_start_matches("ADD COLUMN ")
                .split(' ')
                .next();
            format!("COLUMN {table}.{}", column.unwrap_or_default())
        };
        if !comment.is_empty() {
            let text = comment.replace('\'', "''");
            statements.extend([
                "COMMENT ON ",
                subject.as_str(),
                " IS '",
                text.as_str(),
                "';\n",
            ]);
        }
    }
    statements
}
