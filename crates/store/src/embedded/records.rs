//! Reads applications from rows.
//!
//! Anyone with `sqlite3` can write what we never would. An unreadable record is reported and skipped, so that one
//! mistake costs one application or one key and not the gateway. Readable values are not judged here; whether a tier
//! exists is checked where tiers are known.

use rusqlite::types::{FromSql, ValueRef};
use rusqlite::{Connection, Row, Rows, Transaction, params};

use super::fault::{FileResult, StoreFault};
use super::statements::{AnyText, one};
use crate::stored::millis;
use crate::{ApplicationPage, Description, KeyUse, StoredApplication, StoredKey};
use scoregate_base::clock::{Day, Wall};
use scoregate_base::keys::{ApplicationId, Digest};
use scoregate_base::limits::OwnLimits;

/// Columns of an application, before those of its description, and their number.
const COLUMNS: &str = "id, name, tier, own_limits, created_at,
    (SELECT until FROM limits_until WHERE application = applications.id)";
const COLUMN_COUNT: usize = 6;
const KEYS: &str = "SELECT application, digest, shown, created_at, expires_at, revoked_at, last_used_at, name FROM keys";
const LEDGER: &str = "SELECT application, granted FROM ledger_days WHERE day = ?1";

fn select(rest: &str) -> String {
    format!(
        "SELECT {COLUMNS}, {} FROM applications {rest}",
        Description::NAMES.join(", ")
    )
}

/// Applications after `after`, ordered by id. The three tables have that order and are read in parallel, in one
/// snapshot: no search per application. A table that is out of order is damaged: a start reads large ones before they
/// are checked, and would not notice missing rows.
pub(super) fn page(
    connection: &Connection,
    after: Option<ApplicationId>,
    limit: usize,
    day: Day,
) -> FileResult<ApplicationPage> {
    let _snapshot = snapshot(connection)?;
    let after = after.map_or_else(String::new, |id| id.to_string());
    let mut applications = connection.prepare_cached(&select("WHERE id > ?1 ORDER BY id"))?;
    let mut keys = connection.prepare_cached(&format!(
        "{KEYS} WHERE application > ?1 ORDER BY application"
    ))?;
    let mut ledger = connection.prepare_cached(&format!(
        "{LEDGER} AND application > ?2 ORDER BY application"
    ))?;
    let mut rows = applications.query([&after])?;
    let mut keys = JoinedRows::new(keys.query([&after])?, &after)?;
    let mut ledger = JoinedRows::new(ledger.query([&day.to_string(), &after])?, &after)?;

    let mut page = ApplicationPage::default();
    let mut last = RowOrder::after(&after, false);
    while let Some(row) = rows.next()? {
        if page.applications.len() >= limit {
            page.next = page.applications.last().map(|last| last.id);
            return Ok(page);
        }
        last.step_to(row)?;
        match whole(row, &mut keys, &mut ledger, &mut page.skipped) {
            Ok(application) => page.applications.push(application),
            Err(StoreFault::Record(reason)) => page.skipped.push(reason),
            Err(fault) => return Err(fault),
        }
    }
    while let Some(owner) = keys.take_before(None)? {
        page.skipped.push(orphan(&owner));
    }
    Ok(page)
}

/// A snapshot of several tables, unless the caller's transaction is one already.
fn snapshot(connection: &Connection) -> FileResult<Option<Transaction<'_>>> {
    let is_needed = connection.is_autocommit();
    let begun = is_needed.then(|| connection.unchecked_transaction());
    Ok(begun.transpose()?)
}

