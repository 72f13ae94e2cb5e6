//! The tables, as a list of steps.
//!
//! A released step is never changed. A step only adds: the previous release runs and restarts on the tables of this one.
//! A step that breaks that raises `compatible_from` in `site`, and releases that know fewer steps refuse to start.
//!
//! Text is compared by bytes (`COLLATE "C"`), so that ids have the same order here and in the program. Times are
//! milliseconds since 1970.

use crate::postgres::schema::first_steps::{
    CLOSED_APPLICATIONS, FIRST, NODES_AND_USAGE, REQUESTS_AND_STATUS, SELF_SERVICE, SHARED_DOCUMENTS,
    SHARED_MINUTES, WEBSITES,
};

/// The format of the tables that this program requires.
pub(crate) const FORMAT: usize = STEPS.len();

/// The steps; the format of a schema is the number of applied steps.
pub(crate) const STEPS: &[&str] = &[
    FIRST,
    SHARED_MINUTES,
    NODES_AND_USAGE,
    SHARED_DOCUMENTS,
    REQUESTS_AND_STATUS,
    SELF_SERVICE,
    WEBSITES,
    CLOSED_APPLICATIONS,
    GRACE_SHARES_AND_KEY_NAMES,
    NOTICES,
    EVIDENCE_AND_WEBHOOKS,
];

/// Earlier releases promise grace for each application. From this step on they find all of it promised, in every row that is
/// created after it. On days with rows from before it they may promise some, so nobody gets a share of these days.
const GRACE_SHARES_AND_KEY_NAMES: &str = r"
CREATE TABLE {schema}.grace_shares (
    day    date   NOT NULL,
    share  bigint NOT NULL,
    shares bigint NOT NULL,
    token  bigint NOT NULL,
    life   bigint NOT NULL,
    node   bigint NOT NULL,
    PRIMARY KEY (day, share)
);
COMMENT ON TABLE {schema}.grace_shares IS 'numbered shares of a day''s grace, each held by one gateway';
COMMENT ON COLUMN {schema}.grace_shares.shares IS 'the number of shares of the day, fixed by the first holder';
COMMENT ON COLUMN {schema}.grace_shares.token IS 'the holder, and the processes that continue it';
COMMENT ON COLUMN {schema}.grace_shares.life IS 'the number of the process among them';
COMMENT ON COLUMN {schema}.grace_shares.node IS 'the process; 0: nobody gets it';

ALTER TABLE {schema}.ledger_days ALTER COLUMN promised SET DEFAULT 1000000000000;
COMMENT ON COLUMN {schema}.ledger_days.promised IS 'for releases without grace_shares, which promise nothing above a hundredth';
INSERT INTO {schema}.grace_shares
SELECT DISTINCT d.day, 0, 1, 0, 0, 0 FROM {schema}.ledger_days d JOIN {schema}.calendar c ON d.day >= c.day;

ALTER TABLE {schema}.keys ADD COLUMN name text;
COMMENT ON COLUMN {schema}.keys.name IS 'given by its owner';

UPDATE {schema}.site SET format = 9;
";

const NOTICES: &str = r#"
ALTER TABLE {schema}.owners ADD COLUMN notices text;
COMMENT ON COLUMN {schema}.owners.notices IS 'chosen kinds of mail, such as quota_80,key_changed; NULL: those of the tier';

CREATE TABLE {schema}.notices (
    id text COLLATE "C" PRIMARY KEY,
    at bigint NOT NULL
);
CREATE INDEX notices_by_time ON {schema}.notices (at);
COMMENT ON TABLE {schema}.notices IS 'notices to owners that were queued, so that each is queued once';
COMMENT ON COLUMN {schema}.notices.id IS 'the message id of the mail, without its domain';
COMMENT ON COLUMN {schema}.mail_queue.kind IS 'sign_in, notice or a kind of owners.notices';

UPDATE {schema}.site SET format = 10;
"#;

const EVIDENCE_AND_WEBHOOKS: &str = r#"
CREATE TABLE {schema}.evidence_hours (
    hour        bigint NOT NULL,
    application text COLLATE "C" NOT NULL,
    node        bigint NOT NULL,
    record      bytea  NOT NULL,
    PRIMARY KEY (hour, application, node)
);
COMMENT ON TABLE {schema}.evidence_hours IS
    'how an application used one gateway process in an hour, until it is merged into the day';
COMMENT ON COLUMN {schema}.evidence_hours.hour IS 'hours since 1970';

CREATE TABLE {schema}.evidence_days (
    day         bigint NOT NULL,
    application text COLLATE "C" NOT NULL,
    is_compact  boolean NOT NULL,
    record      bytea  NOT NULL,
    PRIMARY KEY (day, application)
);
CREATE INDEX evidence_days_to_compact ON {schema}.evidence_days (day) WHERE NOT is_compact;
COMMENT ON TABLE {schema}.evidence_days IS 'how an application used all gateways on a day';
COMMENT ON COLUMN {schema}.evidence_days.day IS 'days since 1970';
COMMENT ON COLUMN {schema}.evidence_days.is_compact IS 'the day has ended';

CREATE TABLE {schema}.evidence_keys (
    day      bigint PRIMARY KEY,
    hash_key bytea  NOT NULL
);
COMMENT ON TABLE {schema}.evidence_keys IS 'keys of the hashes in the records of a day, deleted after two days';

CREATE TABLE {schema}.limits_until (
    application text COLLATE "C" PRIMARY KEY,
    until       bigint NOT NULL,
    minute      bigint,
    day         bigint
);
COMMENT ON TABLE {schema}.limits_until IS 'limits that applications get back at a time';
COMMENT ON COLUMN {schema}.limits_until.minute IS 'NULL: that of the tier';

CREATE TABLE {schema}.owner_webhooks (
    id          text COLLATE "C" PRIMARY KEY,
    owner       text COLLATE "C" NOT NULL,
    url         text   NOT NULL,
    secret      text   NOT NULL,
    old_secret  text,
    rotated_at  bigint,
    verified_at bigint,
    created_at  bigint NOT NULL
);
CREATE INDEX owner_webhooks_by_owner ON {schema}.owner_webhooks (owner);
CREATE INDEX mail_queue_by_recipient ON {schema}.mail_queue (recipient);
COMMENT ON TABLE {schema}.owner_webhooks IS 'URLs that get the notices of an owner';
COMMENT ON COLUMN {schema}.owner_webhooks.secret IS 'readable: it signs messages';
COMMENT ON COLUMN {schema}.owner_webhooks.old_secret IS 'before the last rotation';
COMMENT ON COLUMN {schema}.owner_webhooks.verified_at IS 'when the receiver answered the challenge';
COMMENT ON COLUMN {schema}.mail_queue.recipient IS 'an address, or the id of a webhook';

UPDATE {schema}.site SET format = 11;
"#;
