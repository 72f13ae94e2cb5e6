//! Features of the connected server: the required features, and the server's history. A server may hide its history. Then a former
//! primary is not recognized, and each start of the server counts as a failover. Only this file uses the `pg_control` functions.
//!
//! Advisory locks are not used. Instead, the row of `site` is locked in one of three modes.

use tokio_postgres::{Client, error::SqlState};

/// The timeline is read from the current end of the log, because the timeline of the last checkpoint is outdated for a
/// while after a promotion. The change feed reads the timeline of the checkpoint, which needs no access to the log.
const HISTORY: &str = "
SELECT (SELECT system_identifier FROM pg_control_system())::text AS system,
       CASE WHEN pg_is_in_recovery() THEN 0
            ELSE ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint END AS timeline
FROM pg_control_checkpoint()";

/// The result for a missing function or view is `NULL`.
const FEATURES: &str = "
SELECT concat_ws(' and ',
           CASE WHEN has_function_privilege(to_regprocedure('pg_notify(text,text)'), 'EXECUTE') THEN NULL
                ELSE 'notifications (pg_notify)' END,
           CASE WHEN has_table_privilege(to_regclass('pg_stat_user_tables'), 'SELECT') THEN NULL
                ELSE 'table statistics (pg_stat_user_tables)' END) AS missing,
       coalesce(has_function_privilege(to_regprocedure('pg_control_system()'), 'EXECUTE'), false) AS cluster";

/// The error codes of services that lack a function or do not permit its use.
const REFUSALS: [SqlState; 5] = [
    SqlState::INSUFFICIENT_PRIVILEGE,
    SqlState::UNDEFINED_FUNCTION,
    SqlState::FEATURE_NOT_SUPPORTED,
    SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
    SqlState::SYNTAX_ERROR,
];

/// The features of a connection's server.
#[derive(Clone, Copy, Debug, Default)]
pub struct EngineFeatures {
    has_cluster: bool,
    /// Set once the server has refused to disclose its timeline.
    pub hides_timeline: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerHistory {
    /// The cluster and its timeline. The timeline number increases with each failover.
    Disclosed { system: String, timeline: u32 },
    /// The reason why the server does not disclose them. A former primary is then not recognized.
    Hidden(String),
}

impl EngineFeatures {
    /// The features of a server; an inner error names required features that it lacks.
    pub async fn read(client: &Client) -> Result<Result<Self, String>, tokio_postgres::Error> {
        let row = client.query_typed_one(FEATURES, &[]).await?;
        let missing: String = row.try_get("missing")?;
        if !missing.is_empty() {
            return Ok(Err(missing));
        }
        Ok(Ok(Self {
            has_cluster: row.try_get("cluster")?,
            hides_timeline: false,
        }))
    }

    /// A statement in the form that this server accepts. `{history}` is the history of the server, which may only be
    /// compared for equality, and `{cluster}` is its system identifier, if disclosed.
    pub fn statement(self, text: String) -> String {
        if !text.contains('{') {
            return text;
        }
        let history = if self.hides_timeline {
            "'start-' || extract(epoch FROM pg_postmaster_start_time())::text"
        } else {
            "(SELECT timeline_id::text FROM pg_control_checkpoint())"
        };
        let cluster = if self.has_cluster {
            "(SELECT system_identifier::text FROM pg_control_system())"
        } else {
            "NULL::text"
        };
        text.replace("{cluster}", cluster)
            .replace("{history}", history)
    }
}

impl ServerHistory {
    pub async fn read(client: &Client) -> Result<Self, tokio_postgres::Error> {
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

/// Whether the server lacks a function or does not permit it.
fn is_refusal(error: &tokio_postgres::Error) -> bool {
    error.code().is_some_and(|code| REFUSALS.contains(code))
}
