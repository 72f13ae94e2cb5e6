//! The steps up to format 8. They are never changed; `steps` lists them.

pub(super) const FIRST: &str = r#"
CREATE TABLE {schema}.applications (
    id         text COLLATE "C" PRIMARY KEY,
    name       text   NOT NULL,
    tier       text   NOT NULL,
    own_minute bigint,
    own_day    bigint,
    contact    text,
    note       text,
    created_at bigint NOT NULL
);

CREATE TABLE {schema}.keys (
    digest       bytea  PRIMARY KEY,
    application  text COLLATE "C" NOT NULL REFERENCES {schema}.applications (id),
    shown        text   NOT NULL,
    created_at   bigint NOT NULL,
    expires_at   bigint,
    revoked_at   bigint,
    last_used_at bigint
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
    granted     bigint NOT NULL DEFAULT 0,
    promised    bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (day, application)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
COMMENT ON COLUMN {schema}.ledger_days.granted IS 'units granted to gateways and not returned';
COMMENT ON COLUMN {schema}.ledger_days.promised IS 'units of grace promised to gateways and not released';

CREATE TABLE {schema}.ledger_nodes (
    day         date   NOT NULL,
    application text COLLATE "C" NOT NULL,
    node        bigint NOT NULL,
    granted     bigint NOT NULL,
    returned    bigint NOT NULL,
    promised    bigint NOT NULL,
    released    bigint NOT NULL,
    PRIMARY KEY (day, application, node)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE {schema}.ledger_nodes IS 'totals of one gateway process; each only grows';

CREATE TABLE {schema}.calendar (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    day      date NOT NULL
);
COMMENT ON COLUMN {schema}.calendar.day IS 'the current day; every earlier day is closed';
INSERT INTO {schema}.calendar (day) VALUES ('1970-01-01');

CREATE TABLE {schema}.site (
    only_row boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    id       uuid NOT NULL DEFAULT gen_random_uuid(),
    format   integer NOT NULL,
    compatible_from integer NOT NULL
);
COMMENT ON TABLE {schema}.site IS 'locked by every change, so that the numbers of audit records are in commit order';
COMMENT ON COLUMN {schema}.site.id IS 'identity of this data set';
COMMENT ON COLUMN {schema}.site.format IS 'number of applied schema steps';
COMMENT ON COLUMN {schema}.site.compatible_from IS 'a program must know at least this many steps';
INSERT INTO {schema}.site (format, compatible_from) VALUES (1, 1);
"#;

pub(super) const SHARED_MINUTES: &str = r#"
CREATE TABLE {schema}.minute_pools (
    application text COLLATE "C" PRIMARY KEY,
    quota       bigint NOT NULL,
    tokens      bigint NOT NULL,
    as_of       bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE {schema}.minute_pools IS 'buckets of minute limits, without the shares of gateways';
COMMENT ON COLUMN {schema}.minute_pools.tokens IS 'millionths of a token at as_of';
COMMENT ON COLUMN {schema}.minute_pools.as_of IS 'microseconds since 1970';

CREATE TABLE {schema}.minute_shares (
    application text COLLATE "C" NOT NULL,
    node        bigint  NOT NULL,
    round       bigint  NOT NULL,
    capacity    bigint  NOT NULL,
    ends_at     bigint  NOT NULL,
    is_recalled boolean NOT NULL DEFAULT false,
    PRIMARY KEY (application, node)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX minute_shares_by_node ON {schema}.minute_shares (node);
COMMENT ON TABLE {schema}.minute_shares IS 'parts of minute limits that gateways use on their own';
COMMENT ON COLUMN {schema}.minute_shares.round IS 'number of the newest report of the gateway';
COMMENT ON COLUMN {schema}.minute_shares.ends_at IS 'microseconds since 1970';
COMMENT ON COLUMN {schema}.minute_shares.is_recalled IS 'another gateway needs it';

UPDATE {schema}.site SET format = 2;
"#;

pub(super) const NODES_AND_USAGE: &str = r#"
CREATE TABLE {schema}.nodes (
    node              bigint PRIMARY KEY,
    name              text   NOT NULL,
    version           text   NOT NULL,
    started_at        bigint NOT NULL,
    last_seen_at      bigint NOT NULL,
    units_held        bigint NOT NULL,
    usage_recorded_at bigint NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE {schema}.nodes IS 'gateway processes, for information; a process that stops removes its row';
COMMENT ON COLUMN {schema}.nodes.units_held IS 'units of the day leased and not delivered';
COMMENT ON COLUMN {schema}.nodes.usage_recorded_at IS 'units delivered before this time are in usage_nodes';

CREATE TABLE {schema}.usage_nodes (
    day         date   NOT NULL,
    application text COLLATE "C" NOT NULL,
    node        bigint NOT NULL,
    units       bigint NOT NULL,
    PRIMARY KEY (day, application, node)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE {schema}.usage_nodes IS 'units delivered by one gateway process; each total only grows';

CREATE TABLE {schema}.usage_days (
    day         date   NOT NULL,
    application text COLLATE "C" NOT NULL,
    units       bigint NOT NULL,
    PRIMARY KEY (day, application)
);
COMMENT ON TABLE {schema}.usage_days IS 'units delivered on days closed for reports, merged from usage_nodes';

UPDATE {schema}.site SET format = 3;
"#;

pub(super) const SHARED_DOCUMENTS: &str = r#"
CREATE TABLE {schema}.documents (
    scope      text COLLATE "C" NOT NULL,
    name       text COLLATE "C" NOT NULL,
    claim      bigint  NOT NULL,
    owner      bigint,
    held_until bigint,
    has_failed boolean NOT NULL DEFAULT false,
    published  bigint  NOT NULL DEFAULT 0,
    confirmed  bigint,
    due        bigint,
    label      text,
    PRIMARY KEY (scope, name)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE {schema}.documents IS 'documents of backends that gateways share; times are microseconds since 1970';
COMMENT ON COLUMN {schema}.documents.scope IS 'the backend';
COMMENT ON COLUMN {schema}.documents.claim IS 'number of the newest claim; only grows, and is at least the time of the claim';
COMMENT ON COLUMN {schema}.documents.owner IS 'gateway process that fetches the document';
COMMENT ON COLUMN {schema}.documents.held_until IS 'deadline of the claim; without an owner, when the next claim is allowed';
COMMENT ON COLUMN {schema}.documents.has_failed IS 'the last fetch failed';
COMMENT ON COLUMN {schema}.documents.published IS 'number of the claim that published the content; 0 without one';
COMMENT ON COLUMN {schema}.documents.confirmed IS 'when the backend last confirmed the content';

CREATE {unlogged} TABLE {schema}.document_contents (
    scope   text COLLATE "C" NOT NULL,
    name    text COLLATE "C" NOT NULL,
    number  bigint NOT NULL,
    content bytea  NOT NULL,
    PRIMARY KEY (scope, name)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0,
        toast.autovacuum_vacuum_scale_factor = 0.02, toast.autovacuum_vacuum_cost_delay = 0);
ALTER TABLE {schema}.document_contents ALTER COLUMN content SET STORAGE EXTERNAL;
COMMENT ON TABLE {schema}.document_contents IS
    'contents of documents; empty after a crash or a failover, and then fetched again';
COMMENT ON COLUMN {schema}.document_contents.content IS 'not compressed: that would take processor time of the database';

CREATE TABLE {schema}.backend_refreshes (
    scope    text COLLATE "C" PRIMARY KEY,
    detected bigint NOT NULL,
    expected bigint NOT NULL
);
COMMENT ON TABLE {schema}.backend_refreshes IS 'the newest refresh of each backend; times are microseconds since 1970';
COMMENT ON COLUMN {schema}.backend_refreshes.expected IS 'the next expected refresh';

UPDATE {schema}.site SET format = 4;
"#;

pub(super) const REQUESTS_AND_STATUS: &str = r#"
CREATE TABLE {schema}.request_nodes (
    day         date   NOT NULL,
    application text COLLATE "C" NOT NULL,
    endpoint    text COLLATE "C" NOT NULL,
    outcome     text COLLATE "C" NOT NULL,
    node        bigint NOT NULL,
    requests    bigint NOT NULL,
    PRIMARY KEY (day, application, endpoint, outcome, node)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE {schema}.request_nodes IS 'requests answered by one gateway process on a day; only grows';

CREATE TABLE {schema}.request_days (
    day         date   NOT NULL,
    application text COLLATE "C" NOT NULL,
    endpoint    text COLLATE "C" NOT NULL,
    outcome     text COLLATE "C" NOT NULL,
    requests    bigint NOT NULL,
    PRIMARY KEY (day, application, endpoint, outcome)
);
COMMENT ON TABLE {schema}.request_days IS 'requests answered by all gateways on days that are closed for reports';

CREATE TABLE {schema}.status_minutes (
    minute   bigint  PRIMARY KEY,
    is_ready boolean NOT NULL,
    is_fresh boolean NOT NULL
) WITH (fillfactor = 80);
COMMENT ON COLUMN {schema}.status_minutes.minute IS 'minutes since 1970';
COMMENT ON COLUMN {schema}.status_minutes.is_ready IS 'a gateway was ready';
COMMENT ON COLUMN {schema}.status_minutes.is_fresh IS 'the data was not stale on a ready gateway';

CREATE TABLE {schema}.status_messages (
    id       bigint PRIMARY KEY,
    incident bigint NOT NULL,
    at       bigint NOT NULL,
    state    text   NOT NULL,
    title    text   NOT NULL,
    message  text   NOT NULL
);
CREATE INDEX status_messages_by_incident ON {schema}.status_messages (incident, id);
COMMENT ON COLUMN {schema}.status_messages.incident IS 'the id of its first message';
COMMENT ON COLUMN {schema}.status_messages.state IS 'investigating, identified, monitoring or resolved';

UPDATE {schema}.site SET format = 5;
"#;

pub(super) const SELF_SERVICE: &str = r#"
CREATE TABLE {schema}.owners (
    id                text COLLATE "C" PRIMARY KEY,
    mailbox           text COLLATE "C" NOT NULL UNIQUE,
    email             text   NOT NULL,
    created_at        bigint NOT NULL,
    terms_version     text   NOT NULL,
    terms_accepted_at bigint NOT NULL,
    tier              text,
    suspended_at      bigint
);
COMMENT ON TABLE {schema}.owners IS 'owners of applications who signed up';
COMMENT ON COLUMN {schema}.owners.mailbox IS 'the address without what mail servers ignore';
COMMENT ON COLUMN {schema}.owners.email IS 'the address as it was entered';
COMMENT ON COLUMN {schema}.owners.tier IS 'of new applications; NULL: the default';

CREATE TABLE {schema}.owned_applications (
    application text COLLATE "C" PRIMARY KEY,
    owner       text COLLATE "C" NOT NULL
);
CREATE INDEX owned_applications_by_owner ON {schema}.owned_applications (owner);

CREATE TABLE {schema}.sign_in_links (
    digest     bytea  PRIMARY KEY,
    mailbox    text COLLATE "C" NOT NULL,
    email      text   NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    used_at    bigint
);
CREATE INDEX sign_in_links_by_mailbox ON {schema}.sign_in_links (mailbox, created_at);
CREATE INDEX sign_in_links_by_expiry ON {schema}.sign_in_links (expires_at);
COMMENT ON COLUMN {schema}.sign_in_links.digest IS 'SHA-256 of the token';

CREATE TABLE {schema}.owner_sessions (
    digest     bytea  PRIMARY KEY,
    owner      text COLLATE "C" NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL
);
CREATE INDEX owner_sessions_by_owner ON {schema}.owner_sessions (owner);
CREATE INDEX owner_sessions_by_expiry ON {schema}.owner_sessions (expires_at);
COMMENT ON COLUMN {schema}.owner_sessions.digest IS 'SHA-256 of the token';

CREATE TABLE {schema}.mail_queue (
    message_id text COLLATE "C" PRIMARY KEY,
    kind       text   NOT NULL,
    recipient  text   NOT NULL,
    subject    text   NOT NULL,
    text       text   NOT NULL,
    html       text   NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    due_at     bigint NOT NULL,
    attempts   integer NOT NULL,
    last_error text
) WITH (fillfactor = 80);
CREATE INDEX mail_queue_by_due ON {schema}.mail_queue (due_at);
COMMENT ON COLUMN {schema}.mail_queue.kind IS 'sign_in or notice';
COMMENT ON COLUMN {schema}.mail_queue.expires_at IS 'the mail is not sent after this time';
COMMENT ON COLUMN {schema}.mail_queue.due_at IS 'the next attempt; while a gateway sends it, when another one may';

UPDATE {schema}.site SET format = 6;
"#;

pub(super) const WEBSITES: &str = r"
ALTER TABLE {schema}.applications ADD COLUMN url text;
COMMENT ON COLUMN {schema}.applications.url IS 'the website';

UPDATE {schema}.site SET format = 7;
";

pub(super) const CLOSED_APPLICATIONS: &str = r#"
CREATE TABLE {schema}.closed_applications (
    mailbox_digest bytea NOT NULL,
    application    text COLLATE "C" NOT NULL,
    day            date  NOT NULL,
    PRIMARY KEY (mailbox_digest, application)
);
CREATE INDEX closed_applications_by_day ON {schema}.closed_applications (day);
COMMENT ON TABLE {schema}.closed_applications IS
    'applications that count against the limit of their mailbox until the day ends';
COMMENT ON COLUMN {schema}.closed_applications.mailbox_digest IS 'SHA-256 of the mailbox of the owner';
COMMENT ON COLUMN {schema}.closed_applications.day IS 'the UTC day on which it was closed';

UPDATE {schema}.site SET format = 8;
"#;
