//! The shared engine: a PostgreSQL database for several gateways.
//!
//! Keys, audit trail and ledger are rows of ordinary tables; every call is one transaction with a deadline. Statements
//! have no names and no session state, so that a connection pooler in transaction mode can be in between.

mod address;
mod audit;
mod changes;
mod closed_applications;
mod connection;
mod document_statements;
mod documents;
mod feed;
mod grace_shares;
mod hosts;
mod inspect;
mod ledger;
mod ledger_queue;
mod link;
mod listener;
mod mail_queue;
mod minutes;
mod nodes;
mod opening;
mod outdated;
mod owners;
mod records;
mod reports;
mod requests;
mod schema;
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
mod usage;
mod whole;

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::clock::{Clock, Day};
use crate::keys::ApplicationId;
use crate::limits::{GraceClaim, GraceShare};

use super::{
    ApplicationPage, ApplicationPages, AuditQuery, AuditRecord, ChangeFeed, ChangedApplications,
    DatabaseStatus, ExchangeCounts, FeedPosition, HeldGraceShare, KeyStore, KeyUse, Ledger, LedgerExchange,
    LedgerExchangeReply, RecordCounts, StoreChange, StoreError, StoreFuture, StoreHealth, StoredApplication,
    TransferError, dump::DumpReader,
};
use changes::ChangeStatements;
use documents::DocumentDatabase;
use feed::FeedStatements;
use grace_shares::GraceStatements;
use ledger::LedgerStatements;
use ledger_queue::LedgerQueue;
use link::DatabaseLink;
use listener::ChangeListener;
use nodes::NodeStatements;
use outdated::OutdatedRecords;
use owners::AccountsDatabase;
use records::RecordStatements;
use requests::RequestStatements;
use server_check::ServerCheck;
use status::StatusStatements;
use transfer::TransferFault;
use usage::UsageStatements;

pub use address::{BadDatabaseUrl, DatabaseAddress};
pub use connection::{BadName, DatabaseConfig, RoleName, SchemaName};
pub use inspect::DatabaseReport;
pub use opening::{CONNECTIONS_PER_GATEWAY, OpenFailure, connection_limit};
pub use schema::{TablesChange, TablesWork};
pub use seen_timelines::SeenTimelines;
pub use tls::{BadDatabaseFile, ClientCertificateFiles, DatabaseSettings};
pub use transfer::DatabaseExport;

/// The store in a database.
pub struct PostgresStore {
    changes: ChangeStatements,
    records: RecordStatements,
    feed: FeedStatements,
    /// For changes and reads.
    connection: DatabaseLink,
    ledger: LedgerQueue,
    days: LedgerStatements,
    grace: GraceStatements,
    usage: UsageStatements,
    requests: Box<RequestStatements>,
    nodes: NodeStatements,
    status: Box<StatusStatements>,
    /// For owners and mail, so that they do not wait for each other with changes of keys.
    accounts: Box<AccountsDatabase>,
    outdated: OutdatedRecords,
    documents: Box<DocumentDatabase>,
    /// Started by the first wait for a hint.
    listener: OnceLock<ChangeListener>,
    config: Arc<DatabaseConfig>,
    check: Arc<ServerCheck>,
    clock: Clock,
}

/// Deadline of an export or an import.
const TRANSFER_TIMEOUT: Duration = Duration::from_hours(1);

/// Operations named in error messages.
const READ: &str = "read applications";
const CHANGE: &str = "make a change";
const USES: &str = "record uses of keys";
const AUDIT: &str = "read the audit trail";
const FEED: &str = "read the change feed";
const DAY: &str = "read the current day";
const GRACE: &str = "change shares of grace";
const RECALLED: &str = "read recalled shares";
const DELETE: &str = "delete outdated records";
const STATUS: &str = "read its state";
const OPEN: &str = "open the database";

impl PostgresStore {
    /// Creates or upgrades the tables, and grants `role` its rights.
    pub async fn change_tables(
        config: DatabaseConfig,
        clock: Clock,
        work: TablesWork,
        role: Option<RoleName>,
    ) -> Result<TablesChange, StoreError> {
        let schema = config.schema.clone();
        let connection = DatabaseLink::new(Arc::new(config), clock);
        let change = async |client: &mut tokio_postgres::Client| {
            schema::change(client, &schema, work, role.as_ref()).await
        };
        Ok(Box::pin(connection.run("create its tables", change)).await?)
    }

