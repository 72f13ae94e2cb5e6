PRAGMA application_id = 0;
PRAGMA user_version = 3;
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
) STRICT, WITHOUT ROWID;
INSERT INTO applications VALUES('app_0U1moxIkaUB','Weather site','pro',NULL,NULL,'ops@example.org',NULL,1795744905063);
INSERT INTO applications VALUES('app_0x7AHNvURtS','Moved','teams',NULL,NULL,NULL,NULL,1795744905127);
INSERT INTO applications VALUES('app_1taEu1bcepp','Revoked','teams',NULL,NULL,NULL,NULL,1795744905112);
INSERT INTO applications VALUES('app_3sw9BrAQLHY','Expired','pro',NULL,NULL,NULL,NULL,1795744905122);
INSERT INTO applications VALUES('app_ApxHm9bl2VL','Rotated','pro',NULL,NULL,NULL,'a note',1795744905107);
INSERT INTO applications VALUES('app_B7rmsztl5zB','Imported','pro',NULL,NULL,NULL,NULL,1795744905133);
INSERT INTO applications VALUES('app_KCVwHFDKeml','Own limits','free',100,20,NULL,NULL,1795744905070);
CREATE TABLE keys (
    application TEXT    NOT NULL REFERENCES applications (id),
    digest      BLOB    NOT NULL, -- SHA-256 of the key: hex(digest)
    shown       TEXT    NOT NULL, -- the key's first characters
    created_at  INTEGER NOT NULL, -- milliseconds since 1970, like the two below
    expires_at  INTEGER,
    revoked_at  INTEGER, last_used_at INTEGER,
    PRIMARY KEY (application, digest)
) STRICT, WITHOUT ROWID;
INSERT INTO keys VALUES('app_0U1moxIkaUB',X'b9e583e0f249721879c545a634ce7637f800f63cef051a975a33b2236f8b35a1','sg_test_3V64',1795744905063,NULL,NULL,1795744800000);
INSERT INTO keys VALUES('app_0x7AHNvURtS',X'b8ae88096ec631f5e55dac8fe4d4fb29e1fc537aaca201f0ea64a8b195b8f5f1','sg_test_h6yz',1795744905408,NULL,NULL,1795744800000);
INSERT INTO keys VALUES('app_0x7AHNvURtS',X'ec1e6c1dff89a521075deb55440d1d1e26395e36b4e435d095aa9959eaaf1d65','sg_test_O2NS',1795744905127,1795744905408,NULL,NULL);
INSERT INTO keys VALUES('app_1taEu1bcepp',X'a24039bc437cf9541a4aa547809111fd97b002299e950da5ae871d79029fb62a','sg_test_sVM8',1795744905112,NULL,1795744905448,1795744800000);
INSERT INTO keys VALUES('app_3sw9BrAQLHY',X'38455f07764cec33ad6fa5fb5a6703dea9a05bcd5797713af046679711467e38','sg_test_WNXk',1795744905122,1795745504000,NULL,1795744800000);
INSERT INTO keys VALUES('app_ApxHm9bl2VL',X'9f7e047e45b2a30573a1bf71526ef1fad3b662b4033595c557a542b862855f36','sg_test_OUc6',1795744905379,NULL,NULL,1795744800000);
INSERT INTO keys VALUES('app_ApxHm9bl2VL',X'c88638ee3f25cb155dc16c90b1d344030bff985631dcf2244ecd1e7615f4e970','sg_test_dhPe',1795744905107,1795831305379,NULL,1795744800000);
INSERT INTO keys VALUES('app_B7rmsztl5zB',X'e36ad7c5d8d3e4bcde4b75d9a01a827e605a9e0b16ef7f2266b67fe0eb8d3687','sha256:e36ad7c5',1795744905133,NULL,NULL,1795744800000);
INSERT INTO keys VALUES('app_KCVwHFDKeml',X'ffceb074b9eb7caa4f48d12fc7326b15ae3329bdd31d774eed2ab806340e7eef','sg_test_Dm3U',1795744905070,NULL,NULL,1795744800000);
CREATE TABLE audit (
    id          INTEGER NOT NULL PRIMARY KEY,
    at          INTEGER NOT NULL, -- milliseconds since 1970
    who         TEXT    NOT NULL,
    what        TEXT    NOT NULL,
    application TEXT    NOT NULL,
    detail      TEXT    NOT NULL
) STRICT;
INSERT INTO audit VALUES(1,1795744905063,'cli','create','app_0U1moxIkaUB','tier "pro", key "sg_test_3V64"');
INSERT INTO audit VALUES(2,1795744905070,'cli','create','app_KCVwHFDKeml','tier "free", key "sg_test_Dm3U"');
INSERT INTO audit VALUES(3,1795744905099,'cli','set_limits','app_KCVwHFDKeml','own limits, 100 a minute, 20 a day');
INSERT INTO audit VALUES(4,1795744905107,'cli','create','app_ApxHm9bl2VL','tier "pro", key "sg_test_dhPe"');
INSERT INTO audit VALUES(5,1795744905112,'cli','create','app_1taEu1bcepp','tier "teams", key "sg_test_sVM8"');
INSERT INTO audit VALUES(6,1795744905122,'cli','create','app_3sw9BrAQLHY','tier "pro", key "sg_test_WNXk" until 2026-11-27T02:11:44Z');
INSERT INTO audit VALUES(7,1795744905127,'cli','create','app_0x7AHNvURtS','tier "free", key "sg_test_O2NS"');
INSERT INTO audit VALUES(8,1795744905133,'cli','create','app_B7rmsztl5zB','tier "pro", key "sha256:e36ad7c5"');
INSERT INTO audit VALUES(9,1795744905379,'cli','rotate','app_ApxHm9bl2VL','new key "sg_test_OUc6"; 1 older ended at 2026-11-28T02:01:45.379Z');
INSERT INTO audit VALUES(10,1795744905408,'cli','rotate','app_0x7AHNvURtS','new key "sg_test_h6yz"; 1 older ended at 2026-11-27T02:01:45.408Z');
INSERT INTO audit VALUES(11,1795744905423,'cli','set_tier','app_0x7AHNvURtS','from "free" to "teams"');
INSERT INTO audit VALUES(12,1795744905448,'cli','revoke_all','app_1taEu1bcepp','1 keys');
CREATE TABLE ledger (
    day         TEXT    NOT NULL, -- 2026-11-21, UTC; every day before the newest is closed
    application TEXT    NOT NULL,
    granted     INTEGER NOT NULL, -- units leased to gateways; what they did not spend is part of it
    grace       INTEGER NOT NULL DEFAULT 0, -- units promised to gateways for when they cannot write here
    PRIMARY KEY (day, application)
) STRICT, WITHOUT ROWID;
INSERT INTO ledger VALUES('2026-11-27','app_0U1moxIkaUB',114,100);
INSERT INTO ledger VALUES('2026-11-27','app_0x7AHNvURtS',4,0);
INSERT INTO ledger VALUES('2026-11-27','app_1taEu1bcepp',1,0);
INSERT INTO ledger VALUES('2026-11-27','app_3sw9BrAQLHY',2,0);
INSERT INTO ledger VALUES('2026-11-27','app_ApxHm9bl2VL',5,0);
INSERT INTO ledger VALUES('2026-11-27','app_B7rmsztl5zB',1,0);
INSERT INTO ledger VALUES('2026-11-27','app_KCVwHFDKeml',15,0);
CREATE UNIQUE INDEX keys_by_digest ON keys (digest);
CREATE INDEX audit_by_application ON audit (application, at);
COMMIT;
