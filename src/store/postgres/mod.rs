//! The shared engine: a PostgreSQL database for several gateways.
//!
//! Keys, audit trail and ledger are rows of ordinary tables; every call is one transaction with a deadline. Statements
//! have no names and no session state, so that a connection pooler in transaction mode can be in between.

mod address;
mod audit;
mod changes;
mod closed_applications;
mod connection;
mod daily_totals;
mod document_statements;
mod documents;
mod feed;
mod grace_shares;
mod hosts;
mod inspect;
mod key_store;
mod ledger;
mod ledger_queue;
mod ledger_store;
mod link;
mod listener;
mod mail_queue;
mod minutes;
mod nodes;
mod opening;
mod outdated;
mod owner_store;
mod owners;
mod postgres_store;
mod records;
mod reports;
mod schema;
mod schema_client;
mod schema_steps;
mod seen_timelines;
mod server_check;
mod server_history;
mod sign_in;
mod status;
mod terms_columns;
#[cfg(test)]
mod tests;
mod tls;
mod transfer;
mod whole;

pub use address::{BadDatabaseUrl, DatabaseAddress};
pub use connection::{BadName, DatabaseConfig, RoleName, SchemaName};
pub use inspect::DatabaseReport;
pub use opening::{CONNECTIONS_PER_GATEWAY, OpenFailure, connection_limit};
pub use postgres_store::PostgresStore;
pub use schema::{TablesChange, TablesWork};
pub use seen_timelines::SeenTimelines;
pub use tls::{BadDatabaseFile, ClientCertificateFiles, DatabaseSettings};
pub use transfer::DatabaseExport;
