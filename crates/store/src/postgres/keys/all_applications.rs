//! All applications, read by one statement.
//!
//! The planner joins and sorts whole tables. This takes half the time of pages by id, which read each row from another
//! place on disk. The first rows arrive after the sort. The connection is not shared, so that no other call waits.

use std::pin::Pin;
use std::time::Duration;

use futures_util::stream::{self, Fuse};
use futures_util::{Stream, StreamExt as _, TryStreamExt as _};
use tokio_postgres::{Row, RowStream};

use crate::postgres::connection::database_connection::DatabaseConnection;
use crate::postgres::connection::hosts::{described, no_answer};
use crate::postgres::connection::schema_client::SchemaClient;
use crate::postgres::keys::records::{self, READ, application_id, page_of};
use crate::postgres::postgres_store::PostgresStore;
use crate::{ApplicationPage, StoreError, StoreResult};
use scoregate_base::clock::Day;

/// Deadline of the first rows. A million applications are sorted in 2 s, and the time grows with their number.
const SORT_TIMEOUT: Duration = Duration::from_mins(2);
/// Rows per page, more if an application has more keys.
const PAGE_ROWS: usize = 2_000;

/// Rows that are being received.
struct ReadingAll {
    rows: Fuse<Pin<Box<RowStream>>>,
    /// The first row of the next page.
    next: Option<Row>,
    /// Closed after the last row.
    _connection: DatabaseConnection,
}

impl PostgresStore {
    /// The applications in pages. Each page has a deadline.
    pub(crate) fn pages(&self, day: Day) -> impl Stream<Item = StoreResult<ApplicationPage>> {
        stream::try_unfold(None, move |reading| self.next_page(reading, day))
    }

    async fn next_page(
        &self,
        reading: Option<ReadingAll>,
        day: Day,
    ) -> StoreResult<Option<(ApplicationPage, Option<ReadingAll>)>> {
        let (mut reading, deadline) = match reading {
            Some(reading) => (reading, self.config.timeout),
            None => (self.begin(day).await?, SORT_TIMEOUT),
        };
        let page = self.in_time(deadline, reading.page()).await?;
        Ok(page.map(|page| (page, Some(reading))))
    }

    async fn begin(&self, day: Day) -> StoreResult<ReadingAll> {
        let connection = self.connection.connect_apart(READ).await?;
        let DatabaseConnection {
            client, features, ..
        } = &connection;
        let client = SchemaClient {
            client,
            schema: &self.config.schema,
            features: *features,
        };
        let rows = self
            .in_time(SORT_TIMEOUT, records::all(client, day))
            .await?;
        Ok(ReadingAll {
            rows: Box::pin(rows).fuse(),
            next: None,
            _connection: connection,
        })
    }

    async fn in_time<T>(
        &self,
        deadline: Duration,
        work: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> StoreResult<T> {
        let reason = match self.clock.within(deadline, work).await {
            Ok(Ok(done)) => return Ok(done),
            Ok(Err(error)) => described(&error),
            Err(_) => no_answer(deadline),
        };
        Err(StoreError::Unavailable {
            doing: READ,
            reason,
        })
    }
}

impl ReadingAll {
    /// The next page; `None` after the last one.
    async fn page(&mut self) -> Result<Option<ApplicationPage>, tokio_postgres::Error> {
        let mut rows: Vec<Row> = self.next.take().into_iter().collect();
        while let Some(row) = self.rows.try_next().await? {
            let ends = rows.len() >= PAGE_ROWS
                && rows
                    .last()
                    .is_some_and(|last| application_id(last) != application_id(&row));
            if ends {
                self.next = Some(row);
                break;
            }
            rows.push(row);
        }
        Ok((!rows.is_empty()).then(|| page_of(&rows)))
    }
}
