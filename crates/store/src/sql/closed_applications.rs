//! Applications that were closed today, identified by the digest of their owner's mailbox. The rule is `check_creation`
//! in `store::owners`.
//!
//! Every closure is stored, and the units are read only when another application is created. Until then, a gateway that
//! has not received the change, or another process, may lease units for a revoked key.

use crate::statements::{
    Done,
    SqlField::{Digest as DigestOf, Text},
    Tables,
};
use scoregate_base::{clock::Day, keys::Digest};

const MAILBOX_OF_APPLICATION: &str = "
SELECT o.mailbox FROM {schema}.owned_applications a JOIN {schema}.owners o ON o.id = a.owner WHERE a.application = $1";
const MAILBOX: &str = "SELECT mailbox FROM {schema}.owners WHERE id = $1";
const ADD: &str = "
INSERT INTO {schema}.closed_applications (mailbox_digest, application, day) VALUES ($1, $2, $3::text::date)
ON CONFLICT DO NOTHING";
const USED_ON: &str = "
SELECT count(*) AS used FROM {schema}.closed_applications c
JOIN {schema}.ledger_days l ON l.day = c.day AND l.application = c.application
WHERE c.mailbox_digest = $1 AND c.day = $2::text::date AND l.granted > 0";

/// Records the closure of an application. Must be called while the application still has an owner.
pub async fn add(tables: Tables<'_>, application: &str, day: Day) -> Done<()> {
    let Some(digest) = mailbox_digest(tables, MAILBOX_OF_APPLICATION, application).await? else {
        return Ok(());
    };
    tables
        .run(
            ADD,
            &[DigestOf(&digest), Text(application), Text(&day.to_string())],
        )
        .await
        .map(drop)
}

/// The number of applications of the owner's mailbox that were closed on this day and used units of this day.
pub async fn used_on(tables: Tables<'_>, owner: &str, day: Day) -> Done<usize> {
    let Some(digest) = mailbox_digest(tables, MAILBOX, owner).await? else {
        return Ok(0);
    };
    let day = day.to_string();
    let used = tables
        .find(USED_ON, &[DigestOf(&digest), Text(&day)], |row| {
            row.number("used")
        })
        .await?;
    Ok(used.map_or(0, |used| usize::try_from(used).unwrap_or(usize::MAX)))
}

async fn mailbox_digest(tables: Tables<'_>, select: &str, id: &str) -> Done<Option<Digest>> {
    let mailbox = tables
        .find(select, &[Text(id)], |row| Ok(row.any_text("mailbox")))
        .await?;
    Ok(mailbox.map(|mailbox| Digest::of(&mailbox)))
}
