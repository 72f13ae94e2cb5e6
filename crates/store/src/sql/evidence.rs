//! Evidence of use. The rules are in `store::evidence`.

use std::collections::BTreeMap;

use super::store::{
    Access::{Change, Read, Write},
    Store,
};
use crate::{
    DayRecord, EvidenceQuery, HourRecord, StoreResult,
    statements::{
        Done, RowResult,
        SqlField::{Bytes, Flag, Number, Text},
        SqlRow, Tables, parameters,
    },
    stored::stored,
};
use scoregate_base::{
    clock::Day,
    evidence::{BadEvidence, DayEvidence, EVIDENCE_DAYS_KEPT, HourEvidence},
};

/// Maximum number of rows that are merged in one transaction.
const AT_ONCE: usize = 500;
const DAY_HOURS: u32 = 24;

const ADD_KEY: &str =
    "INSERT INTO {schema}.evidence_keys (day, hash_key) VALUES ($1, $2) ON CONFLICT DO NOTHING";
const KEY: &str = "SELECT hash_key FROM {schema}.evidence_keys WHERE day = $1";
const RECORD: &str = "
INSERT INTO {schema}.evidence_hours (hour, application, node, record) VALUES {rows}
ON CONFLICT (hour, application, node) DO UPDATE SET record = excluded.record";
/// Takes the records of all nodes together, because an hour that is added in parts is underestimated.
const TAKE_HOURS: &str = "
DELETE FROM {schema}.evidence_hours WHERE (hour, application) IN (
    SELECT DISTINCT hour, application FROM {schema}.evidence_hours WHERE hour < $1 ORDER BY hour, application LIMIT $2)
RETURNING hour AS number, application, record";
const ENDED_DAYS: &str = "
SELECT day AS number, application, record FROM {schema}.evidence_days
WHERE day < $1 AND NOT is_compact ORDER BY day, application LIMIT $2";
const TAKE_DAYS: &str = "
DELETE FROM {schema}.evidence_days WHERE day = {day} AND application IN ({applications})
RETURNING day AS number, application, record";
const ADD_DAYS: &str =
    "INSERT INTO {schema}.evidence_days (day, application, is_compact, record) VALUES {rows}";
const DAYS: &str = "
SELECT day AS number, application, record FROM {schema}.evidence_days WHERE day BETWEEN $1 AND $2
ORDER BY day, application";
/// Searches one day at a time, so that each search uses the index on day and application.
const DAYS_OF_APPLICATION: &str = "
SELECT day AS number, application, record FROM {schema}.evidence_days
WHERE application = $1 AND day IN ({days}) ORDER BY day";

/// Hours of a day, by application.
type HoursOfDay = BTreeMap<String, BTreeMap<u32, HourEvidence>>;

/// Merges hours into their days and compacts ended days, in a transaction. Other merges are locked out, so a day does
/// not change while it is deleted and rewritten. If an hour is recorded concurrently, it is either merged as committed or kept
/// for the next merge.
async fn merge(tables: Tables<'_>, until: u32, catalogue: u16, most: usize) -> Done<bool> {
    tables.lock().await?;
    let most = Number(stored(most.min(AT_ONCE)));
    let today = until / DAY_HOURS;
    let mut days = BTreeMap::<u32, HoursOfDay>::new();
    let mut unreadable = 0;
    for (hour, application, bytes) in tables
        .list(TAKE_HOURS, &[Number(until.into()), most], evidence_row)
        .await?
    {
        let hours = days
            .entry(hour / DAY_HOURS)
            .or_default()
            .entry(application)
            .or_default();
        match HourEvidence::decode(hour, &bytes) {
            Ok(evidence) => hours
                .entry(hour)
                .or_insert_with(|| HourEvidence::of(hour))
                .add(&evidence),
            Err(BadEvidence) => unreadable += 1,
        }
    }
    for (day, application, _) in tables
        .list(ENDED_DAYS, &[Number(today.into()), most], evidence_row)
        .await?
    {
        days.entry(day).or_default().entry(application).or_default();
    }
    for (day, hours) in &days {
        unreadable += merge_day(tables, *day, *day < today, hours, catalogue).await?;
    }
    if unreadable > 0 {
        tracing::warn!(count = unreadable, error = %BadEvidence, "deleted evidence of use");
    }
    Ok(!days.is_empty())
}