/// One application. Unreadable keys are left out; [`page`] reports them.
pub(super) fn application(
    connection: &Connection,
    id: ApplicationId,
    day: Day,
) -> FileResult<Option<StoredApplication>> {
    let snapshot = snapshot(connection)?;
    let id = id.to_string();
    let day = day.to_string();
    let mut applications = connection.prepare_cached(&select("WHERE id = ?1"))?;
    let mut keys = connection.prepare_cached(&format!("{KEYS} WHERE application = ?1"))?;
    let mut ledger = connection.prepare_cached(&format!("{LEDGER} AND application = ?2"))?;
    let mut keys = JoinedRows::new(keys.query([&id])?, "")?;
    let mut ledger = JoinedRows::new(ledger.query([&day, &id])?, "")?;
    let mut rows = applications.query([&id])?;
    let found = rows
        .next()?
        .map(|row| whole(row, &mut keys, &mut ledger, &mut Vec::new()))
        .transpose();
    drop(snapshot);
    found
}

/// These applications. Unreadable records are skipped, as in a page.
pub(super) fn applications(
    connection: &Connection,
    ids: &[ApplicationId],
    day: Day,
) -> FileResult<ApplicationPage> {
    let mut page = ApplicationPage::default();
    for id in ids {
        match application(connection, *id, day) {
            Ok(found) => page.applications.extend(found),
            Err(StoreFault::Record(reason)) => page.skipped.push(reason),
            Err(fault) => return Err(fault),
        }
    }
    Ok(page)
}

/// A replacement for an application with an unreadable record. Like at start, none of its keys is in force; revoked
/// ones are listed.
pub(super) fn stand_in(
    connection: &Connection,
    id: ApplicationId,
) -> FileResult<StoredApplication> {
    let text = id.to_string();
    let (AnyText(name), AnyText(tier)) = one(
        connection,
        "SELECT name, tier FROM applications WHERE id = ?1",
        [&text],
    )?;
    let mut keys = connection.prepare_cached(&format!("{KEYS} WHERE application = ?1"))?;
    let mut keys = JoinedRows::<StoredKey>::new(keys.query([&text])?, "")?;
    let mut revoked = Vec::new();
    while let Some(read) = keys.take(&text)? {
        revoked.extend(read.ok().filter(|key| key.revoked_at.is_some()));
    }
    let own = OwnLimits::NONE;
    let created_at = Wall::default();
    Ok(StoredApplication {
        id,
        name,
        tier,
        own,
        limits_until: None,
        description: Description::default(),
        created_at,
        keys: revoked,
        granted: 0,
    })
}

/// Records uses of keys.
pub(super) fn used(connection: &Connection, keys: &[KeyUse]) -> FileResult<()> {
    let mut update = connection.prepare_cached(
        "UPDATE keys SET last_used_at = ?3
         WHERE application = ?1 AND digest = ?2 AND (last_used_at IS NULL OR last_used_at < ?3)",
    )?;
    for key in keys {
        update.execute(params![
            key.application.to_string(),
            key.digest.as_bytes(),
            millis(key.at)
        ])?;
    }
    Ok(())
}

/// Whether the application exists, readable or not.
pub(super) fn is_there(connection: &Connection, id: &str) -> FileResult<bool> {
    Ok(connection
        .prepare_cached("SELECT 1 FROM applications WHERE id = ?1")?
        .exists([id])?)
}

/// An application with its rows of the other two tables.
fn whole(
    row: &Row<'_>,
    keys: &mut JoinedRows<'_, StoredKey>,
    ledger: &mut JoinedRows<'_, u64>,
    skipped: &mut Vec<String>,
) -> FileResult<StoredApplication> {
    let id = row
        .get_ref(0)?
        .as_str()
        .map_err(|error| unreadable("id", &error.into()))?;
    // Always skip past rows of this application.
    while let Some(owner) = keys.take_before(Some(id))? {
        skipped.push(orphan(&owner));
    }
    let mut own_keys = Vec::with_capacity(1); // most have one; growing from zero would allocate four
    while let Some(key) = keys.take(id)? {
        match key {
            Ok(key) => own_keys.push(key),
            Err(reason) => skipped.push(format!("a key of {id}: {reason}")),
        }
    }
    while ledger.take_before(Some(id))?.is_some() {}
    let granted = ledger.take(id)?.unwrap_or(Ok(0));

    let named = |fault| match fault {
        StoreFault::Record(reason) => StoreFault::Record(format!("application {id}: {reason}")),
        other @ (StoreFault::Sql(_)
        | StoreFault::Disk(_)
        | StoreFault::Disorder
        | StoreFault::Refused(_)) => other,
    };
    let granted = granted.map_err(|reason| named(StoreFault::Record(reason)))?;
    own_keys.sort_by_key(|key| (key.created_at, key.digest));
    let mut application = described(row, id).map_err(named)?;
    (application.keys, application.granted) = (own_keys, granted);
    Ok(application)
}

