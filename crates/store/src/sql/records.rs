//! Applications with their keys.
//!
//! An unreadable record is reported and skipped. Values that can be read are not validated here: code with access to the tiers
//! checks whether a tier exists.

use super::store::{
    Access::{Read, Write},
    Store,
};
use crate::{
    ApplicationPage, Description, KeyUse, StoreChange, StoreResult, StoredApplication, StoredKey,
    statements::{
        BadRecord, Done, ROWS_AT_ONCE, RowResult,
        SqlField::{Digest as DigestOf, Number, Text, Time},
        SqlRow, Tables, parameters,
    },
    stored::stored,
};
use scoregate_base::{
    clock::{Day, Wall},
    keys::ApplicationId,
    limits::OwnLimits,
};

/// One row for each key, and one for an application without keys, in the order in which [`ApplicationRows`] expects
/// them.
const SELECT: &str = "
SELECT a.id, a.name, a.tier, a.own_limits, u.until, {description}, a.created_at, l.granted,
       k.digest, k.shown, k.name AS key_name, k.created_at AS key_created_at, k.expires_at, k.revoked_at, k.last_used_at
FROM {schema}.applications a {joined}
LEFT JOIN {schema}.limits_until u ON u.application = a.id
WHERE {wanted}
ORDER BY a.id";

/// The first `$3` applications after `$2`.
const PAGE: &str = "
a.id > $2 AND a.id <= (
    SELECT max(id) FROM (SELECT id FROM {schema}.applications WHERE id > $2 ORDER BY id LIMIT $3) page)";

const REVOKED: &str = "
SELECT digest, shown, name AS key_name, created_at AS key_created_at, expires_at, revoked_at, last_used_at
FROM {schema}.keys WHERE application = $1 AND revoked_at IS NOT NULL ORDER BY created_at, digest";
const NAMES: &str = "SELECT name, tier FROM {schema}.applications WHERE id = $1";

/// A list may contain several uses of a key.
const USED: &str = "
WITH used (application, digest, at) AS (VALUES {rows}), last AS (
    SELECT application, digest, max(at) AS at FROM used GROUP BY application, digest
)
UPDATE {schema}.keys AS k SET last_used_at = l.at FROM last l
WHERE k.application = l.application AND k.digest = l.digest AND (k.last_used_at IS NULL OR k.last_used_at < l.at)";

/// The statement that reads the rows of applications.
pub fn select(joined: &str, wanted: &str) -> String {
    let description = Description::sql_list(|_, name| format!("a.{name}"));
    SELECT
        .replace("{description}", &description)
        .replace("{joined}", joined)
        .replace("{wanted}", wanted)
}

/// Applications after `after`, ordered by id.
pub async fn page(
    tables: Tables<'_>,
    after: Option<ApplicationId>,
    limit: usize,
    day: Day,
) -> Done<ApplicationPage> {
    let day = day.to_string();
    let statement = select("{keys_and_units}", PAGE);
    let mut after = after.map_or_else(String::new, |id| id.to_string());
    let mut rows = ApplicationRows::default();
    loop {
        let before = rows.count;
        let values = [Text(&day), Text(&after), Number(stored(limit))];
        tables
            .each(&statement, &values, |row| rows.add(row))
            .await?;
        let next = (rows.count - before >= limit).then(|| rows.id.clone());
        match next.map(|id| (id.parse(), id)) {
            // A page cannot end with an invalid id, so reading continues. Only manual edits produce invalid ids.
            Some((Err(_), id)) => after = id,
            next => {
                let mut page = rows.finish();
                page.next = next.and_then(|(id, _)| id.ok());
                return Ok(page);
            }
        }
    }
}