/// Adds hours to a day, compacts the day if it has ended, and returns the number of unreadable day records.
async fn merge_day(
    tables: Tables<'_>,
    day: u32,
    is_over: bool,
    hours: &HoursOfDay,
    catalogue: u16,
) -> Done<u32> {
    let mut found = BTreeMap::new();
    let mut unreadable = 0;
    let applications: Vec<_> = hours.keys().map(|application| Text(application)).collect();
    let take = TAKE_DAYS.replace("{applications}", &parameters(1, applications.len()));
    let take = take.replace("{day}", &day.to_string());
    for (_, application, bytes) in tables.list(&take, &applications, evidence_row).await? {
        match DayEvidence::decode(&bytes) {
            Ok(evidence) => drop(found.insert(application, evidence)),
            Err(BadEvidence) => unreadable += 1,
        }
    }
    let mut merged = Vec::new();
    for (application, hours) in hours {
        let found = found.remove(application);
        // If there is neither a day nor an hour, the records were unreadable.
        if found.is_some() || !hours.is_empty() {
            let mut evidence = found.unwrap_or_default();
            for hour in hours.values() {
                evidence.add(hour, catalogue);
            }
            if is_over {
                evidence.compact();
            }
            merged.push((application, evidence.is_compact(), evidence.encode()));
        }
    }
    let day = Number(day.into());
    let values = merged.iter().flat_map(|(application, is_compact, record)| {
        [day, Text(application), Flag(*is_compact), Bytes(record)]
    });
    tables
        .write_rows(ADD_DAYS, "", 4, &values.collect::<Vec<_>>())
        .await?;
    Ok(unreadable)
}

impl Store {
    /// The key for the hashes of a day: `proposed`, unless another gateway set one first.
    pub async fn sketch_key(&self, day: Day, proposed: u64) -> StoreResult<u64> {
        self.run(Write, "choose a key", async move |tables| {
            let day = Number(day.number().into());
            let key = [day, Bytes(&proposed.to_le_bytes())];
            tables.run(ADD_KEY, &key).await?;
            let found = tables
                .find(KEY, &[day], |row| row.bytes("hash_key"))
                .await?;
            Ok(found
                .and_then(|key| key.try_into().ok())
                .map_or(proposed, u64::from_le_bytes))
        })
        .await
    }

    /// Stores hours of a node durably, at most one for each application and hour. An existing record of the same node,
    /// application and hour is replaced.
    pub async fn record_evidence(&self, node: u64, hours: Vec<HourRecord>) -> StoreResult<()> {
        self.run(Change, "record evidence", async move |tables| {
            let records: Vec<_> = hours
                .iter()
                .map(|hour| (hour.application.to_string(), hour.evidence.encode()))
                .collect();
            let values = hours
                .iter()
                .zip(&records)
                .flat_map(|(hour, (application, record))| {
                    [
                        Number(hour.evidence.hour().into()),
                        Text(application),
                        Number(node.cast_signed()),
                        Bytes(record),
                    ]
                });
            let values: Vec<_> = values.collect();
            tables.write_rows(RECORD, "", 4, &values).await
        })
        .await
    }

    /// Merges stored hours before `until`, in hours since the epoch, into their days, and compacts days that ended
    /// before it. Each merged day gets `catalogue` positions. One call handles at most `most` application hours and as many ended
    /// application days, oldest first. Returns whether there were any, in which case more may remain.
    pub async fn merge_evidence(
        &self,
        until: u32,
        catalogue: u16,
        most: usize,
    ) -> StoreResult<bool> {
        self.run(Change, "merge evidence", async move |tables| {
            merge(tables, until, catalogue, most).await
        })
        .await
    }

    /// Merged days, oldest first, then by application. Unreadable days are skipped.
    pub async fn evidence(&self, query: EvidenceQuery) -> StoreResult<Vec<DayRecord>> {
        self.run(Read, "read evidence", async move |tables| {
            let first = query.first.number();
            let last = query.last.number();
            let Some(id) = query.application else {
                let values = [Number(first.into()), Number(last.into())];
                return tables.list(DAYS, &values, day_record).await;
            };
            let first = first.max(last.saturating_sub(EVIDENCE_DAYS_KEPT));
            let days: Vec<_> = (first..=last).map(|day| day.to_string()).collect();
            if days.is_empty() {
                return Ok(Vec::new());
            }
            let statement = DAYS_OF_APPLICATION.replace("{days}", &days.join(", "));
            let id = id.to_string();
            tables.list(&statement, &[Text(&id)], day_record).await
        })
        .await
    }
}

fn day_record(row: &SqlRow<'_>) -> RowResult<Option<DayRecord>> {
    let application = row.text("application")?.parse();
    let evidence = DayEvidence::decode(&row.bytes("record")?);
    let Some((application, evidence)) = application.ok().zip(evidence.ok()) else {
        return Ok(None);
    };
    Ok(Some(DayRecord {
        application,
        day: Day::from_number(row.small_number("number")?),
        evidence,
    }))
}

fn evidence_row(row: &SqlRow<'_>) -> RowResult<Option<(u32, String, Vec<u8>)>> {
    Ok(Some((
        row.small_number("number")?,
        row.text("application")?,
        row.bytes("record")?,
    )))
}
