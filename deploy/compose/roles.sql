-- Run by the database's image when its data directory is created: the role that owns the tables, the one of the gateways, and
-- their database.
\set owner_password `cat /run/secrets/database-owner-password`
\set gateway_password `cat /run/secrets/database-gateway-password`
CREATE ROLE scoregate_owner LOGIN PASSWORD :'owner_password';
-- Three connections for each gateway, and as many again for those of gateways that were just stopped or killed.
CREATE ROLE gateway LOGIN PASSWORD :'gateway_password' CONNECTION LIMIT 18;
CREATE DATABASE scoregate OWNER scoregate_owner;
REVOKE CONNECT, TEMPORARY ON DATABASE scoregate FROM PUBLIC;
GRANT CONNECT ON DATABASE scoregate TO gateway;
