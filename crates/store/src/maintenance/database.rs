//! `scoregate store` commands for a database.

use std::{
    io::{self, Write},
    path::Path,
    sync::Arc,
    time::Duration,
};

use super::{
    database_restore::{self, DatabaseRestore},
    database_transfer::{self, DatabaseExport},
    import::ImportOptions,
};
use crate::{
    DatabaseConfig, DatabaseReport, RoleName, RowCounts, StoreError, StoreResult, TablesChange,
    TablesWork,
    dump::DumpReader,
    postgres::{DatabaseLink, inspect, tables},
    statements::{Done, SchemaClient, schema::STEPS},
};
use scoregate_base::clock::Clock;

/// Deadline of an export or an import.
const TRANSFER_TIMEOUT: Duration = Duration::from_hours(1);

/// An operation named in error messages.
const OPEN: &str = "open the database";

/// Runs a command on a database.
pub struct DatabaseCommand {
    /// How to connect to the database.
    pub config: DatabaseConfig,
    /// The clock of this machine.
    pub clock: Clock,
}

impl DatabaseCommand {
    /// Creates or upgrades the tables, and grants `role` the necessary privileges.
    pub async fn change_tables(
        self,
        work: TablesWork,
        role: Option<RoleName>,
    ) -> StoreResult<TablesChange> {
        self.link()
            .change("create its tables", async |client: SchemaClient<'_>| {
                tables::change(client, STEPS, work, role.as_ref()).await
            })
            .await
    }

    /// Reports the contents and the state of the database.
    pub async fn inspect(self) -> StoreResult<DatabaseReport> {
        let connection = self.link();
        check_tables(&connection).await?;
        connection
            .run("inspect the database", async |client| {
                inspect::report(client).await
            })
            .await
    }

    /// Exports everything in one snapshot to `out`, which `keep` makes durable. With `closes`, no gateway can use the
    /// tables afterwards.
    pub async fn export(
        self,
        out: &mut dyn Write,
        keep: &mut dyn FnMut() -> io::Result<()>,
        closes: bool,
    ) -> StoreResult<DatabaseExport> {
        let now = self.clock.now().wall;
        check_tables(&self.link()).await?;
        self.long_link()
            .change("be exported", async |client: SchemaClient<'_>| {
                database_transfer::export(client, out, keep, closes, now).await
            })
            .await
    }

    /// Imports an export into empty tables. The audit trail names `who`.
    pub async fn import(self, from: &Path, who: &str) -> StoreResult<RowCounts> {
        let now = self.clock.now().wall;
        let reader = DumpReader::open(from)?;
        let name = file_name(from);
        check_tables(&self.link()).await?;
        self.long_link()
            .change("be imported", async |client: SchemaClient<'_>| {
                database_transfer::import(client, reader, who, &name, now).await
            })
            .await
    }

    /// Takes over restored tables, or fills empty ones from an export. Until then, gateways refuse restored tables.
    pub async fn restore(
        self,
        from: Option<&Path>,
        options: &ImportOptions,
    ) -> StoreResult<DatabaseRestore> {
        let name = file_name(from.unwrap_or(Path::new("")));
        let from = from.map(DumpReader::open).transpose()?;
        check(&self.link(), tables::problem_of_format).await?;
        self.long_link()
            .change("be restored", async |client: SchemaClient<'_>| {
                let from = from.map(|reader| (reader, name.as_str()));
                database_restore::restore(client, from, options).await
            })
            .await
    }

    fn link(&self) -> DatabaseLink {
        DatabaseLink::new(Arc::new(self.config.clone()), self.clock.clone())
    }

    /// A link with a deadline for long transactions.
    fn long_link(self) -> DatabaseLink {
        let config = DatabaseConfig {
            timeout: TRANSFER_TIMEOUT,
            ..self.config
        };
        DatabaseLink::new(Arc::new(config), self.clock)
    }
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// Fails if this program cannot use the tables.
async fn check_tables(connection: &DatabaseLink) -> StoreResult<()> {
    check(connection, tables::problem).await
}

/// Fails if the tables have the given problem.
async fn check(
    connection: &DatabaseLink,
    problem: impl AsyncFnOnce(SchemaClient<'_>) -> Done<Option<String>>,
) -> StoreResult<()> {
    match connection.run(OPEN, problem).await? {
        None => Ok(()),
        Some(reason) => Err(StoreError::Unavailable {
            doing: OPEN,
            reason,
        }),
    }
}
