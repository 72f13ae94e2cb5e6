//! The link to the database: a connection that is opened when it is needed and replaced after a failure.
//!
//! A statement that misses its deadline is never cancelled: a server that waits for its synchronous standby would report
//! success without it. The connection is closed instead, and the outcome of the statement is unknown.

use std::sync::Arc;
use std::time::Duration;

use tokio_postgres::Client;

use super::connection::{DatabaseConfig, DatabaseConnection};
use crate::clock::Clock;
use crate::store::StoreError;

/// One connection, opened when it is needed.
pub(super) struct DatabaseLink {
    config: Arc<DatabaseConfig>,
    clock: Clock,
    open: tokio::sync::Mutex<Option<DatabaseConnection>>,
}

impl DatabaseLink {
    pub(super) fn new(config: Arc<DatabaseConfig>, clock: Clock) -> Self {
        Self { config, clock, open: tokio::sync::Mutex::new(None) }
    }

    /// Runs `work` on the connection, one caller after another, within the deadline. After any failure of the connection
    /// or a missed deadline the connection is closed. An error of the database itself (a constraint, a closed day)
    /// leaves it open.
    pub(super) async fn run<T>(
        &self,
        doing: &'static str,
        work: impl AsyncFnOnce(&mut Client) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, DatabaseError> {
        let mut slot = self.open.lock().await;
        let done = self.clock.within(self.config.timeout, async {
            let mut connection = match slot.take().filter(DatabaseConnection::is_usable) {
                Some(open) => open,
                None => DatabaseConnection::open(&self.config).await?,
            };
            let done = work(&mut connection.client).await;
            if done.as_ref().err().is_none_or(|error| error.as_db_error().is_some()) && connection.is_usable()
            {
                *slot = Some(connection);
            }
            done
        });
        match done.await {
            Ok(done) => done.map_err(|error| DatabaseError::new(doing, error)),
            Err(_) => Err(DatabaseError::late(doing, self.config.timeout)),
        }
    }
}

/// Why a call to the database failed.
#[derive(Debug)]
pub(super) struct DatabaseError {
    doing: &'static str,
    cause: Result<tokio_postgres::Error, Duration>,
}

impl DatabaseError {
    fn new(doing: &'static str, error: tokio_postgres::Error) -> Self {
        Self { doing, cause: Ok(error) }
    }

    fn late(doing: &'static str, timeout: Duration) -> Self {
        Self { doing, cause: Err(timeout) }
    }
}

impl From<DatabaseError> for StoreError {
    fn from(error: DatabaseError) -> Self {
        let reason = match error.cause {
            Ok(cause) => described(&cause),
            Err(timeout) => format!("the database did not answer within {} s", timeout.as_secs_f64()),
        };
        Self::Unavailable { doing: error.doing, reason }
    }
}

/// The error and its causes. The library's own text names only the first.
fn described(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
