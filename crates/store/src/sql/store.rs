//! The store: a file or a database, which execute the same statements.
//!
//! Each subject adds its calls in a separate file.

use std::{path::Path, sync::Arc};

use crate::{
    ConnectionFault, DatabaseConfig, DatabaseStatus, ExchangeCounts, OpenFailure, SeenTimelines,
    SharedDocuments, StoreResult, dump,
    embedded::FileEngine,
    postgres::{DatabaseEngine, DatabaseLink, PostgresDocuments, inspect},
    statements::{Done, FileConnection, SchemaClient, Tables, done, schema::FORMAT},
};
use scoregate_base::clock::Clock;

/// A store. Clones refer to the same store. Dropping the last clone completes the queued work on a file and waits for
/// it.
#[derive(Clone)]
pub struct Store(Engine);

#[derive(Clone)]
enum Engine {
    File(Arc<FileEngine>),
    Database(Arc<DatabaseEngine>),
}

/// How a call accesses the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The call only reads.
    Read,
    /// The call runs one statement that writes.
    Write,
    /// The call is a transaction.
    Change,
    /// The call is a transaction that deletes personal data.
    Erase,
}

/// The names and format versions of all kinds of stores.
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

    /// Opens the store file in this directory. If the directory or the file is missing, creates it, accessible to its
    /// owner only.
    ///
    /// Checks the file first: a small file completely, a large file only in its tables of keys and grants. Then backs up and
    /// migrates a file in an older format. Blocks until that is done. A
    /// rejected file is left unchanged.
    pub fn open(directory: &Path) -> StoreResult<Self> {
        let engine = FileEngine::open(directory)?;
        Ok(Self(Engine::File(Arc::new(engine))))
    }

    /// A store in a database. It connects on first use.
    pub fn in_database(config: DatabaseConfig, clock: Clock, seen: SeenTimelines) -> Self {
        Self::connecting(config, clock, seen, false)
    }

    /// With `ignores_clock`, only the day of each exchange is used.
    pub(crate) fn connecting(
        config: DatabaseConfig,
        clock: Clock,
        seen: SeenTimelines,
        ignores_clock: bool,
    ) -> Self {
        let engine = DatabaseEngine::new(config, clock, seen, ignores_clock);
        Self(Engine::Database(Arc::new(engine)))
    }

    /// Connects, unless already connected. The tables of a database must exist, in a format that this program supports.
    pub async fn check(&self) -> Result<(), OpenFailure> {
        match self.database() {
            Some(database) => database.connect().await,
            None => Ok(()),
        }
    }

    /// Opens the connections for keys and for leases, which requests of callers need, unless they are open.
    pub async fn connect_to_serve(&self) -> Result<(), OpenFailure> {
        match self.database() {
            Some(database) => database.connect_to_serve().await,
            None => Ok(()),
        }
    }

    /// From now on, refuses servers that hold another data set.
    pub fn accept_only(&self, data_set: &str) {
        if let Some(database) = self.database() {
            database.check.accept_only(data_set);
        }
    }

    /// Number of committed transactions of a file since it was opened. Each contains one or more commands.
    pub fn commits(&self) -> u64 {
        self.file().map_or(0, FileEngine::commits)
    }

    /// Damage to the store that was found while running. An operator has to repair it.
    pub fn damage(&self) -> Option<String> {
        self.file()?.damage()
    }

    /// Why nothing can be written durably, if this is known without an attempt: the store file was moved, deleted or
    /// replaced. May access the file system.
    pub fn missing_or_replaced(&self) -> Option<String> {
        self.file()?.missing_or_replaced()
    }

    /// The state of a shared database; `None` for a file.
    pub async fn database_status(&self) -> StoreResult<Option<DatabaseStatus>> {
        match self.database() {
            Some(database) => {
                let status = database
                    .connection
                    .run("read its state", async |client: SchemaClient<'_>| {
                        inspect::status(client).await
                    });
                status.await.map(Some)
            }
            None => Ok(None),
        }
    }

    /// Counts of ledger exchanges with a shared database; zero for a file.
    pub fn exchange_counts(&self) -> ExchangeCounts {
        let database = self.database();
        database.map_or_else(ExchangeCounts::default, |database| database.ledger.counts())
    }

    /// Waits for a hint that something was changed elsewhere. Hints may be lost. A file sends none.
    pub async fn changed(&self) {
        match self.database() {
            Some(database) => database.listener().changed().await,
            None => std::future::pending().await,
        }
    }

    /// A gateway's access to the shared documents of the backend `scope`; `None` for a file, which shares no documents.
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

    /// Opens the connections that caller requests need. Returns the reason if the store refuses this gateway, and an error if the
    /// store does not answer.
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

    /// Runs `work` on the tables. `doing` names the operation in error messages.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        access: Access,
        doing: &'static str,
        work: impl AsyncFnOnce(Tables<'_>) -> Done<T> + Send + 'static,
    ) -> StoreResult<T> {
        self.run_by(|database| &database.connection, access, doing, work)
            .await
    }

    /// Like [`Self::run`], for owners and mail. They have a separate connection, so that changes to keys do not wait
    /// for them.
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
                return file
                    .worker(access == Access::Read)
                    .run(
                        access == Access::Erase,
                        doing,
                        move |file: &FileConnection| done(work(Tables::File(file))),
                    )
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
