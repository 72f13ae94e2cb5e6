//! Keys that were found in a public place. The audit trail records the places where each key was found. The trail is
//! kept, and other changes are locked out, so if a place is reported several times, only one report changes the key.

use super::{
    owners,
    store::{Access::Read, Store},
};
use crate::{
    LeakReport, StoreChange, StoreError, StoreResult, audit_detail,
    statements::{
        Done, ROWS_AT_ONCE,
        SqlField::{Digest as DigestOf, Text, Time},
        SqlRow, Tables, parameters,
    },
};
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
    /// The existing keys among `digests`, each with its application. Revoked and expired keys are included.
    pub async fn find_keys(
        &self,
        digests: Vec<Digest>,
    ) -> StoreResult<Vec<(Digest, ApplicationId)>> {
        self.run(Read, "find keys", async move |tables| {
            let mut found = Vec::new();
            for digests in digests.chunks(ROWS_AT_ONCE) {
                let find = FIND.replace("{digests}", &parameters(1, digests.len()));
                let digests: Vec<_> = digests.iter().map(DigestOf).collect();
                found.extend(
                    tables
                        .list(&find, &digests, |row: &SqlRow<'_>| {
                            let digest = row.optional_digest("digest")?;
                            Ok(digest.zip(row.text("application")?.parse().ok()))
                        })
                        .await?,
                );
            }
            Ok(found)
        })
        .await
    }
}

/// Changes the key and queues the mail to the owner. Writes an audit record for each new place except the last, whose
/// details are returned for the caller to write.
pub async fn report(tables: Tables<'_>, change: &StoreChange, leak: &LeakReport) -> Done<String> {
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
        let owner = owners::of_application(tables, change.application).await?;
        let mail = owner.and_then(|owner| owner.addressed(&leak.mail));
        tables.queue_mail(mail.as_slice()).await?;
    }
    Ok(last)
}
