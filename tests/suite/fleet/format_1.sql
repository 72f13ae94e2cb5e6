-- The tables of format 1, for tests of upgrades. It is never changed.
CREATE SCHEMA {schema};
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
