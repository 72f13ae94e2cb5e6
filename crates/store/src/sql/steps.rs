//! The tables that both engines have, in the dialect of PostgreSQL.
//!
//! A released step is never changed: tables in that format exist. The comments behind columns and tables are for operators: a
//! database has them as comments, and a file in its statements.

/// The totals of the ledger and of statistics, the status page, and accounts. Links and sessions are stored as digests of their
/// tokens. There is no address in `closed_applications`: the owner may have deleted the account. A mail is queued once
/// although its record in the queue is gone once it was sent, by `notices`. Keys of evidence are deleted after two days.
pub(crate) const SHARED: &str = r#"
CREATE TABLE {schema}.ledger_nodes ( -- totals of one gateway process; each only grows
    day         date   NOT NULL,
    application text COLLATE "C" NOT NULL,
    node        bigint NOT NULL,
    granted     bigint NOT NULL,
    returned    bigint NOT NULL,
    promised    bigint NOT NULL,
    released    bigint NOT NULL,
    PRIMARY KEY (day, application, node)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE {schema}.grace_shares ( -- numbered shares of a day's grace, each held by one gateway
    day    date   NOT NULL,
    share  bigint NOT NULL,
    shares bigint NOT NULL, -- the number of shares of the day, fixed by the first holder
    token  bigint NOT NULL, -- the holder, and the processes that continue it
    life   bigint NOT NULL, -- the number of the process among them
    node   bigint NOT NULL, -- the process; 0: nobody gets it
    PRIMARY KEY (day, share)
);

CREATE TABLE {schema}.request_nodes ( -- requests answered by one gateway process on a day; only grows
    day         date   NOT NULL,
    application text COLLATE "C" NOT NULL,
    endpoint    text COLLATE "C" NOT NULL,
    outcome     text COLLATE "C" NOT NULL,
    node        bigint NOT NULL, -- one gateway process
    requests    bigint NOT NULL, -- answered by it; only grows
    PRIMARY KEY (day, application, endpoint, outcome, node)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE {schema}.request_days ( -- requests answered by all gateways on days that are closed for reports
    day         date   NOT NULL,
    application text COLLATE "C" NOT NULL,
    endpoint    text COLLATE "C" NOT NULL,
    outcome     text COLLATE "C" NOT NULL,
    requests    bigint NOT NULL, -- answered by all
    PRIMARY KEY (day, application, endpoint, outcome)
);

CREATE TABLE {schema}.status_minutes (
    minute   bigint PRIMARY KEY, -- minutes since 1970
    is_ready boolean NOT NULL,   -- whether a gateway was ready
    is_fresh boolean NOT NULL    -- whether the data was not stale on a ready gateway
) WITH (fillfactor = 80);

CREATE TABLE {schema}.status_messages (
    id       bigint PRIMARY KEY,
    incident bigint NOT NULL, -- the id of its first message
    at       bigint NOT NULL, -- milliseconds since 1970
    state    text   NOT NULL, -- investigating, identified, monitoring or resolved
    title    text   NOT NULL,
    message  text   NOT NULL
);
CREATE INDEX status_messages_by_incident ON {schema}.status_messages (incident, id);

CREATE TABLE {schema}.owners ( -- owners of applications who signed up
    id                text COLLATE "C" PRIMARY KEY,
    mailbox           text COLLATE "C" NOT NULL UNIQUE, -- the address without what mail servers ignore
    email             text   NOT NULL,                  -- the address as it was entered
    created_at        bigint NOT NULL,                  -- milliseconds since 1970, like all times below
    terms_version     text   NOT NULL,
    terms_accepted_at bigint NOT NULL,
    tier              text,                             -- of new applications; NULL: the default
    suspended_at      bigint,
    notices           text                              -- chosen kinds of mail, such as quota_80,key_changed; NULL: those of the tier
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
    due_at     bigint NOT NULL, -- the next attempt; while one gateway sends it, when another one may
    attempts   integer NOT NULL,
    last_error text
) WITH (fillfactor = 80);
CREATE INDEX mail_queue_by_due ON {schema}.mail_queue (due_at);

CREATE TABLE {schema}.closed_applications ( -- applications that count against the limit of their mailbox until the day ends
    mailbox_digest bytea NOT NULL, -- SHA-256 of the mailbox of the owner
    application    text COLLATE "C" NOT NULL,
    day            date  NOT NULL, -- the UTC day on which it was closed
    PRIMARY KEY (mailbox_digest, application)
);
CREATE INDEX closed_applications_by_day ON {schema}.closed_applications (day);

CREATE TABLE {schema}.notices ( -- notices to owners that were queued, so that each is queued once
    id text COLLATE "C" PRIMARY KEY, -- the message id of the mail, without its domain
    at bigint NOT NULL               -- when it was queued
);
CREATE INDEX notices_by_time ON {schema}.notices (at);

CREATE TABLE {schema}.evidence_hours ( -- how an application used one gateway process in an hour, until it is merged into the day
    hour        bigint NOT NULL, -- hours since 1970
    application text COLLATE "C" NOT NULL,
    node        bigint NOT NULL, -- one gateway process
    record      bytea  NOT NULL, -- a version and fields of fixed size, until it is merged into its day
    PRIMARY KEY (hour, application, node)
);

CREATE TABLE {schema}.evidence_days ( -- how an application used all gateways on a day
    day         bigint NOT NULL,  -- days since 1970
    application text COLLATE "C" NOT NULL,
    is_compact  boolean NOT NULL, -- whether the day has ended
    record      bytea  NOT NULL,  -- of all gateways
    PRIMARY KEY (day, application)
);
CREATE INDEX evidence_days_to_compact ON {schema}.evidence_days (day) WHERE NOT is_compact;

CREATE TABLE {schema}.evidence_keys ( -- keys of the hashes in the records of a day, deleted after two days
    day      bigint PRIMARY KEY, -- days since 1970
    hash_key bytea  NOT NULL     -- of the hashes in the records of the day
);

CREATE TABLE {schema}.limits_until ( -- limits that applications get back at a time
    application text COLLATE "C" PRIMARY KEY,
    until       bigint NOT NULL, -- milliseconds since 1970; then these become the limits of the application:
    minute      bigint,          -- NULL: that of the tier
    day         bigint
);

CREATE TABLE {schema}.owner_webhooks ( -- URLs that get the notices of an owner
    id          text COLLATE "C" PRIMARY KEY,
    owner       text COLLATE "C" NOT NULL,
    url         text   NOT NULL,
    secret      text   NOT NULL, -- readable: it signs messages
    old_secret  text,            -- before the last rotation
    rotated_at  bigint,
    verified_at bigint,          -- when the receiver answered the challenge
    created_at  bigint NOT NULL
);
CREATE INDEX owner_webhooks_by_owner ON {schema}.owner_webhooks (owner);
CREATE INDEX mail_queue_by_recipient ON {schema}.mail_queue (recipient);

UPDATE {schema}.site SET format = 2;
"#;
