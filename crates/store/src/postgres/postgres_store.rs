//! The store, and the operations of the command line on a database.

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::dump::DumpReader;
use crate::embedded::maintenance::ImportOptions;
use crate::postgres::connection::database_connection::{DatabaseConfig, RoleName};
use crate::postgres::connection::link::DatabaseLink;
use crate::postgres::connection::listener::ChangeListener;
use crate::postgres::connection::open_failure::OpenFailure;
use crate::postgres::connection::schema_client::SchemaClient;
use crate::postgres::connection::seen_timelines::SeenTimelines;
use crate::postgres::connection::server_check::ServerCheck;
use crate::postgres::ledger::ledger_queue::LedgerQueue;
use crate::postgres::reports::inspect::{self, DatabaseReport};
use crate::postgres::restore::{self, DatabaseRestore};
use crate::postgres::tables::{self, TablesChange, TablesWork};
use crate::postgres::transfer::{self, DatabaseExport};
use crate::sql::schema::STEPS;
use crate::{RowCounts, StoreError, StoreResult, TransferError};
use scoregate_base::clock::Clock;

/// Deadline of an export or an import.
const TRANSFER_TIMEOUT: Duration = Duration::from_hours(1);

/// An operation named in error messages.
const OPEN: &str = "open the database";

/// The store in a database. The connections are shared by the calls of one kind, so that the kinds do not wait for each
/// other.
pub struct PostgresStore {
    /// For changes and reads.
    pub(crate) connection: DatabaseLink,
    pub(crate) ledger: LedgerQueue,
    /// For owners and mail.
    pub(crate) accounts: DatabaseLink,
    /// For shared documents, but their contents.
    pub(crate) documents: DatabaseLink,
    /// For contents of documents.
    pub(crate) contents: DatabaseLink,
    /// Started by the first wait for a hint.
    listener: OnceLock<ChangeListener>,
    pub(crate) config: Arc<DatabaseConfig>,
    pub(crate) check: Arc<ServerCheck>,
    pub(crate) clock: Clock,
}

