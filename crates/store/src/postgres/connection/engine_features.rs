//! The statements that managed services and other engines with PostgreSQL's protocol may lack. Only this file has them, each
//! with a weaker form:
//!
//! - Control functions: a former primary is not recognized, and each start of the server counts as a failover.
//! - Notifications: changes and shared documents are polled every second.
//! - Unlogged tables: contents of documents are in the write-ahead log.
//! - Statistics of tables: no estimates of their rows.
//!
//! There are no advisory locks: the row of `site` is locked instead, and in one of three modes it excludes what they would.

use std::collections::BTreeMap;

use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

/// The timeline is that of the current end of the log: the one of the last checkpoint is out of date for a while after a
/// promotion. The change feed reads the one of the checkpoint, without an access to the log.
const HISTORY: &str = "
SELECT (SELECT system_identifier FROM pg_control_system())::text AS system,
       CASE WHEN pg_is_in_recovery() THEN 0
            ELSE ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint END AS timeline
FROM pg_control_checkpoint()";

/// Whether this role has each feature that cannot be tried without an effect. A missing function or view is `NULL`.
const FEATURES: &str = "
SELECT coalesce(has_function_privilege(to_regprocedure('pg_notify(text,text)'), 'EXECUTE'), false) AS notifications,
       coalesce(has_table_privilege(to_regclass('pg_stat_user_tables'), 'SELECT'), false) AS statistics,
       coalesce(has_function_privilege(to_regprocedure('pg_control_system()'), 'EXECUTE'), false) AS cluster";

pub(crate) const LISTEN: &str = "LISTEN {schema}_changes; LISTEN {schema}_documents";

/// Every role may read these without a lock on the tables.
pub(crate) const STATISTICS: &str = "
SELECT relname::text AS name, n_live_tup AS live, n_dead_tup AS dead
FROM pg_stat_user_tables WHERE schemaname = '{schema}' AND relname = ANY ($1)";

/// The errors of services that do not have a statement, or do not allow it.
const REFUSALS: [SqlState; 5] = [
    SqlState::INSUFFICIENT_PRIVILEGE,
    SqlState::UNDEFINED_FUNCTION,
    SqlState::FEATURE_NOT_SUPPORTED,
    SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
    SqlState::SYNTAX_ERROR,
];

/// The features of the server of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EngineFeatures {
    pub(crate) has_notifications: bool,
    pub(crate) has_statistics: bool,
    /// The expression of the system identifier; empty if the server does not disclose it.
    pub(crate) cluster: &'static str,
    /// The keyword of unlogged tables; empty once the server has refused to create one.
    pub(crate) unlogged: &'static str,
    /// Set once the server has refused to disclose its timeline.
    pub(crate) hides_timeline: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServerHistory {
    /// Its cluster and timeline. A timeline is higher after each failover.
    Disclosed { system: String, timeline: u32 },
    /// The server refuses to disclose them, for this reason. A former primary is not recognized.
    Hidden(String),
}

impl EngineFeatures {
    pub(crate) async fn read(client: &Client) -> Result<Self, tokio_postgres::Error> {
        let row = match client.query_typed_one(FEATURES, &[]).await {
            Err(error) if is_refusal(&error) => return Ok(Self::default()),
            row => row?,
        };
        let has_notifications = row.try_get("notifications")?;
        let has_statistics = row.try_get("statistics")?;
        let discloses_cluster: bool = row.try_get("cluster")?;
        let cluster = if discloses_cluster {
            "(SELECT system_identifier::text FROM pg_control_system())"
        } else {
            ""
        };
        Ok(Self {
            has_notifications,
            has_statistics,
            cluster,
            unlogged: "UNLOGGED",
            hides_timeline: false,
        })
    }

    /// A statement in the form for this server. Without notifications `{notify}` is a function without an effect. `{history}` is
    /// the history of the server, to be compared for equality only, and `{cluster}` its system identifier, if it is disclosed.
    pub(crate) fn statement(self, text: String) -> String {
        if !text.contains('{') {
            return text;
        }
        let notify = if self.has_notifications {
            "pg_notify"
        } else {
            "concat"
        };
        let history = if self.hides_timeline {
            "'start-' || extract(epoch FROM pg_postmaster_start_time())::text"
        } else {
            "(SELECT timeline_id::text FROM pg_control_checkpoint())"
        };
        let cluster = match self.cluster {
            "" => "NULL::text",
            cluster => cluster,
        };
        text.replace("{notify}", notify)
            .replace("{cluster}", cluster)
            .replace("{unlogged}", self.unlogged)
            .replace("{history}", history)
    }

    /// Each missing feature, and the effect of its weaker form.
    pub(crate) fn missing(self) -> BTreeMap<&'static str, &'static str> {
        let notifications = "changes and documents of other gateways arrive within a second";
        let statistics = "scoregate_store_live_rows and scoregate_store_dead_rows are absent; make sure that the service \
                          removes outdated rows";
        let unlogged = "contents of documents are in the write-ahead log, and on standbys";
        let features = [
            (self.has_notifications, ("notifications", notifications)),
            (self.has_statistics, ("statistics of tables", statistics)),
            (!self.unlogged.is_empty(), ("unlogged tables", unlogged)),
        ];
        features
            .into_iter()
            .filter(|(has_it, _)| !has_it)
            .map(|(_, feature)| feature)
            .collect()
    }
}

impl ServerHistory {
    pub(crate) async fn read(client: &Client) -> Result<Self, tokio_postgres::Error> {
        let row = match client.query_typed_one(HISTORY, &[]).await {
            Err(error) if is_refusal(&error) => {
                let reason = error
                    .as_db_error()
                    .map_or_else(|| error.to_string(), |error| error.message().into());
                return Ok(Self::Hidden(reason));
            }
            row => row?,
        };
        let timeline = u32::try_from(row.try_get::<_, i64>("timeline")?).unwrap_or(0);
        Ok(Self::Disclosed {
            system: row.try_get("system")?,
            timeline,
        })
    }
}

/// Whether the server does not have a statement, or does not allow it.
pub(crate) fn is_refusal(error: &tokio_postgres::Error) -> bool {
    error.code().is_some_and(|code| REFUSALS.contains(code))
}
