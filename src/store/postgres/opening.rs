//! Opening the store, also while its database is unreachable.

use std::sync::{Arc, OnceLock};

use super::changes::ChangeStatements;
use super::connection::DatabaseConfig;
use super::documents::DocumentDatabase;
use super::feed::FeedStatements;
use super::grace_shares::GraceStatements;
use super::ledger::LedgerStatements;
use super::ledger_queue::LedgerQueue;
use super::link::DatabaseLink;
use super::nodes::NodeStatements;
use super::outdated::OutdatedRecords;
use super::owners::AccountsDatabase;
use super::records::RecordStatements;
use super::requests::RequestStatements;
use super::seen_timelines::SeenTimelines;
use super::server_check::ServerCheck;
use super::status::StatusStatements;
use super::usage::UsageStatements;
use super::{OPEN, PostgresStore};
use crate::clock::Clock;
use crate::store::StoreError;

/// Why the store cannot be used yet.
#[derive(Debug, thiserror::Error)]
pub enum OpenFailure {
    /// No server answered that may be used. One may answer later.
    #[error(transparent)]
    Unreachable(StoreError),
    /// A server answered, and this program cannot use its tables.
    #[error(transparent)]
    UnusableTables(StoreError),
}

impl From<OpenFailure> for StoreError {
    fn from(failure: OpenFailure) -> Self {
        match failure {
            OpenFailure::Unreachable(error) | OpenFailure::UnusableTables(error) => error,
        }
    }
}

impl PostgresStore {
    /// Opens the store. Its tables must exist in a format that this program knows.
    pub async fn open(config: DatabaseConfig, clock: Clock) -> Result<Self, StoreError> {
        Self::open_with(config, clock, false).await
    }

    /// With `ignores_clock` the day of each exchange is used alone.
    pub(super) async fn open_with(
        config: DatabaseConfig,
        clock: Clock,
        ignores_clock: bool,
    ) -> Result<Self, StoreError> {
        let store = Self::connecting(config, clock, SeenTimelines::default(), ignores_clock);
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
        let nothing = async |_: &mut tokio_postgres::Client| Ok(());
        Box::pin(self.connection.run(OPEN, nothing)).await.map_err(|error| {
            let is_unusable = error.has_unusable_tables;
            let kind = if is_unusable { OpenFailure::UnusableTables } else { OpenFailure::Unreachable };
            kind(error.into())
        })
    }

    /// From now on refuses servers with another data set.
    pub fn accept_only(&self, data_set: &str) {
        self.check.accept_only(data_set);
    }

    fn connecting(config: DatabaseConfig, clock: Clock, seen: SeenTimelines, ignores_clock: bool) -> Self {
        let (schema, config) = (config.schema.clone(), Arc::new(config));
        let check = Arc::new(ServerCheck::new(&schema, seen));
        let link = || DatabaseLink::checked(Arc::clone(&config), clock.clone(), Arc::clone(&check));
        Self {
            changes: ChangeStatements::new(&schema),
            records: RecordStatements::new(&schema),
            feed: FeedStatements::new(&schema),
            connection: link(),
            ledger: LedgerQueue::start(&schema, link(), ignores_clock),
            days: LedgerStatements::new(&schema),
            grace: GraceStatements::new(&schema),
            usage: UsageStatements::new(&schema),
            requests: Box::new(RequestStatements::new(&schema)),
            nodes: NodeStatements::new(&schema),
            status: Box::new(StatusStatements::new(&schema)),
            accounts: Box::new(AccountsDatabase::new(&schema, link())),
            outdated: OutdatedRecords::new(&schema),
            documents: Box::new(DocumentDatabase::new(&schema, link)),
            listener: OnceLock::new(),
            clock,
            config,
            check,
        }
    }
}
