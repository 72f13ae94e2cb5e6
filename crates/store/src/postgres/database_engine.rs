//! The engine: the connections to a database. Calls of one kind share a connection, so that different kinds do not wait
//! for each other.

use std::sync::{Arc, OnceLock};

use crate::{
    SeenTimelines,
    postgres::{
        connection::{
            database_connection::DatabaseConfig, link::DatabaseLink, listener::ChangeListener,
            open_failure::OpenFailure, server_check::ServerCheck,
        },
        ledger::ledger_queue::LedgerQueue,
    },
};
use scoregate_base::clock::Clock;

/// The operation named in error messages.
const OPEN: &str = "open the database";

/// The connections to a database. Each new connection checks its server and the tables. Until that succeeds, every call
/// fails.
pub struct DatabaseEngine {
    /// Used for changes and reads.
    pub connection: DatabaseLink,
    pub ledger: LedgerQueue,
    /// Used for owners and mail.
    pub accounts: DatabaseLink,
    /// Used for shared documents, except their contents.
    pub documents: DatabaseLink,
    /// Used for contents of documents.
    pub contents: DatabaseLink,
    /// Started when a caller first waits for a hint.
    listener: OnceLock<ChangeListener>,
    pub config: Arc<DatabaseConfig>,
    pub check: Arc<ServerCheck>,
    pub clock: Clock,
}

impl DatabaseEngine {
    /// With `ignores_clock`, only the day of each exchange is used.
    pub fn new(
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

    /// Connects, unless already connected.
    pub async fn connect(&self) -> Result<(), OpenFailure> {
        self.connection.connect(OPEN).await
    }

    /// Opens the connections for keys and leases, which caller requests need, unless already open.
    pub async fn connect_to_serve(&self) -> Result<(), OpenFailure> {
        self.connect().await?;
        self.ledger.connect(OPEN).await
    }

    pub fn listener(&self) -> &ChangeListener {
        self.listener
            .get_or_init(|| ChangeListener::start(&self.config, self.clock.clone()))
    }
}
