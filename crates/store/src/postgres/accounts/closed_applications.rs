//! Applications that were closed today, by the digest of their owner's mailbox. The rule is `check_creation` in
//! `store::owners`.
//!
//! Every closing is stored, and the units are read when another application is created: a gateway that has not received the
//! change leases units for the revoked key.

use crate::postgres::connection::schema_client::{SchemaClient, SqlResult};
use scoregate_base::clock::Day;

const ADD: &str = "
INSERT INTO {schema}.closed_applications (mailbox_digest, application, day)
SELECT sha256(convert_to(o.mailbox, 'UTF8')), a.application, $2::text::date
FROM {schema}.owned_applications a JOIN {schema}.owners o ON o.id = a.owner WHERE a.application = $1
ON CONFLICT DO NOTHING";

const USED_ON: &str = "
SELECT count(*) FROM {schema}.owners o
JOIN {schema}.closed_applications c ON c.mailbox_digest = sha256(convert_to(o.mailbox, 'UTF8'))
JOIN {schema}.ledger_days l ON l.day = c.day AND l.application = c.application
WHERE o.id = $1 AND c.day = $2::text::date AND l.granted > 0";

/// Stores that an application is being closed, while it still has its owner.
pub(crate) async fn add(client: SchemaClient<'_>, application: &String, day: Day) -> SqlResult<()> {
    client.execute(ADD, &[application, &day.to_string()]).await.map(drop)
}

/// The number of applications of an owner's mailbox that were closed on a day and used units of it.
pub(crate) async fn used_on(client: SchemaClient<'_>, owner: &String, day: Day) -> SqlResult<usize> {
    let used: i64 = client.query_one(USED_ON, &[owner, &day.to_string()]).await?.try_get(0)?;
    Ok(usize::try_from(used).unwrap_or(usize::MAX))
}
