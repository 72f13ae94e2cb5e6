PRAGMA application_id = 0;
PRAGMA user_version = 9;
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE applications (
    id         TEXT    NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL,
    tier       TEXT    NOT NULL,
    own_minute INTEGER,           -- requests a minute; NULL: as the tier
    own_day    INTEGER,           -- requests a UTC day; NULL: as the tier
    contact    TEXT,
    note       TEXT,
    created_at INTEGER NOT NULL   -- milliseconds since 1970: datetime(created_at / 1000, 'unixepoch')
, url TEXT) STRICT, WITHOUT ROWID;
INSERT INTO applications VALUES('app_1LOO8strKfH','Dashboard','free',NULL,NULL,NULL,NULL,1795608000471,NULL);
INSERT INTO applications VALUES('app_44DhhWWmWPi','Expired','pro',NULL,NULL,NULL,NULL,1795521600965,NULL);
INSERT INTO applications VALUES('app_6bYv8jJCU72','Moved','teams',NULL,NULL,NULL,NULL,1795521600996,NULL);
INSERT INTO applications VALUES('app_BChWgCQP42t','Revoked','teams',NULL,NULL,NULL,NULL,1795521600954,NULL);
INSERT INTO applications VALUES('app_BH6nBsCldra','Weather site','pro',NULL,NULL,'ops@example.org',NULL,1795521600893,NULL);
INSERT INTO applications VALUES('app_EVH6dmszmMH','Imported','pro',NULL,NULL,NULL,NULL,1795521601028,NULL);
INSERT INTO applications VALUES('app_LOyIsklA1uM','Rotated','pro',NULL,NULL,NULL,'a note',1795521600940,NULL);
INSERT INTO applications VALUES('app_LxIGuVnIxKa','Own limits','free',100,20,NULL,NULL,1795521600906,NULL);
CREATE TABLE keys (
    application TEXT    NOT NULL REFERENCES applications (id),
    digest      BLOB    NOT NULL, -- SHA-256 of the key: hex(digest)
    shown       TEXT    NOT NULL, -- the key's first characters
    created_at  INTEGER NOT NULL, -- milliseconds since 1970, like the two below
    expires_at  INTEGER,
    revoked_at  INTEGER, last_used_at INTEGER,
    PRIMARY KEY (application, digest)
) STRICT, WITHOUT ROWID;
INSERT INTO keys VALUES('app_1LOO8strKfH',X'69f41117f72e159e7b53ff6cd8747083167f42fe649fe47c2df4a11a0983cef6','sg_test_Whty',1795608000471,NULL,NULL,1795608000000);
INSERT INTO keys VALUES('app_44DhhWWmWPi',X'0dddd530929487b64309f592f21d065552d9f39993bf25b7460ccd82c88411ec','sg_test_f1uY',1795521600964,1795608600000,NULL,1795608000000);
INSERT INTO keys VALUES('app_6bYv8jJCU72',X'326c1329b2a0603e5327097d236ff6704586c2184ca81483e59c4d02e4dfa48c','sg_test_Lz0x',1795608000377,NULL,NULL,1795608000000);
INSERT INTO keys VALUES('app_6bYv8jJCU72',X'e984a839626effd62a9e24ffb6290c423121a48cc52163c45074e0892aee76b7','sg_test_0SRD',1795521600996,NULL,1795608000377,NULL);
INSERT INTO keys VALUES('app_BChWgCQP42t',X'eaf3552e5d0a3461ccc5cee4c7559adf3dab96ef6c56e7c3d3ff609ca4d117f6','sg_test_HkjO',1795521600953,NULL,1795608000455,1795521600000);
INSERT INTO keys VALUES('app_BH6nBsCldra',X'ee5492a6e349209265c2f3a9a5016eff1272396234aa2280b5198c663fa641a2','sg_test_53WY',1795521600893,NULL,NULL,1795608000000);
INSERT INTO keys VALUES('app_EVH6dmszmMH',X'e36ad7c5d8d3e4bcde4b75d9a01a827e605a9e0b16ef7f2266b67fe0eb8d3687','sha256:e36ad7c5',1795521601028,NULL,NULL,1795608000000);
INSERT INTO keys VALUES('app_LOyIsklA1uM',X'3ee60b64e37d7bc17c2f7e3fcac3636fabae5f6b3c4866a944a94b1aa1ea0b42','sg_test_vLgW',1795521600940,1795694400358,NULL,1795608000000);
INSERT INTO keys VALUES('app_LOyIsklA1uM',X'fec3f88e3ee803648513db97388c5054ba7de0eece4615582ba93994c510aa59','sg_test_xdUP',1795608000358,NULL,NULL,1795608000000);
INSERT INTO keys VALUES('app_LxIGuVnIxKa',X'1532f2ee59bf6acd69f65d6e637995b1daff169ad1fa821a769971d827695b4c','sg_test_RwLJ',1795521600906,NULL,NULL,1795608000000);
CREATE TABLE audit (
    id          INTEGER NOT NULL PRIMARY KEY,
    at          INTEGER NOT NULL, -- milliseconds since 1970
    who         TEXT    NOT NULL,
    what        TEXT    NOT NULL,
    application TEXT    NOT NULL,
    detail      TEXT    NOT NULL
) STRICT;
INSERT INTO audit VALUES(1,1795521600893,'cli:root','create','app_BH6nBsCldra','tier pro, key sg_test_53WY');
INSERT INTO audit VALUES(2,1795521600906,'cli:root','create','app_LxIGuVnIxKa','tier free, key sg_test_RwLJ');
INSERT INTO audit VALUES(3,1795521600917,'cli:root','set_limits','app_LxIGuVnIxKa','own limits, 100 a minute, 20 a day');
INSERT INTO audit VALUES(4,1795521600940,'cli:root','create','app_LOyIsklA1uM','tier pro, key sg_test_vLgW');
INSERT INTO audit VALUES(5,1795521600954,'cli:root','create','app_BChWgCQP42t','tier teams, key sg_test_HkjO');
INSERT INTO audit VALUES(6,1795521600965,'cli:root','create','app_44DhhWWmWPi','tier pro, key sg_test_f1uY until 2026-11-25T12:10:00Z');
INSERT INTO audit VALUES(7,1795521600996,'cli:root','create','app_6bYv8jJCU72','tier free, key sg_test_0SRD');
INSERT INTO audit VALUES(8,1795521601028,'cli:root','create','app_EVH6dmszmMH','tier pro, key sha256:e36ad7c5');
INSERT INTO audit VALUES(9,1795608000358,'cli:root','rotate','app_LOyIsklA1uM','new key sg_test_xdUP; 1 older expires at 2026-11-26T12:00:00.358Z');
INSERT INTO audit VALUES(10,1795608000377,'cli:root','rotate','app_6bYv8jJCU72','new key sg_test_Lz0x; 1 older revoked');
INSERT INTO audit VALUES(11,1795608000444,'cli:root','set_tier','app_6bYv8jJCU72','from free to teams');
INSERT INTO audit VALUES(12,1795608000455,'cli:root','revoke_all','app_BChWgCQP42t','1 key');
INSERT INTO audit VALUES(13,1795608000468,'owner:own_G05BWLJEuh4','create_account','','own_G05BWLJEuh4, terms 1');
INSERT INTO audit VALUES(14,1795608000471,'owner:own_G05BWLJEuh4','create','app_1LOO8strKfH','tier free, key sg_test_Whty, owner own_G05BWLJEuh4');
CREATE TABLE ledger (
    day         TEXT    NOT NULL, -- 2026-11-21, UTC; every day before the newest is closed
    application TEXT    NOT NULL,
    granted     INTEGER NOT NULL, -- units leased to gateways; what they did not spend is part of it
    grace       INTEGER NOT NULL DEFAULT 0, -- units promised to gateways for when they cannot write here
    PRIMARY KEY (day, application)
) STRICT, WITHOUT ROWID;
INSERT INTO ledger VALUES('2026-11-24','app_BChWgCQP42t',1,0);
INSERT INTO ledger VALUES('2026-11-24','app_BH6nBsCldra',5,0);
INSERT INTO ledger VALUES('2026-11-24','app_LxIGuVnIxKa',2,0);
INSERT INTO ledger VALUES('2026-11-25','app_1LOO8strKfH',6,0);
INSERT INTO ledger VALUES('2026-11-25','app_44DhhWWmWPi',2,0);
INSERT INTO ledger VALUES('2026-11-25','app_6bYv8jJCU72',4,0);
INSERT INTO ledger VALUES('2026-11-25','app_BH6nBsCldra',13,100);
INSERT INTO ledger VALUES('2026-11-25','app_EVH6dmszmMH',1,0);
INSERT INTO ledger VALUES('2026-11-25','app_LOyIsklA1uM',5,0);
INSERT INTO ledger VALUES('2026-11-25','app_LxIGuVnIxKa',13,0);
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
INSERT INTO ledger_nodes VALUES('2026-11-24','app_BChWgCQP42t',8062591092321932464,2,1,1000,1000);
INSERT INTO ledger_nodes VALUES('2026-11-24','app_BH6nBsCldra',8062591092321932464,8,3,100,100);
INSERT INTO ledger_nodes VALUES('2026-11-24','app_LxIGuVnIxKa',8062591092321932464,2,0,0,0);
INSERT INTO ledger_nodes VALUES('2026-11-25','app_1LOO8strKfH',8661356795938347966,6,0,0,0);
INSERT INTO ledger_nodes VALUES('2026-11-25','app_44DhhWWmWPi',8661356795938347966,4,2,100,100);
INSERT INTO ledger_nodes VALUES('2026-11-25','app_6bYv8jJCU72',8661356795938347966,8,4,1000,1000);
INSERT INTO ledger_nodes VALUES('2026-11-25','app_BH6nBsCldra',595749017325333630,4,0,100,0);
INSERT INTO ledger_nodes VALUES('2026-11-25','app_BH6nBsCldra',8661356795938347966,18,9,100,100);
INSERT INTO ledger_nodes VALUES('2026-11-25','app_EVH6dmszmMH',8661356795938347966,2,1,100,100);
INSERT INTO ledger_nodes VALUES('2026-11-25','app_LOyIsklA1uM',8661356795938347966,8,3,100,100);
INSERT INTO ledger_nodes VALUES('2026-11-25','app_LxIGuVnIxKa',8661356795938347966,13,0,0,0);
CREATE TABLE calendar (
    day TEXT NOT NULL -- the current day; every earlier day is closed
) STRICT;
INSERT INTO calendar VALUES('2026-11-25');
CREATE TABLE usage_nodes (
    day         TEXT    NOT NULL,
    application TEXT    NOT NULL,
    node        INTEGER NOT NULL, -- one gateway process
    units       INTEGER NOT NULL, -- delivered by it; only grows
    PRIMARY KEY (day, application, node)
) STRICT, WITHOUT ROWID;
INSERT INTO usage_nodes VALUES('2026-11-24','app_BChWgCQP42t',8062591092321932464,1);
INSERT INTO usage_nodes VALUES('2026-11-24','app_BH6nBsCldra',8062591092321932464,5);
INSERT INTO usage_nodes VALUES('2026-11-24','app_LxIGuVnIxKa',8062591092321932464,2);
INSERT INTO usage_nodes VALUES('2026-11-25','app_1LOO8strKfH',8661356795938347966,6);
INSERT INTO usage_nodes VALUES('2026-11-25','app_44DhhWWmWPi',8661356795938347966,2);
INSERT INTO usage_nodes VALUES('2026-11-25','app_6bYv8jJCU72',8661356795938347966,4);
INSERT INTO usage_nodes VALUES('2026-11-25','app_BH6nBsCldra',8661356795938347966,9);
INSERT INTO usage_nodes VALUES('2026-11-25','app_EVH6dmszmMH',8661356795938347966,1);
INSERT INTO usage_nodes VALUES('2026-11-25','app_LOyIsklA1uM',8661356795938347966,5);
INSERT INTO usage_nodes VALUES('2026-11-25','app_LxIGuVnIxKa',8661356795938347966,13);
CREATE TABLE usage_days (
    day         TEXT    NOT NULL,
    application TEXT    NOT NULL,
    units       INTEGER NOT NULL, -- delivered by all
    PRIMARY KEY (day, application)
) STRICT, WITHOUT ROWID;
CREATE TABLE request_nodes (
    day         TEXT    NOT NULL,
    application TEXT    NOT NULL,
    endpoint    TEXT    NOT NULL,
    outcome     TEXT    NOT NULL,
    node        INTEGER NOT NULL, -- one gateway process
    requests    INTEGER NOT NULL, -- answered by it; only grows
    PRIMARY KEY (day, application, endpoint, outcome, node)
) STRICT, WITHOUT ROWID;
INSERT INTO request_nodes VALUES('2026-11-24','app_BChWgCQP42t','models','ok',8062591092321932464,1);
INSERT INTO request_nodes VALUES('2026-11-24','app_BH6nBsCldra','models','ok',8062591092321932464,5);
INSERT INTO request_nodes VALUES('2026-11-24','app_LxIGuVnIxKa','models','ok',8062591092321932464,2);
INSERT INTO request_nodes VALUES('2026-11-25','app_1LOO8strKfH','models','ok',8661356795938347966,6);
INSERT INTO request_nodes VALUES('2026-11-25','app_44DhhWWmWPi','models','ok',8661356795938347966,2);
INSERT INTO request_nodes VALUES('2026-11-25','app_6bYv8jJCU72','models','ok',8661356795938347966,4);
INSERT INTO request_nodes VALUES('2026-11-25','app_BH6nBsCldra','index','ok',8661356795938347966,1);
INSERT INTO request_nodes VALUES('2026-11-25','app_BH6nBsCldra','model','ok',8661356795938347966,1);
INSERT INTO request_nodes VALUES('2026-11-25','app_BH6nBsCldra','models','ok',8661356795938347966,7);
INSERT INTO request_nodes VALUES('2026-11-25','app_EVH6dmszmMH','models','ok',8661356795938347966,1);
INSERT INTO request_nodes VALUES('2026-11-25','app_LOyIsklA1uM','models','ok',8661356795938347966,5);
INSERT INTO request_nodes VALUES('2026-11-25','app_LxIGuVnIxKa','models','ok',8661356795938347966,13);
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
INSERT INTO owners VALUES('own_G05BWLJEuh4','ann@example.org','ann@example.org',1795608000468,'1',1795608000468,NULL,NULL);
CREATE TABLE owned_applications (
    application TEXT NOT NULL PRIMARY KEY,
    owner       TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO owned_applications VALUES('app_1LOO8strKfH','own_G05BWLJEuh4');
CREATE TABLE sign_in_links (
    digest     BLOB    NOT NULL PRIMARY KEY, -- SHA-256 of the token
    mailbox    TEXT    NOT NULL,
    email      TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    used_at    INTEGER
) STRICT, WITHOUT ROWID;
INSERT INTO sign_in_links VALUES(X'58dd9b9ba554f7428abbbad30b214f8d6d9eded0c1a15d38bf043419c8da15de','ann@example.org','ann@example.org',1795608000462,1795608900462,1795608000468);
CREATE TABLE owner_sessions (
    digest     BLOB    NOT NULL PRIMARY KEY, -- SHA-256 of the token
    owner      TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO owner_sessions VALUES(X'7750650b3edfedd0243e8d766a0e220d471b31dbb19263895b5f283f84d50c9e','own_G05BWLJEuh4',1795608000468,1795651200468);
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
INSERT INTO mail_queue VALUES('1a21293b7ce.2d2e1acc37df0b32@127.0.0.1','sign_in','ann@example.org','Sign in to Example',replace('Open this link to sign in to Example:\n\nhttp://127.0.0.1:8080/account/confirm?token=QXn33UdkDdJVefKjWW1bWhPvEI2U3jdSkj1ZTvlJsp4\n\nPress the button on that page to sign in. The link works once and expires in 15 minutes.\n\nIf you did not request this e-mail, you can ignore it. Nobody can sign in without the link.\n','\n',char(10)),replace('<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>Sign in to Example</title></head>\n<body>\n<p>Open this link to sign in to Example:</p>\n<p><a href="http://127.0.0.1:8080/account/confirm?token=QXn33UdkDdJVefKjWW1bWhPvEI2U3jdSkj1ZTvlJsp4">http://127.0.0.1:8080/account/confirm?token=QXn33UdkDdJVefKjWW1bWhPvEI2U3jdSkj1ZTvlJsp4</a></p>\n<p>Press the button on that page to sign in. The link works once and expires in 15 minutes.</p>\n<p>If you did not request this e-mail, you can ignore it. Nobody can sign in without the link.</p>\n</body></html>\n','\n',char(10)),1795608000462,1795608900462,1795608340824,4,'connection refused at the connection attempt');
CREATE TABLE closed_applications (
    mailbox_digest BLOB NOT NULL, -- SHA-256 of the mailbox of the owner
    application    TEXT NOT NULL,
    day            TEXT NOT NULL, -- the UTC day on which it was closed
    PRIMARY KEY (mailbox_digest, application)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX keys_by_digest ON keys (digest);
CREATE INDEX audit_by_application ON audit (application, at);
CREATE INDEX status_messages_by_incident ON status_messages (incident, id);
CREATE INDEX owned_applications_by_owner ON owned_applications (owner);
CREATE INDEX sign_in_links_by_mailbox ON sign_in_links (mailbox, created_at);
CREATE INDEX sign_in_links_by_expiry ON sign_in_links (expires_at);
CREATE INDEX owner_sessions_by_owner ON owner_sessions (owner);
CREATE INDEX owner_sessions_by_expiry ON owner_sessions (expires_at);
CREATE INDEX mail_queue_by_due ON mail_queue (due_at);
CREATE INDEX closed_applications_by_day ON closed_applications (day);
COMMIT;
