//! Checks the server of each new connection in one round trip: it must not be older than a server that was used before,
//! and this program must be able to use its tables. A read-only server is refused earlier, see
//! [`DatabaseAddress`](crate::postgres::connection::address::DatabaseAddress).

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio_postgres::{Row, error::SqlState};

use crate::{
    postgres::{
        connection::{
            hosts::HostFault,
            seen_timelines::{RestoreMarks, SeenState, SeenTimelines, ServerAge, ServerState},
        },
        tables::{IS_OWN, RESTORED, SchemaFormat},
    },
    statements::{SchemaClient, ServerHistory},
};
use scoregate_base::clock::Mono;

/// Minimum interval between log lines about the same refusal.
const LOG_INTERVAL: Duration = Duration::from_mins(1);

const SITE: &str = "SELECT id::text, format, compatible_from FROM {schema}.site";

/// Marks the tables as restored, for gateways that have not seen the missing commits.
const DISOWN: &str = "UPDATE {schema}.calendar SET own_oid = 0";

/// Removes the known timelines. This is for operators.
const FORGET: &str = "DELETE FROM promises WHERE kind = 'timeline'";

#[derive(Debug)]
pub struct ServerCheck {
    seen: Arc<SeenTimelines>,
    /// The only data set that is accepted, if set.
    data_set: OnceLock<String>,
    /// Whether a server that hides its history was accepted and logged.
    accepts_hidden: AtomicBool,
    /// The last refusal that was logged, and the time.
    logged: Mutex<Option<(String, Mono)>>,
}

impl ServerCheck {
    pub(crate) fn new(seen: SeenTimelines) -> Self {
        Self {
            seen: Arc::new(seen),
            data_set: OnceLock::new(),
            accepts_hidden: AtomicBool::new(false),
            logged: Mutex::default(),
        }
    }

    /// From now on, refuses servers that hold another data set.
    pub(crate) fn accept_only(&self, data_set: &str) {
        self.data_set.get_or_init(|| data_set.to_owned());
    }

    /// Returns whether the server hides its timeline; an error if the server must not be used.
    pub(crate) async fn admit(
        &self,
        client: SchemaClient<'_>,
        now: Mono,
    ) -> Result<bool, HostFault> {
        let admitted = self.judge(client).await;
        if let Err(HostFault::Refused(reason) | HostFault::Unusable(reason)) = &admitted {
            self.log(reason, now);
        }
        admitted
    }

    async fn judge(&self, client: SchemaClient<'_>) -> Result<bool, HostFault> {
        // Read before the server is queried, because a report that is committed in the meantime advances the state.
        let known = self.seen.state();
        let [site, own] = [SITE, IS_OWN].map(|text| client.statement(text));
        // Polled together, so that all queries are sent before the first answer arrives.
        let (site, own, history) = tokio::join!(
            client.client.query_typed_opt(&site, &[]),
            client.client.query_typed_opt(&own, &[]),
            ServerHistory::read(client.client)
        );
        let data_set = self.usable_data_set(site)?;
        let own = own?.ok_or_else(|| HostFault::Refused(RESTORED.into()))?;
        let marks = RestoreMarks::of(&own)?;
        let history = history?;
        let server = ServerState {
            data_set: &data_set,
            marks,
            history: &history,
        };
        self.compare(&known, &server, client).await?;
        if let ServerHistory::Hidden(reason) = &history {
            self.accept_hidden(reason, &known, &server)?;
        }
        if self.seen.record(&server) {
            self.save().await;
        }
        Ok(matches!(history, ServerHistory::Hidden(_)))
    }

