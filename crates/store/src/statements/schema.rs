//! The tables of both engines, as a list of schema steps in PostgreSQL's dialect. The format is the number of applied
//! steps.
//!
//! A released step is never changed, because tables in that format exist. A step only adds to the tables, because the
//! previous release must be able to run and restart on them. A step that breaks this raises `compatible_from` in
//! `site`, and releases with fewer steps refuse to start.
//!
//! The comments after columns and tables are for operators: a database stores them as comments, and a file stores them in the
//! text of its statements. Text is compared by bytes (`COLLATE "C"`), so that ids have the same order here and in the
//! program: all ids have the same length, and their digits are in ASCII order. Keys and the ledger of a day are sorted
//! by application, so that all three tables can be read in parallel. A file has no CHECK constraints, because one
//! record that was edited by hand must not make the check at startup reject the file. It is reported instead.

/// The schema steps.
pub const STEPS: &[&str] = &[TABLES];

/// The table format that this program requires.
pub const FORMAT: usize = STEPS.len();

/// Separates the tables of both engines from the tables that only a database has.
pub const ONLY_DATABASE: &str = "-- Only in a database:";

/// Ledger records do not reference applications: an application that is missing from a backup may be restored later, and its
/// grants for today must be kept. Links and sessions are stored as digests of their tokens. `closed_applications`
/// contains no addresses, because the owner may have deleted the account. `notices` makes sure that an email is queued
/// only once, even though its record in the queue is deleted after it was sent. Keys of evidence are deleted after two
/// days.
const TABLES: &str = r#"
CREATE TABLE {schema}.applications (
    id         text COLLATE "C" PRIMARY KEY,
    name       text   NOT NULL,
    tier       text   NOT NULL,
    own_limits text,            -- limits by name, as JSON without spaces; NULL: limits of the tier
    contact    text,
    note       text,
    created_at bigint NOT NULL, -- milliseconds since 1970, like all times unless stated
    url        text             -- the website
);

