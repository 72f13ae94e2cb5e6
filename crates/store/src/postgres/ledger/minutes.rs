//! Minute limits that gateways share: the part of an exchange that locks, reads and writes their pools. The rules are
//! in `limits::minute_pool`.

use std::collections::BTreeMap;

use crate::{
    LedgerReport, StoreError,
    statements::{
        Done, SchemaClient,
        SqlField::{Numbers, Texts},
        SqlRow,
    },
};
use scoregate_base::limits::{MinuteGrant, MinutePool, MinuteReport};

/// Creates missing pools.
const OPEN: &str = "
INSERT INTO {schema}.minute_pools (application)
SELECT a.id FROM unnest($1::text[]) AS r (application)
JOIN {schema}.applications a ON a.id = r.application
ORDER BY a.id
ON CONFLICT DO NOTHING";

/// The server's clock is read before the lock is held, so leases end slightly early. Even so, they end later than the
/// gateways assume, because gateways measure from before they send their reports.
const LOCK: &str = "
SELECT application, pool, (extract(epoch FROM clock_timestamp()) * 1000000)::int8 AS now
FROM {schema}.minute_pools WHERE application = ANY($1::text[]) ORDER BY application FOR UPDATE";

const WRITE: &str = "
UPDATE {schema}.minute_pools p SET used_at = r.used_at, pool = r.pool
FROM unnest($1::text[], $2::int8[], $3::text[]) AS r (application, used_at, pool)
WHERE p.application = r.application";

/// The locked pools of an exchange. `None` is a pool that was just created.
pub struct LockedPools {
    now: i64,
    pools: BTreeMap<String, Option<MinutePool>>,
}

/// Creates, locks and reads the pools named in the reports.
pub async fn lock(client: SchemaClient<'_>, reports: &[LedgerReport]) -> Done<LockedPools> {
    let mut locked = LockedPools {
        now: 0,
        pools: BTreeMap::new(),
    };
    let applications: Vec<String> = reports
        .iter()
        .filter(|report| report.minute.is_some())
        .map(|report| report.application.to_string())
        .collect();
    if applications.is_empty() {
        return Ok(locked);
    }
    let rows = [Texts(&applications)];
    // Polled together, so that both statements are sent before the first answer arrives.
    let (opened, found) = tokio::join!(client.query(OPEN, &rows), client.query(LOCK, &rows));
    opened?;
    for row in found? {
        let row = SqlRow::new(&row);
        locked.now = row.signed("now")?;
        let pool = row.optional_text("pool")?;
        let pool = pool.as_deref().map(read).transpose()?;
        locked.pools.insert(row.text("application")?, pool);
    }
    Ok(locked)
}

impl LockedPools {
    /// Applies a node's report about an application's minute limit. `None` if there is no such report, or if the
    /// application does not exist. If the terms are outdated, no token is granted.
    pub(crate) fn apply(
        &mut self,
        node: u64,
        report: &LedgerReport,
        is_outdated: bool,
    ) -> Option<MinuteGrant> {
        let mut minute = report.minute?;
        let pool = self
            .pools
            .get_mut(&report.application.to_string())?
            .get_or_insert_with(|| MinutePool::new(minute.limit, self.now));
        if is_outdated {
            minute = MinuteReport {
                wanted: 0,
                limit: pool.limit(),
                ..minute
            };
        }
        Some(pool.apply(node, &minute, self.now))
    }

    /// Writes the changed pools.
    pub(crate) async fn write(&self, client: SchemaClient<'_>) -> Done<()> {
        let mut applications = Vec::new();
        let mut used_at = Vec::new();
        let mut texts = Vec::new();
        for (application, pool) in &self.pools {
            let Some(pool) = pool else {
                continue;
            };
            applications.push(application.clone());
            used_at.push(pool.as_of());
            texts.push(written(pool)?);
        }
        if applications.is_empty() {
            return Ok(());
        }
        let values = [Texts(&applications), Numbers(&used_at), Texts(&texts)];
        client.execute(WRITE, &values).await.map(drop)
    }
}

fn read(text: &str) -> Result<MinutePool, StoreError> {
    serde_json::from_str(text).map_err(|error| unreadable(&error))
}

fn written(pool: &MinutePool) -> Result<String, StoreError> {
    serde_json::to_string(pool).map_err(|error| unreadable(&error))
}

fn unreadable(error: &serde_json::Error) -> StoreError {
    StoreError::Unavailable {
        doing: "exchange tokens of minute limits",
        reason: error.to_string(),
    }
}
