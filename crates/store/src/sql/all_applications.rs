//! Reads all applications with one statement.
//!
//! The server joins and sorts whole tables. This takes half the time of reading pages by id, where each row is read
//! from a different place on disk. The first rows arrive after the sort. The connection is not shared, so no other call
//! has to wait.

use std::{pin::Pin, time::Duration};

use futures_util::{
    Stream, StreamExt as _, TryStreamExt as _,
    stream::{self, Fuse},
};
use tokio_postgres::{Row, RowStream};

use super::{
    records::{self, ApplicationRows},
    store::Store,
};
use crate::{
    ApplicationPage, StoreError, StoreResult,
    postgres::{DatabaseConnection, DatabaseEngine, described, no_answer},
    statements::{KEYS_AND_UNITS, SqlField::Text, SqlRow},
};
use scoregate_base::clock::Day;

/// Applications per page when reading a file.
const FILE_PAGE: usize = 10_000;

/// The operation named in error messages.
const READ: &str = "read applications";
/// Makes the server read whole tables in disk order, then join and sort them, in several parallel processes. Otherwise
/// the planner would use the indexes, which reads rows from all over the disk, and would spend half a second on JIT
/// compilation.
const BEGIN: &str = "
BEGIN READ ONLY;
SET LOCAL enable_mergejoin = off;
SET LOCAL enable_nestloop = off;
SET LOCAL jit = off";

/// Deadline for the first rows. Sorting a million applications takes 2 s, and the time grows with their number.
const SORT_TIMEOUT: Duration = Duration::from_mins(2);
/// Rows per page. A page gets more rows if it needs them to include all keys of its last application.
const PAGE_ROWS: usize = 2_000;

/// Rows of a statement in progress.
struct ReadingAll {
    rows: Fuse<Pin<Box<RowStream>>>,
    /// The first row of the next page.
    next: Option<Row>,
    /// Dropped after the last row.
    _connection: DatabaseConnection,
}

/// All applications in pages.
pub type ApplicationPages<'a> =
    Pin<Box<dyn Stream<Item = StoreResult<ApplicationPage>> + Send + 'a>>;

impl Store {
    /// All applications, ordered by id, with the units granted for `day`. An error ends the stream. Each page from a
    /// database has a deadline.
    pub fn all(&self, day: Day) -> ApplicationPages<'_> {
        if let Some(engine) = self.database() {
            let rows = ApplicationsOfDatabase { engine, day };
            return Box::pin(stream::try_unfold(None, move |reading| {
                rows.next_page(reading)
            }));
        }
        Box::pin(stream::try_unfold(Some(None), move |next| async move {
            let Some(after) = next else { return Ok(None) };
            let page = self.page(after, FILE_PAGE, day).await?;
            let next = page.next.map(Some);
            Ok(Some((page, next)))
        }))
    }
}

#[derive(Clone, Copy)]
struct ApplicationsOfDatabase<'e> {
    engine: &'e DatabaseEngine,
    day: Day,
}

impl ApplicationsOfDatabase<'_> {
    async fn next_page(
        self,
        reading: Option<ReadingAll>,
    ) -> StoreResult<Option<(ApplicationPage, Option<ReadingAll>)>> {
        let (mut reading, deadline) = match reading {
            Some(reading) => (reading, self.engine.config.timeout),
            None => (self.begin().await?, SORT_TIMEOUT),
        };
        let page = self.in_time(deadline, reading.page()).await?;
        Ok(page.map(|page| (page, Some(reading))))
    }

    async fn begin(self) -> StoreResult<ReadingAll> {
        let connection = self.engine.connection.connect_apart(READ).await?;
        let client = connection.tables(&self.engine.config.schema);
        let day = self.day.to_string();
        let select = records::select(KEYS_AND_UNITS, "true");
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
        self,
        deadline: Duration,
        work: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> StoreResult<T> {
        let reason = match self.engine.clock.within(deadline, work).await {
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
