//! Statements that run on both engines: on a file connection or a database connection.

mod engine_features;
mod fault;
mod fields;
mod file_connection;
mod rows;
pub(crate) mod schema;
mod schema_client;
mod schema_name;
mod tables;

pub(crate) use engine_features::{EngineFeatures, ServerHistory};
pub(crate) use fault::{Done, Fault};
pub(crate) use fields::{KEYS_AND_UNITS, SqlField};
pub(crate) use file_connection::{FileConnection, done};
pub(crate) use rows::{BadRecord, RowResult, SqlRow};
pub(crate) use schema_client::SchemaClient;
pub use schema_name::{BadName, RoleName, SchemaName};
pub(crate) use tables::{ROWS_AT_ONCE, SiteLock, Tables, parameters};