/// The applications with these ids. Unreadable records are skipped.
pub async fn applications(
    tables: Tables<'_>,
    ids: &[ApplicationId],
    day: Day,
) -> Done<ApplicationPage> {
    let day = day.to_string();
    let mut rows = ApplicationRows::default();
    for ids in ids.chunks(ROWS_AT_ONCE) {
        let wanted = format!("a.id IN ({})", parameters(2, ids.len()));
        let statement = select("{keys_and_units}", &wanted);
        let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
        let mut values = vec![Text(&day)];
        values.extend(ids.iter().map(|id| Text(id)));
        tables
            .each(&statement, &values, |row| rows.add(row))
            .await?;
    }
    Ok(rows.finish())
}

/// The application with this id. Unreadable keys are left out.
pub async fn application(
    tables: Tables<'_>,
    id: ApplicationId,
    day: Day,
) -> Done<Option<StoredApplication>> {
    let ApplicationPage {
        mut applications,
        skipped,
        ..
    } = applications(tables, &[id], day).await?;
    match (applications.pop(), skipped.into_iter().next()) {
        (None, Some(reason)) => Err(BadRecord(reason).into()),
        (found, _) => Ok(found),
    }
}

/// The application after a change. Changes that revoke a key or repair a record must not fail because the record is
/// unreadable. A change that adds a key fails, because the new key would not work.
pub(super) async fn changed(
    tables: Tables<'_>,
    change: &StoreChange,
) -> Done<Option<StoredApplication>> {
    let id = change.application;
    let page = applications(tables, &[id], change.at.day()).await?;
    let is_unreadable = page.applications.is_empty() && !page.skipped.is_empty();
    if is_unreadable && change.what.added_key().is_none() {
        return stand_in(tables, id).await;
    }
    application(tables, id, change.at.day()).await
}

/// A stand-in for an application with an unreadable record. None of its keys is active, as after a restart. Revoked
/// keys are listed.
async fn stand_in(tables: Tables<'_>, id: ApplicationId) -> Done<Option<StoredApplication>> {
    let text = id.to_string();
    let keys = tables.list(REVOKED, &[Text(&text)], key).await?;
    let found = tables
        .find(NAMES, &[Text(&text)], |row: &SqlRow<'_>| {
            Ok(StoredApplication {
                id,
                name: row.any_text("name"),
                tier: row.any_text("tier"),
                own: OwnLimits::default(),
                limits_until: None,
                description: Description::default(),
                created_at: Wall::default(),
                keys: Vec::new(),
                granted: 0,
            })
        })
        .await?;
    Ok(found.map(|found| StoredApplication { keys, ..found }))
}

impl Store {
    /// Up to `limit` applications after `after`, with the units granted for `day`.
    pub async fn page(
        &self,
        after: Option<ApplicationId>,
        limit: usize,
        day: Day,
    ) -> StoreResult<ApplicationPage> {
        let doing = "read a page of applications";
        self.run(Read, doing, async move |tables| {
            page(tables, after, limit, day).await
        })
        .await
    }

    /// The application with this id, with the units granted for `day`. Fails if its record is unreadable. Unreadable
    /// keys are left out.
    pub async fn application(
        &self,
        id: ApplicationId,
        day: Day,
    ) -> StoreResult<Option<StoredApplication>> {
        self.run(Read, "read an application", async move |tables| {
            application(tables, id, day).await
        })
        .await
    }

    /// The applications with these ids, with the units granted for `day`. Unknown and unreadable ones are left out.
    pub async fn applications(
        &self,
        ids: Vec<ApplicationId>,
        day: Day,
    ) -> StoreResult<ApplicationPage> {
        self.run(Read, "read applications", async move |tables| {
            applications(tables, &ids, day).await
        })
        .await
    }

    /// Records uses of keys. Unknown keys, and uses older than the recorded ones, are ignored.
    pub async fn record_uses(&self, uses: Vec<KeyUse>) -> StoreResult<()> {
        self.run(Write, "record uses of keys", async move |tables| {
            let ids: Vec<String> = uses
                .iter()
                .map(|used| used.application.to_string())
                .collect();
            let values = ids
                .iter()
                .zip(&uses)
                .flat_map(|(id, used)| [Text(id), DigestOf(&used.digest), Time(used.at)]);
            let values: Vec<_> = values.collect();
            tables.write_rows(USED, "", 3, &values).await
        })
        .await
    }
}

