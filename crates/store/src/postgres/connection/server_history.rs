//! Reads the cluster identifier and timeline of a server, by which a former primary is recognized. Only this file calls
//! control functions, because some managed services refuse them.

use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

/// The timeline is that of the current end of the log: the one of the last checkpoint is out of date for a while after a
/// promotion. The change feed reads the one of the checkpoint, without an access to the log.
const HISTORY: &str = "
SELECT (SELECT system_identifier FROM pg_control_system())::text AS system,
       CASE WHEN pg_is_in_recovery() THEN 0
            ELSE ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint END AS timeline
FROM pg_control_checkpoint()";

/// The errors of services that do not have these functions, or do not allow them.
const REFUSALS: [SqlState; 4] = [
    SqlState::INSUFFICIENT_PRIVILEGE,
    SqlState::UNDEFINED_FUNCTION,
    SqlState::FEATURE_NOT_SUPPORTED,
    SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ServerHistory {
    /// Its cluster and timeline. A timeline is higher after each failover.
    Disclosed { system: String, timeline: u32 },
    /// The server refuses to disclose them, for this reason. A former primary is not recognized.
    Hidden(String),
}

/// How the change feed recognizes another server, whose changes may have the same numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HistoryForm {
    /// By its timeline.
    Timeline,
    /// By the start of its processes: each restart counts as another server.
    ServerStart,
}

impl ServerHistory {
    pub(crate) async fn read(client: &Client) -> Result<Self, tokio_postgres::Error> {
        let row = match client.query_typed_one(HISTORY, &[]).await {
            Err(error) if error.code().is_some_and(|code| REFUSALS.contains(code)) => {
                let reason =
                    error.as_db_error().map_or_else(|| error.to_string(), |error| error.message().into());
                return Ok(Self::Hidden(reason));
            }
            row => row?,
        };
        let timeline = u32::try_from(row.try_get::<_, i64>("timeline")?).unwrap_or(0);
        Ok(Self::Disclosed { system: row.try_get("system")?, timeline })
    }
}

impl HistoryForm {
    /// An expression for the history of a server, to be compared for equality only.
    pub(crate) fn expression(self) -> &'static str {
        match self {
            Self::Timeline => "(SELECT timeline_id::text FROM pg_control_checkpoint())",
            Self::ServerStart => "'start-' || extract(epoch FROM pg_postmaster_start_time())::text",
        }
    }
}
