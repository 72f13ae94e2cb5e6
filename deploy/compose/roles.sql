-- Run by the database's image when its data directory is created: the role that owns the tables, the one of the gateways, and
-- their database.
\set owner_password `cat /run/secrets/database-owner-password`
\set gateway_password `cat /run/secrets/database-gateway-password`
CREATE ROLE scoregate_owner LOGIN PASSWORD :'owner_password';
-- Seven connections for each gateway, and as many again for those of gateways that were killed or have vanished.
CREATE ROLE gateway LOGIN PASSWORD :'gateway_password' CONNECTION LIMIT 42;
-- The server notices within a minute that a gateway has vanished.
ALTER ROLE gateway SET tcp_keepalives_idle = 30;
ALTER ROLE gateway SET tcp_keepalives_interval = 10;
ALTER ROLE gateway SET tcp_keepalives_count = 3;
CREATE DATABASE scoregate OWNER scoregate_owner;
REVOKE CONNECT, TEMPORARY ON DATABASE scoregate FROM PUBLIC;
GRANT CONNECT ON DATABASE scoregate TO gateway;