pub(super) fn described(row: &Row<'_>, id: &str) -> FileResult<StoredApplication> {
    let mut index = COLUMN_COUNT;
    Ok(StoredApplication {
        id: id
            .parse()
            .map_err(|error| StoreFault::Record(format!("{error}")))?,
        name: text(row, 1, "name")?,
        tier: text(row, 2, "tier")?,
        own: own_limits(row)?,
        limits_until: instant(row, 5, "until").unwrap_or(None),
        description: Description::try_from_fn(|name| {
            index += 1;
            text(row, index - 1, name)
        })?,
        created_at: time(row, 4, "created_at")?,
        keys: Vec::new(),
        granted: 0,
    })
}

fn own_limits(row: &Row<'_>) -> FileResult<OwnLimits> {
    let text: Option<String> = text(row, 3, "own_limits")?;
    let read = text.as_deref().map(OwnLimits::from_text).transpose();
    Ok(read.map_err(StoreFault::Record)?.unwrap_or_default())
}

pub(super) fn key(row: &Row<'_>) -> FileResult<StoredKey> {
    let digest: [u8; 32] = row.get(1).map_err(|error| unreadable("digest", &error))?;
    Ok(StoredKey {
        digest: Digest::from_bytes(digest),
        shown: text(row, 2, "shown")?,
        // Optional, like the last use: an unreadable value must not cost the key.
        name: row.get(7).unwrap_or(None),
        created_at: time(row, 3, "created_at")?,
        expires_at: instant(row, 4, "expires_at")?,
        revoked_at: instant(row, 5, "revoked_at")?,
        last_used_at: instant(row, 6, "last_used_at").unwrap_or(None),
    })
}

/// A value of an application in another table.
trait OwnedValue: Sized {
    fn read(row: &Row<'_>) -> FileResult<Self>;
}

impl OwnedValue for StoredKey {
    fn read(row: &Row<'_>) -> FileResult<Self> {
        key(row)
    }
}

/// Granted units.
impl OwnedValue for u64 {
    fn read(row: &Row<'_>) -> FileResult<Self> {
        let granted = limit(row, 1, "granted")?.ok_or_else(|| missing("granted"))?;
        Ok(granted.into())
    }
}

/// Rows of another table in the same order, whose first column is the application.
struct JoinedRows<'s, T> {
    rows: Rows<'s>,
    owner: RowOrder,
    /// A row of `owner`, or why it is unreadable; `None` after the last row.
    head: Option<Result<T, String>>,
}

impl<'s, T: OwnedValue> JoinedRows<'s, T> {
    fn new(rows: Rows<'s>, after: &str) -> FileResult<Self> {
        let mut joined = Self {
            rows,
            owner: RowOrder::after(after, true),
            head: None,
        };
        joined.advance()?;
        Ok(joined)
    }

    /// The next row, if it belongs to `id`.
    fn take(&mut self, id: &str) -> FileResult<Option<Result<T, String>>> {
        if self.head.is_none() || self.owner.last != id.as_bytes() {
            return Ok(None);
        }
        let taken = self.head.take();
        self.advance()?;
        Ok(taken)
    }