    /// Reports the contents and the state of the database.
    pub async fn inspect(config: DatabaseConfig, clock: Clock) -> Result<DatabaseReport, StoreError> {
        let schema = config.schema.clone();
        let connection = DatabaseLink::new(Arc::new(config), clock);
        check_tables(&connection, &schema).await?;
        let inspect = async |client: &mut tokio_postgres::Client| inspect::report(client, &schema).await;
        Ok(Box::pin(connection.run("inspect the database", inspect)).await?)
    }

    /// Exports everything in one snapshot to `output`, a writer and a call that makes it durable. With `closes` no gateway
    /// can use the tables afterwards.
    pub async fn export(
        config: DatabaseConfig,
        clock: Clock,
        output: (&mut dyn Write, &mut dyn FnMut() -> io::Result<()>),
        closes: bool,
    ) -> Result<DatabaseExport, TransferError> {
        let (schema, now) = (config.schema.clone(), clock.now().wall);
        let connection = transfer_link(config, clock).await?;
        let work = async |client: &mut tokio_postgres::Client| {
            transfer::export(client, &schema, output, closes, now)
                .await
                .map_or_else(transfer_error, |done| Ok(Ok(done)))
        };
        Box::pin(connection.run("be exported", work)).await.map_err(StoreError::from)?
    }

    /// Imports an export into empty tables, in the name of `who`.
    pub async fn import(
        config: DatabaseConfig,
        clock: Clock,
        from: &Path,
        who: &str,
    ) -> Result<RecordCounts, TransferError> {
        let (schema, now) = (config.schema.clone(), clock.now().wall);
        let reader = DumpReader::open(from)?;
        let name = from.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let connection = transfer_link(config, clock).await?;
        let work = async |client: &mut tokio_postgres::Client| {
            transfer::import(client, &schema, reader, (who, &name), now)
                .await
                .map_or_else(transfer_error, |done| Ok(Ok(done)))
        };
        Box::pin(connection.run("be imported", work)).await.map_err(StoreError::from)?
    }

    fn listener(&self) -> &ChangeListener {
        self.listener.get_or_init(|| ChangeListener::start(&self.config, self.clock.clone()))
    }

    async fn read(&self, id: ApplicationId, day: Day) -> Result<Option<StoredApplication>, StoreError> {
        let work =
            async |client: &mut tokio_postgres::Client| self.records.application(client, id, day).await;
        self.connection.run(READ, work).await?.transpose().map_err(records::unreadable)
    }

    async fn make(&self, change: StoreChange) -> Result<StoredApplication, StoreError> {
        let work = async |client: &mut tokio_postgres::Client| {
            self.changes.make(client, &change, &self.records).await
        };
        self.connection.run(CHANGE, work).await?
    }
}

/// A link with a deadline for long transactions, to tables that this program can use.
async fn transfer_link(config: DatabaseConfig, clock: Clock) -> Result<DatabaseLink, StoreError> {
    let connection = DatabaseLink::new(Arc::new(config.clone()), clock.clone());
    check_tables(&connection, &config.schema).await?;
    let config = DatabaseConfig { timeout: TRANSFER_TIMEOUT, ..config };
    Ok(DatabaseLink::new(Arc::new(config), clock))
}

/// An error of the connection ends it; others are results.
fn transfer_error<T>(fault: TransferFault) -> Result<Result<T, TransferError>, tokio_postgres::Error> {
    match fault {
        TransferFault::Database(error) => Err(error),
        TransferFault::File(fault) => Ok(Err(fault.into())),
        TransferFault::InUse(applications) => Ok(Err(TransferError::InUse(applications))),
    }
}

/// Refuses tables that this program cannot use.
async fn check_tables(connection: &DatabaseLink, schema: &SchemaName) -> Result<(), StoreError> {
    let state = Box::pin(connection.run(OPEN, async |client| schema::state(client, schema).await));
    match state.await?.problem() {
        None => Ok(()),
        Some(reason) => Err(StoreError::Unavailable { doing: OPEN, reason }),
    }
}

