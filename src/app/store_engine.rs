//! Opens the store: the file in the data directory, or the database that several gateways share.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;

use crate::clock::Clock;
use crate::config::Config;
use crate::store::{DatabaseConfig, DatabaseSettings, Embedded as EmbeddedStore, PostgresStore, Store};

/// Opens the configured store.
pub async fn open_store(config: &Config, data_dir: &Path, clock: &Clock) -> anyhow::Result<Arc<dyn Store>> {
    if let Some(settings) = &config.database {
        let database = read_database_files(settings).await?;
        let opened = Box::pin(PostgresStore::open(database, clock.clone())).await;
        return Ok(Arc::new(opened.with_context(|| format!("the database {}", settings.address))?));
    }
    let directory = data_dir.to_owned();
    // Opening checks the file and may migrate it, so not on a serving thread.
    let store = tokio::task::spawn_blocking(move || EmbeddedStore::open(&directory)).await??;
    Ok(Arc::new(store))
}

/// The database with its TLS files.
async fn read_database_files(settings: &DatabaseSettings) -> anyhow::Result<DatabaseConfig> {
    let settings = settings.clone();
    Ok(tokio::task::spawn_blocking(move || settings.read_files()).await??)
}
