//! The change feed: applications that changed after a position.
//!
//! A position is the number of an audit record, the identity of the data set, and the history of the server, which
//! changes with every failover: a server that lost changes may assign their numbers again.

use tokio_postgres::Client;
use tokio_postgres::types::Type;

use super::connection::{Parameter, SchemaName};
use super::server_history::HistoryForm;
use crate::clock::Wall;
use crate::keys::ApplicationId;
use crate::store::{ChangedApplications, FeedPosition};

/// Reads, with the schema's name.
pub(super) struct FeedStatements {
    by_timeline: FeedReads,
    by_server_start: FeedReads,
}

struct FeedReads {
    position: String,
    changed: String,
}

const POSITION: &str = "
SELECT s.id::text || '/' || {history} AS source, (SELECT coalesce(max(id), 0) FROM {schema}.audit) AS number
FROM {schema}.site s";

const CHANGED: &str = "
SELECT s.id::text || '/' || {history} AS source, a.number, a.application,
       (SELECT coalesce(max(id), 0) FROM {schema}.audit) AS newest,
       (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS clock
FROM {schema}.site s
LEFT JOIN (
    SELECT max(id) AS number, application FROM {schema}.audit WHERE id > $1 GROUP BY application
    ORDER BY number LIMIT $2
) a ON true
ORDER BY a.number";

impl FeedStatements {
    pub(super) fn new(schema: &SchemaName) -> Self {
        let reads = |form: HistoryForm| {
            let with_history = |text: &str| schema.statement(&text.replace("{history}", form.expression()));
            FeedReads { position: with_history(POSITION), changed: with_history(CHANGED) }
        };
        Self { by_timeline: reads(HistoryForm::Timeline), by_server_start: reads(HistoryForm::ServerStart) }
    }

    fn of(&self, form: HistoryForm) -> &FeedReads {
        match form {
            HistoryForm::Timeline => &self.by_timeline,
            HistoryForm::ServerStart => &self.by_server_start,
        }
    }

    /// The position of the last change.
    pub(super) async fn position(
        &self,
        client: &Client,
        form: HistoryForm,
    ) -> Result<FeedPosition, tokio_postgres::Error> {
        let row = client.query_typed_one(&self.of(form).position, &[]).await?;
        let number: i64 = row.try_get("number")?;
        Ok(FeedPosition { source: row.try_get("source")?, number: u64::try_from(number).unwrap_or(0) })
    }

    /// Up to `limit` applications that changed after a position, in the order of their last changes.
    pub(super) async fn changed(
        &self,
        client: &Client,
        form: HistoryForm,
        after: &FeedPosition,
        limit: usize,
    ) -> Result<ChangedApplications, tokio_postgres::Error> {
        let number = i64::try_from(after.number).unwrap_or(i64::MAX);
        let most = i64::try_from(limit).unwrap_or(i64::MAX);
        let row: [Parameter<'_>; 2] = [(&number, Type::INT8), (&most, Type::INT8)];
        let rows = client.query_typed(&self.of(form).changed, &row).await?;
        let mut changed = ChangedApplications { reached: after.clone(), ..ChangedApplications::default() };
        for row in &rows {
            changed.reached.source = row.try_get("source")?;
            changed.newest = u64::try_from(row.try_get::<_, i64>("newest")?).unwrap_or(0);
            changed.clock = u64::try_from(row.try_get::<_, i64>("clock")?).ok().map(Wall::from_millis);
            let Some(number) = row.try_get::<_, Option<i64>>("number")? else { continue };
            changed.reached.number = u64::try_from(number).unwrap_or(0);
            let application: &str = row.try_get("application")?;
            // Records of maintenance commands name no application.
            changed.applications.extend(application.parse::<ApplicationId>());
        }
        Ok(changed)
    }
}