/// Rows of applications that are being collected, in the order of the applications.
#[derive(Debug, Default)]
pub struct ApplicationRows {
    page: ApplicationPage,
    /// The application of the last row, and whether it is readable.
    id: String,
    is_readable: bool,
    /// Number of applications, including unreadable ones.
    count: usize,
}

impl ApplicationRows {
    /// Adds a row.
    pub(crate) fn add(&mut self, row: &SqlRow<'_>) {
        let id = row.any_text("id");
        if self.count == 0 || id != self.id {
            self.begin(row, id);
        }
        match key(row) {
            Ok(key) => {
                let last = self.page.applications.last_mut();
                if let Some(last) = last.filter(|_| self.is_readable) {
                    last.keys.extend(key);
                }
            }
            Err(BadRecord(reason)) => {
                let reason = format!("a key of {}: {reason}", self.id);
                self.page.skipped.push(reason);
            }
        }
    }

    /// Whether a row belongs to a different application than the rows before it.
    pub(crate) fn ends_before(&self, row: &SqlRow<'_>) -> bool {
        row.any_text("id") != self.id
    }

    pub(crate) fn finish(mut self) -> ApplicationPage {
        self.sort_keys();
        self.page
    }

    fn begin(&mut self, row: &SqlRow<'_>, id: String) {
        self.sort_keys();
        self.count += 1;
        let described = described(row, &id);
        self.is_readable = described.is_ok();
        match described {
            Ok(application) => self.page.applications.push(application),
            Err(BadRecord(reason)) => {
                self.page
                    .skipped
                    .push(format!("application {id}: {reason}"));
            }
        }
        self.id = id;
    }

    fn sort_keys(&mut self) {
        if let Some(last) = self.page.applications.last_mut() {
            last.keys.sort_by_key(|key| (key.created_at, key.digest));
        }
    }
}

/// The application of a row, without keys.
fn described(row: &SqlRow<'_>, id: &str) -> RowResult<StoredApplication> {
    Ok(StoredApplication {
        id: id.parse().map_err(|error| BadRecord(format!("{error}")))?,
        name: row.text("name")?,
        tier: row.text("tier")?,
        own: own_limits(row)?,
        // Optional, so that an unreadable value does not make the whole application unreadable.
        limits_until: row.optional_time("until").unwrap_or(None),
        description: Description::try_from_fn(|name| row.optional_text(name))?,
        created_at: row.time("created_at")?,
        granted: row.limit("granted")?.unwrap_or(0).into(),
        // Most applications have one key. Growing from zero would allocate space for four.
        keys: Vec::with_capacity(1),
    })
}

fn own_limits(row: &SqlRow<'_>) -> RowResult<OwnLimits> {
    let text = row.optional_text("own_limits")?;
    let read = text.as_deref().map(OwnLimits::from_text).transpose();
    Ok(read.map_err(BadRecord)?.unwrap_or_default())
}

/// The key of a row, if it has one.
fn key(row: &SqlRow<'_>) -> RowResult<Option<StoredKey>> {
    let Some(digest) = row.optional_digest("digest")? else {
        return Ok(None);
    };
    Ok(Some(StoredKey {
        digest,
        shown: row.text("shown")?,
        // Optional, like the last use, so that an unreadable value does not make the key unreadable.
        name: row.optional_text("key_name").unwrap_or(None),
        created_at: row.time("key_created_at")?,
        expires_at: row.optional_time("expires_at")?,
        revoked_at: row.optional_time("revoked_at")?,
        last_used_at: row.optional_time("last_used_at").unwrap_or(None),
    }))
}