    /// Skips the next row if it comes before those of `id`, or if there is no `id` left, and returns its owner.
    fn take_before(&mut self, id: Option<&str>) -> FileResult<Option<String>> {
        if self.head.is_none() || id.is_some_and(|id| *self.owner.last >= *id.as_bytes()) {
            return Ok(None);
        }
        let owner = String::from_utf8_lossy(&self.owner.last).into_owned();
        self.advance()?;
        Ok(Some(owner))
    }

    fn advance(&mut self) -> FileResult<()> {
        self.head = None;
        let Some(row) = self.rows.next()? else {
            return Ok(());
        };
        self.owner.step_to(row)?;
        self.head = Some(match T::read(row) {
            Ok(value) => Ok(value),
            Err(StoreFault::Record(reason)) => Err(reason),
            Err(fault) => return Err(fault),
        });
        Ok(())
    }
}

/// The first column of the last row, as bytes: a value that is not text must not end the iteration.
struct RowOrder {
    last: Vec<u8>,
    /// Several rows may have the same value.
    may_repeat: bool,
}

impl RowOrder {
    fn after(last: &str, may_repeat: bool) -> Self {
        let last = last.into();
        Self { last, may_repeat }
    }

    fn step_to(&mut self, row: &Row<'_>) -> FileResult<()> {
        let next = row.get_ref(0)?.as_bytes().unwrap_or_default();
        let is_repeated = self.may_repeat && *next == *self.last;
        if *next <= *self.last && !is_repeated {
            return Err(StoreFault::Disorder);
        }
        self.last.clear();
        self.last.extend_from_slice(next);
        Ok(())
    }
}

/// A text or bytes, which may be absent.
pub(super) fn text<T: FromSql>(row: &Row<'_>, column: usize, name: &str) -> FileResult<T> {
    row.get(column).map_err(|error| unreadable(name, &error))
}

pub(super) fn number(row: &Row<'_>, column: usize, name: &str) -> FileResult<Option<i64>> {
    match row.get_ref(column)? {
        ValueRef::Null => Ok(None),
        ValueRef::Integer(number) => Ok(Some(number)),
        ValueRef::Real(_) | ValueRef::Text(_) | ValueRef::Blob(_) => {
            Err(StoreFault::Record(format!("{name} is not a number")))
        }
    }
}

pub(super) fn limit(row: &Row<'_>, column: usize, name: &str) -> FileResult<Option<u32>> {
    let Some(found) = number(row, column, name)? else {
        return Ok(None);
    };
    let bad = |_| {
        StoreFault::Record(format!(
            "{name} is {found}, which is not between 0 and {}",
            u32::MAX
        ))
    };
    u32::try_from(found).map(Some).map_err(bad)
}

pub(super) fn instant(row: &Row<'_>, column: usize, name: &str) -> FileResult<Option<Wall>> {
    let Some(found) = number(row, column, name)? else {
        return Ok(None);
    };
    let read = u64::try_from(found)
        .ok()
        .filter(|millis| Wall::from_millis(*millis).millis() == *millis);
    let bad = || {
        StoreFault::Record(format!(
            "{name} is {found}, which is not a timestamp between 1970 and 2554"
        ))
    };
    read.map(|millis| Some(Wall::from_millis(millis)))
        .ok_or_else(bad)
}

/// A time that is never absent.
pub(super) fn time(row: &Row<'_>, column: usize, name: &str) -> FileResult<Wall> {
    instant(row, column, name)?.ok_or_else(|| missing(name))
}

pub(super) fn missing(name: &str) -> StoreFault {
    StoreFault::Record(format!("{name} is missing"))
}

fn unreadable(name: &str, error: &rusqlite::Error) -> StoreFault {
    StoreFault::Record(format!("{name} cannot be read: {error}"))
}

fn orphan(owner: &str) -> String {
    format!("a key of {owner}: there is no such application")
}
