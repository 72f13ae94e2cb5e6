//! The engine: connections to a database. They are shared by the calls of one kind, so that the kinds do not wait for each
//! other.

use std::sync::{Arc, OnceLock};

use crate::SeenTimelines;
use crate::postgres::connection::database_connection::DatabaseConfig;
use crate::postgres::connection::link::DatabaseLink;
use crate::postgres::connection::listener::ChangeListener;
use crate::postgres::connection::open_failure::OpenFailure;
use crate::postgres::connection::server_check::ServerCheck;
use crate::postgres::ledger::ledger_queue::LedgerQueue;
use scoregate_base::clock::Clock;

/// The operation named in error messages.
const OPEN: &str = "open the database";

/// The connections. Each new one checks its server and the tables: until that has succeeded, every call fails.
pub(crate) struct DatabaseEngine {
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

impl DatabaseEngine {
    /// With `ignores_clock` the day of each exchange is used alone.
    pub(crate) fn new(
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

    /// Connects, unless it is connected.
    pub(crate) async fn connect(&self) -> Result<(), OpenFailure> {
        self.connection.connect(OPEN).await
    }

    /// Opens the connections that requests of callers need, unless they are open: for keys and for leases.
    pub(crate) async fn connect_to_serve(&self) -> Result<(), OpenFailure> {
        self.connect().await?;
        self.ledger.connect(OPEN).await
    }

    pub(crate) fn listener(&self) -> &ChangeListener {
        self.listener
            .get_or_init(|| ChangeListener::start(&self.config, self.clock.clone()))
    }
}
