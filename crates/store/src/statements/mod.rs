//! Statements that run on both engines: on a file connection or a database connection.

mod engine_features;
mod fault;
mod fields;
mod file_connection;
mod rows;
pub mod schema;
mod schema_client;
mod schema_name;
mod tables;

pub use engine_features::{EngineFeatures, ServerHistory};
pub use fault::{Done, Fault};
pub use fields::{KEYS_AND_UNITS, SqlField};
pub use file_connection::{FileConnection, done};
pub use rows::{BadRecord, RowResult, SqlRow};
pub use schema_client::SchemaClient;
pub use schema_name::{BadName, RoleName, SchemaName};
pub use tables::{ROWS_AT_ONCE, SiteLock, Tables, parameters};
