//! Opening the store, also while its database is unreachable.

use std::sync::{Arc, OnceLock};

use super::changes::ChangeStatements;
use super::connection::DatabaseConfig;
use super::documents::DocumentDatabase;
use super::feed::FeedStatements;
use super::grace_shares::GraceStatements;
use super::hosts::ConnectionFault;
use super::ledger::LedgerStatements;
use super::ledger_queue::LedgerQueue;
use super::link::{DatabaseError, DatabaseLink};
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

/// The most connections that a gateway opens: for keys, for leases, for accounts of people, for notifications, two for
/// shared documents, and one while it reads all keys.
pub const CONNECTIONS_PER_GATEWAY: u32 = 7;

/// The connection limit of the role of this many gateways. The server counts the connections of a gateway that vanished
/// until it misses their keepalives, so each gateway may be there twice.
pub const fn connection_limit(gateways: u32) -> u32 {
    2 * gateways * CONNECTIONS_PER_GATEWAY
}

/// Why the store cannot be used yet.
#[derive(Debug, thiserror::Error)]
pub enum OpenFailure {
    /// No server answered, or none that is writable: all gateways are affected. One may answer later.
    #[error(transparent)]
    Unreachable(StoreError),
    /// A writable server answered that this gateway may not or must not use: no connection is left for its role, the
    /// password is wrong, or it holds another data set. It may accept a connection later.
    #[error(transparent)]
    Refused(StoreError),
    /// A server answered, and this program cannot use its tables.
    #[error(transparent)]
    UnusableTables(StoreError),
}

impl From<OpenFailure> for StoreError {
    fn from(failure: OpenFailure) -> Self {
        match failure {
            OpenFailure::Unreachable(error)
            | OpenFailure::Refused(error)
            | OpenFailure::UnusableTables(error) => error,
        }
    }
}

impl From<DatabaseError> for OpenFailure {
    fn from(error: DatabaseError) -> Self {
        let failure = match error.kind {
            ConnectionFault::Unreachable => Self::Unreachable,
            ConnectionFault::Refused => Self::Refused,
            ConnectionFault::UnusableTables => Self::UnusableTables,
        };
        failure(error.into())
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
        Ok(self.connection.connect(OPEN).await?)
    }

    /// Opens the connections that requests of callers need, unless they are open: for keys and for leases.
    pub async fn connect_to_serve(&self) -> Result<(), OpenFailure> {
        self.check().await?;
        Ok(self.ledger.connect(OPEN).await?)
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
