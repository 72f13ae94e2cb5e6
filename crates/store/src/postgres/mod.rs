//! The shared engine: a PostgreSQL database for several gateways.
//!
//! Keys, audit trail and ledger are rows of ordinary tables; every call is one transaction with a deadline. Statements
//! have no names and no session state, so that a connection pooler in transaction mode can be in between.

mod all_applications;
mod connection;
mod documents;
mod health;
mod ledger;
mod outdated;
mod postgres_store;
mod reports;
mod restore;
mod sql_tables;
mod tables;
#[cfg(test)]
mod tests;
mod transfer;

pub use connection::address::{BadDatabaseUrl, DatabaseAddress};
pub use connection::database_connection::{BadName, DatabaseConfig, RoleName, SchemaName};
pub use connection::hosts::ConnectionFault;
pub use connection::open_failure::{CONNECTIONS_PER_GATEWAY, OpenFailure, connection_limit};
pub(crate) use connection::schema_client::SchemaClient;
pub use connection::seen_timelines::SeenTimelines;
pub use connection::tls::{BadDatabaseFile, ClientCertificateFiles, DatabaseSettings};
pub use postgres_store::PostgresStore;
pub use reports::inspect::DatabaseReport;
pub use restore::DatabaseRestore;
pub use tables::{TablesChange, TablesWork};
pub use transfer::DatabaseExport;
