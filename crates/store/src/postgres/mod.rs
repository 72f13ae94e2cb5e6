//! The shared engine: a PostgreSQL database for several gateways.
//!
//! Keys, audit trail and ledger are rows of ordinary tables. Every call is one transaction with a deadline. Statements
//! are unnamed and use no session state, so that a connection pooler in transaction mode can be used.

mod connection;
mod database_engine;
mod documents;
mod ledger;
mod reports;
pub mod tables;
#[cfg(test)]
mod tests;

pub use connection::address::{BadDatabaseUrl, DatabaseAddress};
pub use connection::database_connection::DatabaseConfig;
pub use connection::database_connection::DatabaseConnection;
pub use connection::hosts::ConnectionFault;
pub use connection::hosts::{described, no_answer};
pub use connection::link::DatabaseLink;
pub use connection::open_failure::{CONNECTIONS_PER_GATEWAY, OpenFailure, connection_limit};
pub use connection::seen_timelines::SeenTimelines;
pub use connection::tls::{BadDatabaseFile, ClientCertificateFiles, DatabaseSettings};
pub use database_engine::DatabaseEngine;
pub use documents::shared_documents::PostgresDocuments;
pub use reports::inspect;
pub use reports::inspect::DatabaseReport;
pub use tables::{IS_OWN, newer};
pub use tables::{TablesChange, TablesWork};
