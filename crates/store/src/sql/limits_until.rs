//! Limits of applications, and limits that are restored at a set time. If several temporary changes follow each other, the
//! limits from before the first one are restored. Account limits are never temporary and are not restored.

use super::store::{Access::Read, Store};
use crate::{
    ChangeKind, StoreChange, StoreError, StoreResult, audit_detail,
    statements::{
        Done,
        SqlField::{OptionalText, Text, Time},
        SqlRow, Tables,
    },
};
use scoregate_base::{
    clock::Wall,
    keys::ApplicationId,
    limits::{LimitChanges, OwnLimits},
};

const READ: &str =
    "SELECT coalesce(own_limits, '') AS own_limits FROM {schema}.applications WHERE id = $1";
const WRITE: &str = "UPDATE {schema}.applications SET own_limits = $2 WHERE id = $1";
const REMEMBER: &str = "
INSERT INTO {schema}.limits_until (application, until, own_limits)
SELECT id, CAST($2 AS bigint), own_limits FROM {schema}.applications WHERE id = $1
ON CONFLICT (application) DO UPDATE SET until = excluded.until";
const FORGET: &str = "DELETE FROM {schema}.limits_until WHERE application = $1";
const TAKE: &str = "
DELETE FROM {schema}.limits_until WHERE application = $1 AND until <= $2
RETURNING coalesce(own_limits, '') AS own_limits";
const DUE: &str = "SELECT application FROM {schema}.limits_until WHERE until <= $1 ORDER BY until";

/// Makes a change to limits, and returns its details.
pub async fn make(tables: Tables<'_>, id: &str, change: &StoreChange) -> Done<String> {
    if let ChangeKind::SetLimits { changes, until } = &change.what {
        return set(tables, id, changes, *until).await;
    }
    if let ChangeKind::SetOwnerLimits(account) = &change.what {
        return set_owner(tables, id, *account).await;
    }
    restore(tables, id, change.at).await
}

/// Changes limits, and returns the details of the change. If the change has an end, the current limits are restored then, unless
/// earlier limits were already due to be restored.
async fn set(
    tables: Tables<'_>,
    id: &str,
    changes: &LimitChanges,
    until: Option<Wall>,
) -> Done<String> {
    match until {
        Some(at) => drop(tables.run(REMEMBER, &[Text(id), Time(at)]).await?),
        None => forget(tables, id).await?,
    }
    let own = changes.over(current(tables, id).await?);
    write(tables, id, own).await?;
    Ok(audit_detail::limits_set(own, until))
}

/// Sets the limits of the account, and returns the details of the change.
pub async fn set_owner(tables: Tables<'_>, id: &str, account: OwnLimits) -> Done<String> {
    let own = current(tables, id).await?.with_owner(account);
    write(tables, id, own).await?;
    Ok(audit_detail::limits_set(own, None))
}

/// Deletes the limits that were due to be restored.
pub async fn forget(tables: Tables<'_>, id: &str) -> Done<()> {
    tables.run(FORGET, &[Text(id)]).await.map(drop)
}

/// Restores the limits if they are due, and returns the details of the change. Other changes are locked out, so only
/// one of several attempts succeeds.
async fn restore(tables: Tables<'_>, id: &str, now: Wall) -> Done<String> {
    let before = tables
        .find(TAKE, &[Text(id), Time(now)], |row| Ok(read(row)))
        .await?
        .ok_or(StoreError::Exists("that restoration of limits"))?;
    let own = before.with_owner(current(tables, id).await?);
    write(tables, id, own).await?;
    Ok(audit_detail::limits_set(own, None))
}

impl Store {
    /// The applications whose previous limits are to be restored.
    pub async fn due_limits(&self, now: Wall) -> StoreResult<Vec<ApplicationId>> {
        self.run(Read, "read limits that end", async move |tables| {
            tables
                .list(DUE, &[Time(now)], |row: &SqlRow<'_>| {
                    Ok(row.text("application")?.parse().ok())
                })
                .await
        })
        .await
    }
}

async fn current(tables: Tables<'_>, id: &str) -> Done<OwnLimits> {
    let found = tables.find(READ, &[Text(id)], |row| Ok(read(row))).await?;
    Ok(found.unwrap_or_default())
}

/// Unreadable limits count as none. The change repairs them.
fn read(row: &SqlRow<'_>) -> OwnLimits {
    let text = row.any_text("own_limits");
    OwnLimits::from_text(&text).unwrap_or_default()
}

async fn write(tables: Tables<'_>, id: &str, own: OwnLimits) -> Done<()> {
    let text = own.to_text();
    let values = [Text(id), OptionalText(text.as_deref())];
    tables.run(WRITE, &values).await.map(drop)
}
