//! All applications, read by one statement.
//!
//! The server joins and sorts whole tables. This takes half the time of pages by id, which read each row from another
//! place on disk. The first rows arrive after the sort. The connection is not shared, so that no other call waits.

use std::pin::Pin;
use std::time::Duration;

use futures_util::stream::{self, Fuse};
use futures_util::{Stream, StreamExt as _, TryStreamExt as _};
use tokio_postgres::{Row, RowStream};

use crate::postgres::connection::database_connection::DatabaseConnection;
use crate::postgres::connection::hosts::{described, no_answer};
use crate::postgres::postgres_store::PostgresStore;
use crate::sql::records::{self, ApplicationRows};
use crate::sql::rows::SqlRow;
use crate::sql::tables::SqlField::Text;
use crate::{ApplicationPage, StoreError, StoreResult};
use scoregate_base::clock::Day;

/// The operation named in error messages.
const READ: &str = "read applications";
/// The tables are read as they are on disk, joined and sorted, by several processes of the server at once. The planner would
/// read them by their indexes, row by row from all over the disk, and compile the statement for half a second.
const BEGIN: &str = "
BEGIN READ ONLY;
SET LOCAL enable_mergejoin = off;
SET LOCAL enable_nestloop = off;
SET LOCAL jit = off";

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
        let client = connection.tables(&self.config.schema);
        let day = day.to_string();
        let select = records::select(records::JOINED, "true");
        let rows = async {
            client.client.batch_execute(BEGIN).await?;
            client.stream(&select, &[Text(&day)]).await
        };
        let rows = self.in_time(SORT_TIMEOUT, rows).await?;
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
        let mut rows = ApplicationRows::default();
        let mut count = 0;
        let mut next = self.next.take();
        if next.is_none() {
            next = self.rows.try_next().await?;
        }
        while let Some(row) = next {
            if count >= PAGE_ROWS && rows.ends_before(&SqlRow::new(&row)) {
                self.next = Some(row);
                break;
            }
            rows.add(&SqlRow::new(&row));
            count += 1;
            next = self.rows.try_next().await?;
        }
        Ok((count > 0).then(|| rows.finish()))
    }
}
