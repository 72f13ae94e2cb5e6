//! Opens the store: the file in the data directory, or the database that several gateways share.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;

use crate::clock::Clock;
use crate::config::Config;
use crate::store::{
    DatabaseConfig, DatabaseSettings, Embedded as EmbeddedStore, LocalCopy, OpenFailure, PostgresStore,
    SeenTimelines, Store, VerifiedLocalCopy,
};

/// The store of a server.
pub(super) struct ServerStore {
    pub(super) store: Arc<dyn Store>,
    /// The local copy, if the store is unreachable.
    pub(super) copy: Option<VerifiedLocalCopy>,
}

/// Opens the configured store.
pub async fn open_store(config: &Config, data_dir: &Path, clock: &Clock) -> anyhow::Result<Arc<dyn Store>> {
    if let Some(settings) = &config.database {
        let database = read_database_files(settings).await?;
        let directory = data_dir.to_owned();
        let seen = tokio::task::spawn_blocking(move || SeenTimelines::read_in(&directory)).await?;
        let store = PostgresStore::unopened(database, clock.clone(), seen);
        let checked = Box::pin(store.check()).await;
        checked.with_context(|| format!("the database {}", settings.address))?;
        return Ok(Arc::new(store));
    }
    let directory = data_dir.to_owned();
    // Opening checks the file and may migrate it, so not on a serving thread.
    let store = tokio::task::spawn_blocking(move || EmbeddedStore::open(&directory)).await??;
    Ok(Arc::new(store))
}

/// Opens the store of a server. If the database is unreachable, the server can start from the local copy of the keys.
pub(super) async fn open_for_server(
    config: &Config,
    data_dir: &Path,
    clock: &Clock,
) -> anyhow::Result<ServerStore> {
    let Some(settings) = &config.database else {
        return Ok(ServerStore { store: open_store(config, data_dir, clock).await?, copy: None });
    };
    let database = read_database_files(settings).await?;
    let directory = data_dir.to_owned();
    let seen = tokio::task::spawn_blocking(move || SeenTimelines::kept_in(&directory)).await?;
    let store = PostgresStore::unopened(database, clock.clone(), seen);
    let named = || format!("the database {}", settings.address);
    let error = match Box::pin(store.check()).await {
        Ok(()) => return Ok(ServerStore { store: Arc::new(store), copy: None }),
        Err(unusable @ OpenFailure::UnusableTables(_)) => return Err(unusable).with_context(named),
        Err(OpenFailure::Unreachable(error)) => error,
    };
    let Some(copy) = usable_copy(data_dir).await? else { return Err(error).with_context(named) };
    store.accept_only(copy.reading().position.data_set());
    let (read_at, database) = (copy.reading().at.rfc3339(), settings.address.to_string());
    tracing::error!(
        %error, read_at, database,
        "database unreachable: started from the local copy of the keys. No units are leased, so requests for data get 503          until the database answers; changes of keys since the copy was read are unknown. Restore the database, or correct          store.url and restart"
    );
    Ok(ServerStore { store: Arc::new(store), copy: Some(copy) })
}

/// The local copy, if there is one without damage.
async fn usable_copy(data_dir: &Path) -> anyhow::Result<Option<VerifiedLocalCopy>> {
    let copy = LocalCopy::of(data_dir);
    let path = copy.path().display().to_string();
    let opened = tokio::task::spawn_blocking(move || copy.open()).await?;
    Ok(opened.unwrap_or_else(|flaw| {
        tracing::error!(%flaw, path, "local copy of the keys ignored");
        None
    }))
}

/// The database with its TLS files.
async fn read_database_files(settings: &DatabaseSettings) -> anyhow::Result<DatabaseConfig> {
    let settings = settings.clone();
    Ok(tokio::task::spawn_blocking(move || settings.read_files()).await??)
}