impl PostgresStore {
    /// Creates or upgrades the tables, and grants `role` its rights.
    pub async fn change_tables(
        config: DatabaseConfig,
        clock: Clock,
        work: TablesWork,
        role: Option<RoleName>,
    ) -> StoreResult<TablesChange> {
        let change = async |client: SchemaClient<'_>| {
            tables::change(client, STEPS, work, role.as_ref()).await
        };
        DatabaseLink::new(Arc::new(config), clock)
            .change("create its tables", change)
            .await
    }

    /// Reports the contents and the state of the database.
    pub async fn inspect(config: DatabaseConfig, clock: Clock) -> StoreResult<DatabaseReport> {
        let connection = DatabaseLink::new(Arc::new(config), clock);
        check_tables(&connection).await?;
        connection
            .run("inspect the database", async |client| {
                inspect::report(client).await
            })
            .await
    }

    /// Exports everything in one snapshot to `out`, which `keep` makes durable. With `closes` no gateway can use the tables
    /// afterwards.
    pub async fn export(
        config: DatabaseConfig,
        clock: Clock,
        out: &mut dyn Write,
        keep: &mut dyn FnMut() -> io::Result<()>,
        closes: bool,
    ) -> Result<DatabaseExport, TransferError> {
        let now = clock.now().wall;
        let connection = transfer_link(config, clock).await?;
        let work =
            async |client: SchemaClient<'_>| transfer::export(client, out, keep, closes, now).await;
        connection.change("be exported", work).await
    }

    /// Imports an export into empty tables, in the name of `who`.
    pub async fn import(
        config: DatabaseConfig,
        clock: Clock,
        from: &Path,
        who: &str,
    ) -> Result<RowCounts, TransferError> {
        let now = clock.now().wall;
        let reader = DumpReader::open(from)?;
        let name = file_name(from);
        let connection = transfer_link(config, clock).await?;
        let work = async |client: SchemaClient<'_>| {
            transfer::import(client, reader, who, &name, now).await
        };
        connection.change("be imported", work).await
    }

    /// Takes over restored tables, or fills empty ones from an export. Until then gateways refuse restored tables.
    pub async fn restore(
        config: DatabaseConfig,
        clock: Clock,
        from: Option<&Path>,
        options: &ImportOptions,
    ) -> Result<DatabaseRestore, TransferError> {
        let name = file_name(from.unwrap_or(Path::new("")));
        let from = from.map(DumpReader::open).transpose()?;
        let short = DatabaseLink::new(Arc::new(config.clone()), clock.clone());
        let problem = short
            .run(OPEN, async |client| tables::problem_of_format(client).await)
            .await?;
        usable(problem)?;
        let work = async |client: SchemaClient<'_>| {
            restore::restore(client, from.map(|reader| (reader, name.as_str())), options).await
        };
        long_link(config, clock).change("be restored", work).await
    }

    /// Opens the store. Its tables must exist in a format that this program knows.
    pub async fn open(config: DatabaseConfig, clock: Clock) -> StoreResult<Self> {
        let store = Self::unopened(config, clock, SeenTimelines::default());
        store.check().await?;
        Ok(store)
    }

    /// A store that connects when it is used. Each new connection checks its server and the tables: until that has
    /// succeeded, every call fails.
    pub fn unopened(config: DatabaseConfig, clock: Clock, seen: SeenTimelines) -> Self {
        Self::connecting(config, clock, seen, false)
    }

    /// Connects, unless it is connected.
    pub async fn check(&self) -> Result<(), OpenFailure> {
        self.connection.connect(OPEN).await
    }

    /// Opens the connections that requests of callers need, unless they are open: for keys and for leases.
    pub async fn connect_to_serve(&self) -> Result<(), OpenFailure> {
        self.check().await?;
        self.ledger.connect(OPEN).await
    }

    /// From now on refuses servers with another data set.
    pub fn accept_only(&self, data_set: &str) {
        self.check.accept_only(data_set);
    }

    pub(crate) fn listener(&self) -> &ChangeListener {
        self.listener
            .get_or_init(|| ChangeListener::start(&self.config, self.clock.clone()))
    }

    /// With `ignores_clock` the day of each exchange is used alone.
    pub(super) fn connecting(
        config: DatabaseConfig,
        clock: Clock,
        seen: SeenTimelines,
        ignores_clock: bool,
    ) -> Self {
        let check = Arc::new(ServerCheck::new(seen));
        let config = Arc::new(config);
        let link = || DatabaseLink::checked(Arc::clone(&config), clock.clone(), Arc::clone(&check));
        Self {
            connection: link(),
            ledger: LedgerQueue::start(link(), ignores_clock),
            accounts: link(),
            documents: link(),
            contents: link(),
            listener: OnceLock::new(),
            clock,
            config,
            check,
        }
    }
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// A link for long transactions, to tables that this program can use.
async fn transfer_link(config: DatabaseConfig, clock: Clock) -> StoreResult<DatabaseLink> {
    check_tables(&DatabaseLink::new(Arc::new(config.clone()), clock.clone())).await?;
    Ok(long_link(config, clock))
}

/// A link with a deadline for long transactions.
fn long_link(config: DatabaseConfig, clock: Clock) -> DatabaseLink {
    let config = DatabaseConfig {
        timeout: TRANSFER_TIMEOUT,
        ..config
    };
    DatabaseLink::new(Arc::new(config), clock)
}

/// Refuses tables that this program cannot use.
async fn check_tables(connection: &DatabaseLink) -> StoreResult<()> {
    let problem = connection
        .run(OPEN, async |client| tables::problem(client).await)
        .await?;
    usable(problem)
}

fn usable(problem: Option<String>) -> StoreResult<()> {
    problem.map_or(Ok(()), |reason| {
        Err(StoreError::Unavailable {
            doing: OPEN,
            reason,
        })
    })
}