impl KeyStore for PostgresStore {
    fn page(&self, after: Option<ApplicationId>, limit: usize, day: Day) -> StoreFuture<'_, ApplicationPage> {
        Box::pin(async move {
            let work = async |client: &mut tokio_postgres::Client| {
                self.records.page(client, after, limit, day).await
            };
            Ok(self.connection.run(READ, work).await?)
        })
    }

    fn all(&self, day: Day) -> ApplicationPages<'_> {
        Box::pin(self.pages(day))
    }

    fn application(&self, id: ApplicationId, day: Day) -> StoreFuture<'_, Option<StoredApplication>> {
        Box::pin(self.read(id, day))
    }

    fn applications(&self, ids: Vec<ApplicationId>, day: Day) -> StoreFuture<'_, ApplicationPage> {
        Box::pin(async move {
            let work = async |client: &mut tokio_postgres::Client| {
                self.records.applications(client, &ids, day).await
            };
            Ok(self.connection.run(READ, work).await?)
        })
    }

    fn change(&self, change: StoreChange) -> StoreFuture<'_, StoredApplication> {
        Box::pin(self.make(change))
    }

    fn record_uses(&self, keys: Vec<KeyUse>) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let work = async |client: &mut tokio_postgres::Client| self.changes.used(client, &keys).await;
            Ok(self.connection.run(USES, work).await?)
        })
    }

    fn audit(&self, query: AuditQuery) -> StoreFuture<'_, Vec<AuditRecord>> {
        Box::pin(async move {
            let work = async |client: &mut tokio_postgres::Client| self.records.audit(client, query).await;
            Ok(self.connection.run(AUDIT, work).await?)
        })
    }
}

impl ChangeFeed for PostgresStore {
    fn position(&self) -> StoreFuture<'_, FeedPosition> {
        Box::pin(async move {
            let work = async |client: &mut tokio_postgres::Client| {
                self.feed.position(client, self.check.history_form()).await
            };
            Ok(self.connection.run(FEED, work).await?)
        })
    }

    fn changed_after(&self, after: FeedPosition, limit: usize) -> StoreFuture<'_, ChangedApplications> {
        Box::pin(async move {
            let work = async |client: &mut tokio_postgres::Client| {
                self.feed.changed(client, self.check.history_form(), &after, limit).await
            };
            Ok(self.connection.run(FEED, work).await?)
        })
    }

    fn changed(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            self.listener().changed().await;
            Ok(())
        })
    }
}

impl StoreHealth for PostgresStore {
    fn damage(&self) -> Option<String> {
        None
    }

    fn missing_or_replaced(&self) -> Option<String> {
        None
    }

    fn database_status(&self) -> StoreFuture<'_, Option<DatabaseStatus>> {
        Box::pin(async move {
            let schema = &self.config.schema;
            let work = async |client: &mut tokio_postgres::Client| inspect::status(client, schema).await;
            Ok(Some(self.connection.run(STATUS, work).await?))
        })
    }

    fn exchange_counts(&self) -> ExchangeCounts {
        self.ledger.counts()
    }
}

impl Ledger for PostgresStore {
    fn refusal(&self) -> StoreFuture<'_, Option<String>> {
        Box::pin(async move {
            match Box::pin(self.connect_to_serve()).await {
                Ok(()) => Ok(None),
                Err(OpenFailure::Unreachable(error)) => Err(error),
                Err(OpenFailure::Refused(error) | OpenFailure::UnusableTables(error)) => {
                    Ok(Some(error.to_string()))
                }
            }
        })
    }

    fn day(&self) -> StoreFuture<'_, Option<Day>> {
        Box::pin(async move {
            let work = async |client: &mut tokio_postgres::Client| self.days.day(client).await;
            Ok(self.connection.run(DAY, work).await?)
        })
    }

    fn exchange(&self, exchange: LedgerExchange) -> StoreFuture<'_, LedgerExchangeReply> {
        Box::pin(self.ledger.exchange(exchange))
    }

    fn claim_grace(&self, claim: GraceClaim) -> StoreFuture<'_, Option<GraceShare>> {
        Box::pin(async move {
            let work = async |client: &mut tokio_postgres::Client| self.grace.claim(client, &claim).await;
            Ok(Box::pin(self.connection.run(GRACE, work)).await?)
        })
    }

    fn return_grace(&self, share: HeldGraceShare) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let work = async |client: &mut tokio_postgres::Client| self.grace.give_back(client, &share).await;
            Ok(self.connection.run(GRACE, work).await?)
        })
    }

    fn recalled(&self, node: u64) -> StoreFuture<'_, Vec<ApplicationId>> {
        Box::pin(async move {
            let work = async |client: &mut tokio_postgres::Client| self.days.recalled(client, node).await;
            Ok(self.connection.run(RECALLED, work).await?)
        })
    }

    fn delete_outdated(&self) -> StoreFuture<'_, u64> {
        Box::pin(async move {
            let work = async |client: &mut tokio_postgres::Client| {
                self.outdated.delete(client, (&self.usage, &self.requests), &self.nodes, &self.status).await
            };
            Ok(self.connection.run(DELETE, work).await?)
        })
    }
}
