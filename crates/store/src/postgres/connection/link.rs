//! The link to the database: a connection that is opened on demand and replaced after a failure.
//!
//! A statement that misses its deadline is never cancelled: a server that waits for its synchronous standby would then report
//! success without the standby. Instead, the connection is closed, and the outcome of the statement is unknown.

use std::sync::Arc;

use tokio_postgres::Config;

use crate::{
    StoreError, StoreResult,
    postgres::connection::{
        database_connection::{DatabaseConfig, DatabaseConnection},
        hosts::{ConnectionFault, DatabaseHosts, HostFault, described, no_answer},
        open_failure::OpenFailure,
        server_check::ServerCheck,
    },
    statements::{Done, SchemaClient},
};
use scoregate_base::clock::Clock;

/// A connection that is opened on demand.
pub struct DatabaseLink {
    config: Arc<DatabaseConfig>,
    clock: Clock,
    /// Decides whether the server of a new connection may be used. `None` accepts any server.
    check: Option<Arc<ServerCheck>>,
    state: tokio::sync::Mutex<LinkState>,
}

struct LinkState {
    hosts: DatabaseHosts,
    open: Option<DatabaseConnection>,
}

impl DatabaseLink {
    pub(crate) fn new(config: Arc<DatabaseConfig>, clock: Clock) -> Self {
        let state = LinkState {
            hosts: DatabaseHosts::new(&config.servers),
            open: None,
        };
        Self {
            config,
            clock,
            check: None,
            state: tokio::sync::Mutex::new(state),
        }
    }

    /// A link to servers that pass this check.
    pub(crate) fn checked(
        config: Arc<DatabaseConfig>,
        clock: Clock,
        check: Arc<ServerCheck>,
    ) -> Self {
        Self {
            check: Some(check),
            ..Self::new(config, clock)
        }
    }

    /// Runs statements on the connection.
    pub(crate) async fn run<T>(
        &self,
        doing: &'static str,
        work: impl AsyncFnOnce(SchemaClient<'_>) -> Done<T>,
    ) -> StoreResult<T> {
        Box::pin(self.run_on(doing, async |connection: &DatabaseConnection| {
            let done = work(connection.tables(&self.config.schema)).await;
            connection.settled(done)
        }))
        .await?
    }

    /// Runs statements in one transaction, which is committed unless `work` fails.
    pub(crate) async fn change<T>(
        &self,
        doing: &'static str,
        work: impl AsyncFnOnce(SchemaClient<'_>) -> Done<T>,
    ) -> StoreResult<T> {
        Box::pin(self.run_on(doing, async |connection: &DatabaseConnection| {
            let DatabaseConnection { client, .. } = connection;
            client.batch_execute("BEGIN").await?;
            let done = work(connection.tables(&self.config.schema)).await;
            let end = if done.is_ok() { "COMMIT" } else { "ROLLBACK" };
            let ended = client.batch_execute(end).await;
            let settled = connection.settled(done)?;
            ended.map(|()| settled)
        }))
        .await?
    }

    /// Runs `work` on the connection. Callers run one after another. Each waits up to the timeout for its turn, and then has the
    /// same time again for its work, so that the waits of queued callers do not add up while the database is
    /// unreachable. The connection is closed after a connection failure or a missed deadline. After a missed deadline,
    /// the next attempt to connect starts with another host. An error of the database itself (a constraint, a closed
    /// day) keeps the connection open.
    async fn run_on<T>(
        &self,
        doing: &'static str,
        work: impl AsyncFnOnce(&DatabaseConnection) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, OpenFailure> {
        let timeout = self.config.timeout;
        let Ok(mut state) = self.clock.within(timeout, self.state.lock()).await else {
            let reason = no_answer(timeout);
            return Err(failed(doing, reason, ConnectionFault::Unreachable));
        };
        let LinkState { hosts, open } = &mut *state;
        let done = self.clock.within(timeout, async {
            let connection = if let Some(usable) = open.take().filter(DatabaseConnection::is_usable)
            {
                usable
            } else {
                let connecting = Box::pin(
                    hosts.connect(&self.clock, timeout, |server: Config| self.open(server)),
                );
                connecting
                    .await
                    .map_err(|error| (error.to_string(), error.kind))?
            };
            let done = work(&connection).await;
            if done
                .as_ref()
                .err()
                .is_none_or(|error| error.as_db_error().is_some())
                && connection.is_usable()
            {
                *open = Some(connection);
            }
            done.map_err(|error| (described(&error), ConnectionFault::Unreachable))
        });
        let (reason, kind) = match done.await {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(fault)) => fault,
            Err(_) => {
                hosts.skip_first();
                (no_answer(timeout), ConnectionFault::Unreachable)
            }
        };
        Err(failed(doing, reason, kind))
    }

    /// Connects, unless already connected.
    pub(crate) async fn connect(&self, doing: &'static str) -> Result<(), OpenFailure> {
        Box::pin(self.run_on(doing, async |_: &DatabaseConnection| Ok(()))).await
    }

    /// Opens a separate connection that is not shared.
    pub(crate) async fn connect_apart(
        &self,
        doing: &'static str,
    ) -> Result<DatabaseConnection, OpenFailure> {
        let mut state = self.state.lock().await;
        let connected = Box::pin(state.hosts.connect(
            &self.clock,
            self.config.timeout,
            |server: Config| self.open(server),
        ))
        .await;
        connected.map_err(|fault| failed(doing, fault.to_string(), fault.kind))
    }

    async fn open(&self, server: Config) -> Result<DatabaseConnection, HostFault> {
        let mut connection = DatabaseConnection::open(&self.config, server, None).await?;
        if let Some(check) = &self.check {
            let client = connection.tables(&self.config.schema);
            let hides_timeline = check.admit(client, self.clock.mono()).await?;
            connection.features.hides_timeline = hides_timeline;
        }
        Ok(connection)
    }
}

fn failed(doing: &'static str, reason: String, kind: ConnectionFault) -> OpenFailure {
    OpenFailure {
        kind,
        error: StoreError::Unavailable { doing, reason },
    }
}