    /// The data set, if this program can use the tables.
    fn usable_data_set(
        &self,
        site: Result<Option<Row>, tokio_postgres::Error>,
    ) -> Result<String, HostFault> {
        let site = match site {
            Err(error) if is_missing(&error) => None,
            site => site?,
        };
        if let Some(problem) =
            SchemaFormat::problem(site.as_ref().map(SchemaFormat::of).transpose()?)
        {
            return Err(HostFault::Unusable(problem));
        }
        let found: String = site.map_or_else(|| Ok(String::new()), |row| row.try_get("id"))?;
        if let Some(expected) = self.data_set.get().filter(|expected| **expected != found) {
            return Err(HostFault::Refused(format!(
                "the database holds the data set {found}, but the local copy of the keys belongs to {expected}: correct \
                 store.url, or restart the gateway to use this database"
            )));
        }
        Ok(found)
    }

    /// Accepts a server that does not disclose its timeline only if no timeline was ever checked: neither a failover
    /// nor a revoked privilege may weaken the check.
    fn accept_hidden(
        &self,
        reason: &str,
        known: &SeenState,
        server: &ServerState<'_>,
    ) -> Result<(), HostFault> {
        if known.has_timelines() && !known.is_older_than(server) {
            return Err(HostFault::Refused(format!(
                "the server does not disclose its timeline ({reason}), and timelines were checked before: it may be a former \
                 primary. Grant EXECUTE on the control functions to this role, or, if the database was moved to a service \
                 without them,{} restart the gateway",
                self.how_to_forget()
            )));
        }
        if !self.accepts_hidden.swap(true, Ordering::AcqRel) {
            tracing::warn!(
                reason,
                "the database does not disclose its timeline: a former primary that accepts connections after a failover is \
                 not recognized, and lacks later changes and grants"
            );
        }
        Ok(())
    }

    fn how_to_forget(&self) -> String {
        self.seen
            .file()
            .map(|file| {
                let file = file.display();
                format!(" run `sqlite3 {file} \"{FORGET}\"` and")
            })
            .unwrap_or_default()
    }

    async fn compare(
        &self,
        known: &SeenState,
        server: &ServerState<'_>,
        client: SchemaClient<'_>,
    ) -> Result<(), HostFault> {
        let reason = match known.compare(server) {
            ServerAge::Current => return Ok(()),
            ServerAge::BehindTimeline(timeline, highest) => format!(
                "the server is on timeline {timeline}, and one on timeline {highest} was used before: this server was the \
                 primary before a failover and lacks later changes. Rebuild it as a standby, or remove it from store.url. If \
                 the newer server is lost, stop all gateways and run `scoregate store restore` to accept this one"
            ),
            ServerAge::BehindRestore => "the server was replaced by a restored one and lacks later changes: rebuild it as a \
                 standby, or remove it from store.url"
                .into(),
            ServerAge::LacksCommits => {
                let disown = client.statement(DISOWN);
                client.client.batch_execute(&disown).await?;
                RESTORED.into()
            }
        };
        Err(HostFault::Refused(reason))
    }

    /// Records that this gateway has reported. A restored database lacks the report.
    pub(crate) async fn reported(&self, row: &Row) -> Result<(), tokio_postgres::Error> {
        if self
            .seen
            .raise(row.try_get("data_set")?, RestoreMarks::of(row)?)
        {
            self.save().await;
        }
        Ok(())
    }

    /// Called before the server is used.
    async fn save(&self) {
        let seen = Arc::clone(&self.seen);
        match tokio::task::spawn_blocking(move || seen.save()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                tracing::error!(%error, "the state of the database cannot be saved; it is remembered until a restart");
            }
            Err(_) => tracing::error!("saving the state of the database panicked"),
        }
    }

    fn log(&self, reason: &str, now: Mono) {
        let mut logged = self.logged.lock();
        let is_new = logged
            .as_ref()
            .is_none_or(|(before, at)| before != reason || now.since(*at) >= LOG_INTERVAL);
        if is_new {
            *logged = Some((reason.to_owned(), now));
            drop(logged);
            tracing::error!(%reason, "database server rejected");
        }
    }
}

/// Whether the table or its schema does not exist.
fn is_missing(error: &tokio_postgres::Error) -> bool {
    error.code().is_some_and(|code| {
        [SqlState::UNDEFINED_TABLE, SqlState::INVALID_SCHEMA_NAME].contains(code)
    })
}