CREATE TABLE {schema}.keys (
    application  text COLLATE "C" NOT NULL REFERENCES {schema}.applications (id),
    digest       bytea  NOT NULL, -- SHA-256 of the key
    shown        text   NOT NULL, -- the first characters of the key
    created_at   bigint NOT NULL,
    expires_at   bigint,
    revoked_at   bigint,
    last_used_at bigint,          -- the hour in which the key was last used
    name         text,            -- given by the owner
    PRIMARY KEY (application, digest)
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX keys_by_digest ON {schema}.keys (digest);

CREATE TABLE {schema}.audit (
    id          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at          bigint NOT NULL,
    who         text   NOT NULL,
    what        text   NOT NULL,
    application text COLLATE "C" NOT NULL,
    detail      text   NOT NULL
);
CREATE INDEX audit_by_application ON {schema}.audit (application, id);

CREATE TABLE {schema}.calendar (
    day date NOT NULL PRIMARY KEY -- the current day; every earlier day is closed
);
INSERT INTO {schema}.calendar (day) VALUES ('1970-01-01');

CREATE TABLE {schema}.ledger_days (
    day         date   NOT NULL,
    application text COLLATE "C" NOT NULL,
    granted     bigint NOT NULL DEFAULT 0, -- units granted to gateways and not returned
    PRIMARY KEY (day, application)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE {schema}.ledger_nodes ( -- totals of one gateway process, which only grow
    day         date   NOT NULL,
    application text COLLATE "C" NOT NULL,
    node        bigint NOT NULL,
    granted     bigint NOT NULL,
    returned    bigint NOT NULL,
    promised    bigint NOT NULL,
    released    bigint NOT NULL,
    PRIMARY KEY (day, application, node)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE {schema}.ledger_windows ( -- the same for windows of several days; a row exists once a limit counts it
    scope   text COLLATE "C" NOT NULL, -- the application or the owner
    kind    text COLLATE "C" NOT NULL, -- the limit, such as month
    starts  date   NOT NULL,
    ends    date   NOT NULL, -- the first day after the window
    granted bigint,          -- NULL before the first report: the sum of its days
    PRIMARY KEY (scope, kind, starts, ends)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE {schema}.grace_shares ( -- numbered shares of a day's grace, each held by one gateway
    day    date   NOT NULL,
    share  bigint NOT NULL,
    shares bigint NOT NULL, -- the number of shares of the day, fixed by the first holder
    token  bigint NOT NULL, -- identifies the holder and the processes that took over from it
    life   bigint NOT NULL, -- the number of the current process in this sequence
    node   bigint NOT NULL, -- the process; 0: the share is withheld
    PRIMARY KEY (day, share)
);

CREATE TABLE {schema}.request_nodes ( -- requests answered by one gateway process on a day; the number only grows
    day         date   NOT NULL,
    application text COLLATE "C" NOT NULL,
    endpoint    text COLLATE "C" NOT NULL,
    outcome     text COLLATE "C" NOT NULL,
    node        bigint NOT NULL, -- one gateway process
    requests    bigint NOT NULL, -- requests answered by this process; only grows
    PRIMARY KEY (day, application, endpoint, outcome, node)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE {schema}.request_days ( -- requests answered by all gateways on days that are closed for reports
    day         date   NOT NULL,
    application text COLLATE "C" NOT NULL,
    endpoint    text COLLATE "C" NOT NULL,
    outcome     text COLLATE "C" NOT NULL,
    requests    bigint NOT NULL, -- requests answered by all gateways
    PRIMARY KEY (day, application, endpoint, outcome)
);

CREATE TABLE {schema}.usage_terms ( -- account and tier on a day before one of them changed
    day         date   NOT NULL,
    application text COLLATE "C" NOT NULL,
    owner       text COLLATE "C",
    tier        text   NOT NULL,
    PRIMARY KEY (day, application)
);
CREATE INDEX usage_terms_by_owner ON {schema}.usage_terms (owner);

CREATE TABLE {schema}.status_minutes (
    minute   bigint PRIMARY KEY, -- minutes since 1970
    is_ready boolean NOT NULL,   -- whether a gateway was ready
    is_fresh boolean NOT NULL    -- whether a ready gateway had data that was not stale
) WITH (fillfactor = 80);

CREATE TABLE {schema}.status_messages (
    id       bigint PRIMARY KEY,
    incident bigint NOT NULL, -- the id of the first message of the incident
    at       bigint NOT NULL, -- milliseconds since 1970
    state    text   NOT NULL, -- investigating, identified, monitoring or resolved
    title    text   NOT NULL,
    message  text   NOT NULL
);
CREATE INDEX status_messages_by_incident ON {schema}.status_messages (incident, id);

CREATE TABLE {schema}.owners ( -- owners of applications who signed up
    id                text COLLATE "C" PRIMARY KEY,
    mailbox           text COLLATE "C" NOT NULL UNIQUE, -- the address without the parts that mail servers ignore
    email             text   NOT NULL,                  -- the address as entered
    created_at        bigint NOT NULL,                  -- milliseconds since 1970, like all times below
    terms_version     text,                             -- NULL: invited by an operator, not accepted yet
    terms_accepted_at bigint,
    tier              text,                             -- tier of new applications; NULL: the default
    own_limits        text,                             -- limits of all applications together; NULL: limits of the tiers
    suspended_at      bigint,
    notices           text                              -- selected kinds of mail, such as quota_80,key_changed; NULL: kinds of the tier
);

CREATE TABLE {schema}.owned_applications (
    application text COLLATE "C" PRIMARY KEY,
    owner       text COLLATE "C" NOT NULL
);
CREATE INDEX owned_applications_by_owner ON {schema}.owned_applications (owner);

CREATE TABLE {schema}.sign_in_links (
    digest     bytea  PRIMARY KEY, -- SHA-256 of the token
    mailbox    text COLLATE "C" NOT NULL,
    email      text   NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    used_at    bigint
);
CREATE INDEX sign_in_links_by_mailbox ON {schema}.sign_in_links (mailbox, created_at);
CREATE INDEX sign_in_links_by_expiry ON {schema}.sign_in_links (expires_at);

CREATE TABLE {schema}.owner_sessions (
    digest     bytea  PRIMARY KEY, -- SHA-256 of the token
    owner      text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL
);
CREATE INDEX owner_sessions_by_owner ON {schema}.owner_sessions (owner);
CREATE INDEX owner_sessions_by_expiry ON {schema}.owner_sessions (expires_at);

CREATE TABLE {schema}.mail_queue (
    message_id text COLLATE "C" PRIMARY KEY,
    kind       text   NOT NULL, -- sign_in, notice or a kind of owners.notices
    recipient  text   NOT NULL, -- an address, or the id of a webhook
    subject    text   NOT NULL,
    text       text   NOT NULL,
    html       text   NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL, -- not sent after this time
    due_at     bigint NOT NULL, -- time of the next attempt; during an attempt, when another gateway may try
    attempts   integer NOT NULL,
    last_error text
) WITH (fillfactor = 80);
CREATE INDEX mail_queue_by_due ON {schema}.mail_queue (due_at);

CREATE TABLE {schema}.closed_applications ( -- applications that count against the limit of their mailbox until the day ends
    mailbox_digest bytea NOT NULL, -- SHA-256 of the mailbox of the owner
    application    text COLLATE "C" NOT NULL,
    day            date  NOT NULL, -- the UTC day on which the application was closed
    PRIMARY KEY (mailbox_digest, application)
);
CREATE INDEX closed_applications_by_day ON {schema}.closed_applications (day);

CREATE TABLE {schema}.notices ( -- queued notices to owners, so that each is queued only once
    id text COLLATE "C" PRIMARY KEY, -- the message id of the email, without the domain
    at bigint NOT NULL               -- when the notice was queued
);
CREATE INDEX notices_by_time ON {schema}.notices (at);

CREATE TABLE {schema}.evidence_hours ( -- use of one gateway process by an application in an hour, until it is merged into the day
    hour        bigint NOT NULL, -- hours since 1970
    application text COLLATE "C" NOT NULL,
    node        bigint NOT NULL, -- one gateway process
    record      bytea  NOT NULL, -- a version and fields of fixed size
    PRIMARY KEY (hour, application, node)
);

CREATE TABLE {schema}.evidence_days ( -- use of all gateways by an application on a day
    day         bigint NOT NULL,  -- days since 1970
    application text COLLATE "C" NOT NULL,
    is_compact  boolean NOT NULL, -- whether the day has ended
    record      bytea  NOT NULL,  -- all gateways together
    PRIMARY KEY (day, application)
);
CREATE INDEX evidence_days_to_compact ON {schema}.evidence_days (day) WHERE NOT is_compact;

CREATE TABLE {schema}.evidence_keys ( -- hash keys of the records of a day, deleted after two days
    day      bigint PRIMARY KEY, -- days since 1970
    hash_key bytea  NOT NULL     -- key for the hashes in the records of the day
);

CREATE TABLE {schema}.limits_until ( -- limits to restore at a set time
    application text COLLATE "C" PRIMARY KEY,
    until       bigint NOT NULL, -- milliseconds since 1970; at this time, own_limits is restored
    own_limits  text             -- NULL: limits of the tier
);

CREATE TABLE {schema}.idempotency_keys ( -- requests of operators, stored for four days so that they are performed only once
    digest  text COLLATE "C" PRIMARY KEY, -- SHA-256 of the key
    content text   NOT NULL, -- SHA-256 of the request
    salt    text   NOT NULL, -- a new API key is derived from the salt and the key
    at      bigint NOT NULL,
    reply   text             -- without the API key; NULL until the request is performed
);
CREATE INDEX idempotency_keys_by_time ON {schema}.idempotency_keys (at);

CREATE TABLE {schema}.owner_webhooks ( -- URLs that receive the notices of an owner
    id          text COLLATE "C" PRIMARY KEY,
    owner       text COLLATE "C" NOT NULL,
    url         text   NOT NULL,
    secret      text   NOT NULL, -- in plain text: it signs messages
    old_secret  text,            -- the previous secret
    rotated_at  bigint,
    verified_at bigint,          -- when the receiver answered the challenge
    created_at  bigint NOT NULL
);
CREATE INDEX owner_webhooks_by_owner ON {schema}.owner_webhooks (owner);
CREATE INDEX mail_queue_by_recipient ON {schema}.mail_queue (recipient);

-- Only in a database:
ALTER TABLE {schema}.calendar
    ADD COLUMN only_row boolean NOT NULL UNIQUE DEFAULT true CHECK (only_row),
    ADD COLUMN own_oid oid, -- OID of this table when it was created or restored, because a dump creates another one; 0: commits are missing
    ADD COLUMN cluster text, -- the server's system identifier at that time, if disclosed
    ADD COLUMN restored_at bigint NOT NULL DEFAULT 0, -- time of the last `store restore`
    ADD COLUMN seen_at bigint NOT NULL DEFAULT 0; -- time of the last report of a gateway; only grows
UPDATE {schema}.calendar SET own_oid = tableoid, cluster = {cluster};

CREATE TABLE {schema}.site ( -- locked by every change, so that the numbers of audit records are in commit order
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    id       uuid NOT NULL DEFAULT gen_random_uuid(), -- identity of this data set
    format   integer NOT NULL,                        -- number of applied schema steps
    compatible_from integer NOT NULL                  -- minimum number of steps that a program must know
);
INSERT INTO {schema}.site (format, compatible_from) VALUES (1, 1);

CREATE TABLE {schema}.minute_pools ( -- minute limits that gateways share
    application text COLLATE "C" PRIMARY KEY,
    used_at     bigint NOT NULL DEFAULT 0, -- microseconds since 1970
    pool        text                       -- tokens left, and tokens that gateways hold, in JSON; NULL before the first report is applied
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE {schema}.nodes ( -- gateway processes, for information; a process removes its row when it stops
    node              bigint PRIMARY KEY,
    name              text   NOT NULL,
    version           text   NOT NULL,
    started_at        bigint NOT NULL,
    last_seen_at      bigint NOT NULL,
    units_held        bigint NOT NULL, -- units of the day that are leased but not delivered
    usage_recorded_at bigint NOT NULL  -- requests answered before this time are in request_nodes
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE {schema}.documents ( -- documents of backends that gateways share; times are microseconds since 1970
    scope      text COLLATE "C" NOT NULL,      -- the backend
    name       text COLLATE "C" NOT NULL,
    claim      bigint  NOT NULL,               -- number of the newest claim; only grows, and is at least the time of the claim
    owner      bigint,                         -- gateway process that fetches the document
    held_until bigint,                         -- deadline of the claim; if there is no owner, when the next claim is allowed
    has_failed boolean NOT NULL DEFAULT false, -- the last fetch failed
    published  bigint  NOT NULL DEFAULT 0,     -- number of the claim that published the content; 0: no content
    confirmed  bigint,                         -- when the backend last confirmed the content
    due        bigint,
    label      text,
    PRIMARY KEY (scope, name)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

CREATE UNLOGGED TABLE {schema}.document_contents ( -- empty after a crash or a failover; the contents are then fetched again
    scope   text COLLATE "C" NOT NULL,
    name    text COLLATE "C" NOT NULL,
    number  bigint NOT NULL,
    content bytea  NOT NULL, -- not compressed, because that would cost CPU time on the database server
    PRIMARY KEY (scope, name)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0,
        toast.autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_cost_delay = 0);
ALTER TABLE {schema}.document_contents ALTER COLUMN content SET STORAGE EXTERNAL;

CREATE TABLE {schema}.backend_refreshes ( -- the newest refresh of each backend; times are microseconds since 1970
    scope    text COLLATE "C" PRIMARY KEY,
    detected bigint NOT NULL,
    expected bigint NOT NULL -- when the next refresh is expected
);"#;

/// The comments after the columns and tables of a step, as `COMMENT` statements.
pub fn comments(step: &str) -> String {
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
