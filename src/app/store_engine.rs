//! Opens the store: the file in the data directory, or the database that several gateways share.

use std::{num::NonZeroU32, path::Path, sync::Arc, time::Duration};

use anyhow::Context as _;

use crate::{
    accounts::{KeyDirectory, KeyFreshness},
    config::Config,
    registry::DirectoryKeeper,
};
use scoregate_base::clock::{Clock, Mono};
use scoregate_store::{
    ConnectionFault, CopiedReading, DatabaseAddress, DatabaseConfig, DatabaseSettings, LocalFile,
    OpenFailure, SeenTimelines, Store, StoreError,
};

const UNREADABLE: &str = "the stored applications and keys cannot be read";
/// Pause between attempts to reach the database at startup.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

pub struct ServerStore {
    pub store: Store,
    pub local: Arc<LocalFile>,
    /// Empty until the keys are loaded.
    pub key_directory: Arc<KeyDirectory>,
    /// `None` for a file in the data directory, which no other gateway uses.
    pub fleet: Option<FleetStore>,
}

/// A database that gateways share, during the start of a server.
pub struct FleetStore {
    pub gateways: NonZeroU32,
    /// Maximum time that requests wait for units.
    pub timeout: Duration,
    database: StartingDatabase,
    /// The time up to which the local copy is complete, if the database is unreachable.
    copied: Option<CopiedReading>,
}

/// The connection to the shared database during startup.
struct StartingDatabase {
    store: Store,
    address: DatabaseAddress,
    local: Arc<LocalFile>,
    clock: Clock,
    /// No attempt to reach the database starts after this time.
    until: Mono,
}

/// Opens the configured store.
pub async fn open_store(config: &Config, data_dir: &Path, clock: &Clock) -> anyhow::Result<Store> {
    if let Some(settings) = &config.database {
        let database = read_database_files(settings).await?;
        let directory = data_dir.to_owned();
        let seen =
            tokio::task::spawn_blocking(move || SeenTimelines::read_in(&directory)).await??;
        let store = Store::in_database(database, clock.clone(), seen);
        let checked = Box::pin(store.check()).await;
        checked.with_context(|| format!("the database {}", settings.address))?;
        return Ok(store);
    }
    let directory = data_dir.to_owned();
    // Opening the store checks the file and may migrate it, so it does not run on a serving thread.
    let store = tokio::task::spawn_blocking(move || Store::open(&directory)).await??;
    Ok(store)
}

/// Opens the store of a server. If the database is unreachable, the server can start from the local copy of the keys.
pub async fn open_for_server(
    config: &Config,
    data_dir: &Path,
    clock: &Clock,
) -> anyhow::Result<ServerStore> {
    match &config.database {
        Some(settings) => open_database(settings, config, data_dir, clock).await,
        None => open_file(config, data_dir, clock).await,
    }
}

async fn open_file(config: &Config, data_dir: &Path, clock: &Clock) -> anyhow::Result<ServerStore> {
    let store = open_store(config, data_dir, clock).await?;
    // The local file is opened after the store, so that a failed start does not create it.
    let local = open_local(data_dir).await?;
    Ok(ServerStore {
        store,
        local,
        key_directory: Arc::default(),
        fleet: None,
    })
}

async fn open_database(
    settings: &DatabaseSettings,
    config: &Config,
    data_dir: &Path,
    clock: &Clock,
) -> anyhow::Result<ServerStore> {
    let database = read_database_files(settings).await?;
    let local = open_local(data_dir).await?;
    let kept = Arc::clone(&local);
    let seen = tokio::task::spawn_blocking(move || SeenTimelines::kept_in(kept)).await??;
    let store = Store::in_database(database, clock.clone(), seen);
    let database = StartingDatabase {
        store: store.clone(),
        address: settings.address.clone(),
        local: Arc::clone(&local),
        clock: clock.clone(),
        until: clock.mono().plus(settings.start_timeout),
    };
    let connected = database
        .retrying(async || store.connect_to_serve().await, is_transient)
        .await;
    let copied = match connected {
        Ok(()) => None,
        Err(failure) if !is_transient(&failure) => {
            return Err(failure.error).with_context(|| database.name());
        }
        Err(failure) => Some(database.copy_instead(failure.error).await?),
    };
    let gateways = config.gateways;
    let timeout = settings.timeout;
    let fleet = Some(FleetStore {
        gateways,
        timeout,
        database,
        copied,
    });
    let key_directory = Arc::new(KeyDirectory::shared(KeyFreshness::shared(
        config.keys_max_age,
    )));
    Ok(ServerStore {
        store,
        local,
        key_directory,
        fleet,
    })
}

