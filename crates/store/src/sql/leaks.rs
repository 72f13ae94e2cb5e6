//! Keys that were found in public. The audit trail tells which places of a key are known: it is kept, and other changes are
//! excluded, so of several reports of a place one changes the key.

use super::owners;
use super::store::Access::Read;
use super::store::Store;
use crate::statements::SqlField::{Digest as DigestOf, Text, Time};
use crate::statements::{Done, ROWS_AT_ONCE, SqlRow, Tables, parameters};
use crate::{LeakReport, NewMail, OwnerQuery, StoreChange, StoreError, StoreResult, audit_detail};
use scoregate_base::keys::{ApplicationId, Digest};

const FIND: &str = "SELECT digest, application FROM {schema}.keys WHERE digest IN ({digests})";
const IS_KNOWN: &str = "
SELECT 1 AS known FROM {schema}.audit
WHERE application = $1 AND detail = $2 AND at > $3 AND what IN ('revoke_leaked_key', 'expire_leaked_key') LIMIT 1";
const REVOKE: &str = "
UPDATE {schema}.keys SET revoked_at = $3 WHERE application = $1 AND digest = $2 AND revoked_at IS NULL";
const EXPIRE: &str = "
UPDATE {schema}.keys SET expires_at = $3
WHERE application = $1 AND digest = $2 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $3)";

impl Store {
    /// Those of these keys that exist, each with its application. Revoked and expired ones are included.
    pub async fn find_keys(
        &self,
        digests: Vec<Digest>,
    ) -> StoreResult<Vec<(Digest, ApplicationId)>> {
        self.run(Read, "find keys", async move |tables| {
            let read = |row: &SqlRow<'_>| {
                let digest = row.optional_digest("digest")?;
                Ok(digest.zip(row.text("application")?.parse().ok()))
            };
            let mut found = Vec::new();
            for digests in digests.chunks(ROWS_AT_ONCE) {
                let find = FIND.replace("{digests}", &parameters(1, digests.len()));
                let digests: Vec<_> = digests.iter().map(DigestOf).collect();
                found.extend(tables.list(&find, &digests, read).await?);
            }
            Ok(found)
        })
        .await
    }
}

/// Changes the key and queues the mail to the owner. Each new place has an audit record: returns the details of the last one,
/// which the caller adds.
pub(super) async fn report(
    tables: Tables<'_>,
    change: &StoreChange,
    leak: &LeakReport,
) -> Done<String> {
    let id = change.application.to_string();
    let mut details = Vec::new();
    for place in &leak.places {
        let detail = audit_detail::leaked(leak, place);
        let values = [Text(&id), Text(&detail), Time(leak.since)];
        if tables.find(IS_KNOWN, &values, |_| Ok(())).await?.is_none() {
            details.push(detail);
        }
    }
    let last = details
        .pop()
        .ok_or(StoreError::Exists("that report of a leaked key"))?;
    for detail in &details {
        tables
            .audit(change.at, [&change.who, change.what.word(), &id, detail])
            .await?;
    }
    let (statement, at) = leak
        .expires_at
        .map_or((REVOKE, change.at), |at| (EXPIRE, at));
    if tables
        .run(statement, &[Text(&id), DigestOf(&leak.digest), Time(at)])
        .await?
        > 0
    {
        let query = OwnerQuery {
            application: Some(change.application),
            limit: 1,
            ..OwnerQuery::default()
        };
        if let Some(owner) = owners::owners(tables, &query).await?.pop() {
            let mail = NewMail {
                recipient: owner.email,
                ..leak.mail.clone()
            };
            tables.queue_mail(&[mail]).await?;
        }
    }
    Ok(last)
}
