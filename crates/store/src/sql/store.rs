//! The store: a file or a database, and the calls that both answer with the same statements.
//!
//! Each subject adds its calls in a file of its own.

use std::path::Path;
use std::sync::Arc;

use crate::dump;
use crate::embedded::FileEngine;
use crate::postgres::{DatabaseEngine, DatabaseLink, PostgresDocuments, inspect};
use crate::statements::schema::FORMAT;
use crate::statements::{Done, FileConnection, SchemaClient, Tables, done};
use crate::{
    ConnectionFault, DatabaseConfig, DatabaseStatus, ExchangeCounts, OpenFailure, SeenTimelines,
    SharedDocuments, StoreResult,
};
use scoregate_base::clock::Clock;

/// A store. Clones are the same store. When the last one is dropped, queued work on a file is completed; the drop waits for
/// that.
#[derive(Clone)]
pub struct Store(Engine);

#[derive(Clone)]
enum Engine {
    File(Arc<FileEngine>),
    Database(Arc<DatabaseEngine>),
}

/// What a call does with the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// It reads.
    Read,
    /// It runs one statement that writes.
    Write,
    /// It is a transaction.
    Change,
    /// It is a transaction that deletes personal data.
    Erase,
}

/// The formats of a store in each of its forms, with their names.
pub fn formats() -> [(&'static str, String); 3] {
    [
        ("store file", FORMAT.to_string()),
        ("database", FORMAT.to_string()),
        ("export", dump::VERSION.to_string()),
    ]
}

impl Store {
    /// The name of the store file in its directory.
    pub const FILE_NAME: &str = FileEngine::FILE_NAME;

    /// Opens the store file in this directory; creates both, accessible to their owner only, if they are missing.
    ///
    /// Checks the file first (the time grows with its size; of a large file only the tables of keys and grants are checked), and
    /// migrates an older format after a backup. Blocks until that is done. A rejected file is left as it
    /// was.
    pub fn open(directory: &Path) -> StoreResult<Self> {
        let engine = FileEngine::open(directory)?;
        Ok(Self(Engine::File(Arc::new(engine))))
    }

    /// A store in a database, which connects when it is used.
    pub fn in_database(config: DatabaseConfig, clock: Clock, seen: SeenTimelines) -> Self {
        Self::connecting(config, clock, seen, false)
    }

    /// With `ignores_clock` the day of each exchange is used alone.
    pub(crate) fn connecting(
        config: DatabaseConfig,
        clock: Clock,
        seen: SeenTimelines,
        ignores_clock: bool,
    ) -> Self {
        let engine = DatabaseEngine::new(config, clock, seen, ignores_clock);
        Self(Engine::Database(Arc::new(engine)))
    }

    /// Connects, unless it is connected. The tables of a database must exist in a format that this program knows.
    pub async fn check(&self) -> Result<(), OpenFailure> {
        match self.database() {
            Some(database) => database.connect().await,
            None => Ok(()),
        }
    }

    /// Opens the connections that requests of callers need, unless they are open: for keys and for leases.
    pub async fn connect_to_serve(&self) -> Result<(), OpenFailure> {
        match self.database() {
            Some(database) => database.connect_to_serve().await,
            None => Ok(()),
        }
    }

    /// From now on refuses servers with another data set.
    pub fn accept_only(&self, data_set: &str) {
        if let Some(database) = self.database() {
            database.check.accept_only(data_set);
        }
    }

    /// Number of committed transactions of a file since it was opened; each contains one command or many.
    pub fn commits(&self) -> u64 {
        self.file().map_or(0, FileEngine::commits)
    }

    /// Damage of the store found while running. An operator has to repair it.
    pub fn damage(&self) -> Option<String> {
        self.file()?.damage()
    }

    /// Why nothing can be written durably, if that is known without an attempt: the store file was moved, deleted or
    /// replaced. May access the file system.
    pub fn missing_or_replaced(&self) -> Option<String> {
        self.file()?.missing_or_replaced()
    }

    /// The state of a shared database; `None` for a file.
    pub async fn database_status(&self) -> StoreResult<Option<DatabaseStatus>> {
        match self.database() {
            Some(database) => {
                let work = async |client: SchemaClient<'_>| inspect::status(client).await;
                let status = database.connection.run("read its state", work);
                status.await.map(Some)
            }
            None => Ok(None),
        }
    }

    /// Exchanges of the ledger with a shared database; none with a file.
    pub fn exchange_counts(&self) -> ExchangeCounts {
        let database = self.database();
        database.map_or_else(ExchangeCounts::default, |database| database.ledger.counts())
    }

    /// Waits for a hint that something was changed elsewhere. Hints may be lost, and a file gives none.
    pub async fn changed(&self) {
        match self.database() {
            Some(database) => database.listener().changed().await,
            None => std::future::pending().await,
        }
    }

    /// The documents of the backend `scope`, for a gateway; `None` for a file, which shares none.
    pub fn shared_documents(&self, scope: String, node: u64) -> Option<Arc<dyn SharedDocuments>> {
        let Engine::Database(database) = &self.0 else {
            return None;
        };
        Some(Arc::new(PostgresDocuments {
            store: Arc::clone(database),
            scope,
            node,
        }))
    }

    /// Connects as far as requests of callers need it. Returns why a store that answers refuses this gateway; an error if it
    /// does not answer.
    pub(super) async fn refusal_to_serve(&self) -> StoreResult<Option<String>> {
        match Box::pin(self.connect_to_serve()).await {
            Ok(()) => Ok(None),
            Err(OpenFailure {
                kind: ConnectionFault::Unreachable,
                error,
            }) => Err(error),
            Err(OpenFailure { error, .. }) => Ok(Some(error.to_string())),
        }
    }

    pub(crate) fn database(&self) -> Option<&DatabaseEngine> {
        match &self.0 {
            Engine::Database(database) => Some(&**database),
            Engine::File(_) => None,
        }
    }

    pub(crate) fn file(&self) -> Option<&FileEngine> {
        match &self.0 {
            Engine::File(file) => Some(&**file),
            Engine::Database(_) => None,
        }
    }

    /// Works on the tables. `doing` is the operation for error messages.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        access: Access,
        doing: &'static str,
        work: impl AsyncFnOnce(Tables<'_>) -> Done<T> + Send + 'static,
    ) -> StoreResult<T> {
        self.run_by(|database| &database.connection, access, doing, work)
            .await
    }

    /// The same for owners and mail, which have a connection of their own, so that changes of keys do not wait for them.
    pub(super) async fn run_for_accounts<T: Send + 'static>(
        &self,
        access: Access,
        doing: &'static str,
        work: impl AsyncFnOnce(Tables<'_>) -> Done<T> + Send + 'static,
    ) -> StoreResult<T> {
        self.run_by(|database| &database.accounts, access, doing, work)
            .await
    }

    async fn run_by<T: Send + 'static>(
        &self,
        link: fn(&DatabaseEngine) -> &DatabaseLink,
        access: Access,
        doing: &'static str,
        work: impl AsyncFnOnce(Tables<'_>) -> Done<T> + Send + 'static,
    ) -> StoreResult<T> {
        let database = match &self.0 {
            Engine::Database(database) => link(database),
            Engine::File(file) => {
                let work = move |file: &FileConnection| done(work(Tables::File(file)));
                return file
                    .worker(access == Access::Read)
                    .run(access == Access::Erase, doing, work)
                    .await;
            }
        };
        let work = async move |client: SchemaClient<'_>| work(Tables::Database(client)).await;
        match access {
            Access::Read | Access::Write => Box::pin(database.run(doing, work)).await,
            Access::Change | Access::Erase => Box::pin(database.change(doing, work)).await,
        }
    }
}