/// Whether a later attempt to connect may succeed.
fn is_transient(failure: &OpenFailure) -> bool {
    match failure.kind {
        ConnectionFault::Unreachable | ConnectionFault::Refused => true,
        ConnectionFault::Unusable => false,
    }
}

/// Whether a later attempt to read the keys may succeed.
fn is_unavailable(error: &StoreError) -> bool {
    matches!(error, StoreError::Unavailable { .. })
}

impl ServerStore {
    /// Loads the keys from the store, or from the local copy if the database is unreachable.
    pub async fn load_keys(self, keeper: &DirectoryKeeper) -> anyhow::Result<()> {
        let Some(FleetStore {
            database, copied, ..
        }) = self.fleet
        else {
            return keeper.load().await.context(UNREADABLE);
        };
        let copy = if let Some(copied) = copied {
            copied
        } else {
            match database
                .retrying(async || keeper.load().await, is_unavailable)
                .await
            {
                Ok(()) => return Ok(()),
                Err(error) if is_unavailable(&error) => {
                    database.copy_instead(error).await.context(UNREADABLE)?
                }
                Err(error) => return Err(error).context(UNREADABLE),
            }
        };
        keeper
            .load_copy(&self.local, &copy)
            .await
            .context("the local copy of the keys cannot be read")
    }
}

impl StartingDatabase {
    fn name(&self) -> String {
        format!("the database {}", self.address)
    }

    /// Retries an operation that may succeed later, until the startup time limit.
    async fn retrying<E: std::fmt::Display>(
        &self,
        attempt: impl AsyncFn() -> Result<(), E>,
        is_transient: impl Fn(&E) -> bool,
    ) -> Result<(), E> {
        let mut is_logged = false;
        loop {
            let Err(error) = attempt().await else {
                return Ok(());
            };
            let now = self.clock.mono();
            if !is_transient(&error) || now.plus(RETRY_PAUSE) > self.until {
                return Err(error);
            }
            if !std::mem::replace(&mut is_logged, true) {
                let database = self.address.to_string();
                let seconds = self.until.since(now).as_secs();
                tracing::warn!(%error, database, "cannot use the database; retrying for {seconds} s");
            }
            self.clock.sleep(RETRY_PAUSE).await;
        }
    }

    /// Finds the local copy from which the server starts instead. Returns `error` if there is none.
    async fn copy_instead(&self, error: StoreError) -> anyhow::Result<CopiedReading> {
        let Some(copy) = usable_copy(&self.local).await? else {
            return Err(error).with_context(|| self.name());
        };
        self.store.accept_only(copy.position.data_set());
        let read_at = copy.at.rfc3339();
        let database = self.address.to_string();
        tracing::error!(
            %error, read_at, database,
            "cannot use the database: serving from the local copy of the keys. No units can be leased: paid tiers use this \
             gateway's grace share if it holds one; all other data requests get 503 until the database can be used. Key changes \
             since the copy was read are unknown. Restore the database, or correct store.url and restart"
        );
        Ok(copy)
    }
}

/// The time up to which the local copy is complete, if there is an undamaged copy.
async fn usable_copy(local: &Arc<LocalFile>) -> anyhow::Result<Option<CopiedReading>> {
    let local = Arc::clone(local);
    let opened = tokio::task::spawn_blocking(move || {
        local.check_copy()?;
        local.copied()
    });
    Ok(opened.await?.unwrap_or_else(|flaw| {
        tracing::error!(%flaw, "local copy of the keys ignored");
        None
    }))
}

/// Opens the local file of this machine.
async fn open_local(data_dir: &Path) -> anyhow::Result<Arc<LocalFile>> {
    let directory = data_dir.to_owned();
    let opened = tokio::task::spawn_blocking(move || LocalFile::open(&directory)).await?;
    Ok(Arc::new(opened.with_context(|| {
        data_dir.join(LocalFile::NAME).display().to_string()
    })?))
}

/// The database with its TLS files.
async fn read_database_files(settings: &DatabaseSettings) -> anyhow::Result<DatabaseConfig> {
    let settings = settings.clone();
    Ok(tokio::task::spawn_blocking(move || settings.read_files()).await??)
}
