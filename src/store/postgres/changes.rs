//! Changes to applications and keys, each with its audit record, in one transaction.
//!
//! The row of `site` is locked first, so that the numbers of audit records are in commit order: a reader that has seen a
//! number has seen every change before it.

use tokio_postgres::types::Type;
use tokio_postgres::{Client, Transaction};

use super::connection::{Parameter, SchemaName};
use super::records::{self, RecordStatements};
use super::{audit, closed_applications, owners};
use crate::clock::Wall;
use crate::keys::Digest;
use crate::store::audit_detail;
use crate::store::{
    ChangeKind, KeyUse, OwnLimits, OwnerRefusal, Ownership, StoreChange, StoreError, StoredApplication,
    StoredKey,
};

/// The schema's name, for statements.
pub(super) struct ChangeStatements(SchemaName);

const CREATE: &str = "
INSERT INTO {schema}.applications (id, name, tier, own_minute, own_day, contact, note, created_at, url)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT DO NOTHING";

const ADD_KEY: &str = "
INSERT INTO {schema}.keys (application, digest, shown, created_at, expires_at, revoked_at, last_used_at, name)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING";

const RETIRE: &str = "
UPDATE {schema}.keys SET expires_at = $2
WHERE application = $1 AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $2)";

/// A revoked key keeps its time of revocation.
const REVOKE_KEY: &str = "
UPDATE {schema}.keys SET revoked_at = coalesce(revoked_at, $3) WHERE application = $1 AND digest = $2
RETURNING shown";

const REVOKE_ALL: &str =
    "UPDATE {schema}.keys SET revoked_at = $2 WHERE application = $1 AND revoked_at IS NULL";

const SET_EXPIRY: &str = "
UPDATE {schema}.keys SET expires_at = $3 WHERE application = $1 AND digest = $2 AND revoked_at IS NULL
RETURNING shown";

const DESCRIBE: &str =
    "UPDATE {schema}.applications SET name = $2, contact = $3, note = $4, url = $5 WHERE id = $1";

const USED: &str = "
UPDATE {schema}.keys k SET last_used_at = u.at
FROM (SELECT digest, max(at) AS at FROM unnest($1::bytea[], $2::int8[]) AS u (digest, at) GROUP BY digest) u
WHERE k.digest = u.digest AND (k.last_used_at IS NULL OR k.last_used_at < u.at)";

impl ChangeStatements {
    pub(super) fn new(schema: &SchemaName) -> Self {
        Self(schema.clone())
    }

    /// Makes a change. If it is refused, nothing was changed.
    pub(super) async fn make(
        &self,
        client: &mut Client,
        change: &StoreChange,
        records: &RecordStatements,
    ) -> Made<StoredApplication> {
        let transaction = client.transaction().await?;
        let running = RunningChange { transaction: &transaction, statements: self, records, change };
        let changed = match running.make().await? {
            Ok(()) => running.application().await?,
            Err(refusal) => Err(refusal),
        };
        if changed.is_ok() {
            transaction.commit().await?;
        } else {
            transaction.rollback().await?;
        }
        Ok(changed)
    }

    /// Records uses of keys.
    pub(super) async fn used(&self, client: &Client, keys: &[KeyUse]) -> Result<(), tokio_postgres::Error> {
        let digests: Vec<&[u8]> = keys.iter().map(|key| key.digest.as_bytes().as_slice()).collect();
        let times: Vec<i64> = keys.iter().map(|key| millis(key.at)).collect();
        let parameters: [Parameter<'_>; 2] = [(&digests, Type::BYTEA_ARRAY), (&times, Type::INT8_ARRAY)];
        client.execute_typed(&self.0.statement(USED), &parameters).await.map(drop)
    }
}

struct RunningChange<'c> {
    transaction: &'c Transaction<'c>,
    statements: &'c ChangeStatements,
    records: &'c RecordStatements,
    change: &'c StoreChange,
}

type Made<T> = Result<Result<T, StoreError>, tokio_postgres::Error>;

impl RunningChange<'_> {
    async fn make(&self) -> Made<()> {
        let id = self.change.application.to_string();
        self.execute(audit::LOCK, &[]).await?;
        let detail = match self.apply(&id).await? {
            Ok(detail) => detail,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let words = [&self.change.who, self.change.what.word(), &id, &detail];
        audit::add(self.transaction, &self.statements.0, self.change.at, words).await?;
        Ok(Ok(()))
    }

    /// Makes the change itself and describes it for the audit trail.
    async fn apply(&self, id: &String) -> Made<String> {
        let is_create = matches!(self.change.what, ChangeKind::Create { .. });
        let there = "SELECT FROM {schema}.applications WHERE id = $1";
        if !is_create && self.execute(there, &[(id, Type::TEXT)]).await? == 0 {
            return Ok(Err(StoreError::UnknownApplication(self.change.application)));
        }
        if let Err(refusal) = self.check_owner().await? {
            return Ok(Err(refusal));
        }
        if let Err(refusal) = self.check_key_allowance().await? {
            return Ok(Err(refusal));
        }
        match &self.change.what {
            ChangeKind::Create { name, tier, own, url, contact, note, key, owner } => {
                let row: [Parameter<'_>; 3] = [(id, Type::TEXT), (name, Type::TEXT), (tier, Type::TEXT)];
                let created = self.create(row, *own, [url, contact, note], (id, key, *owner)).await?;
                Ok(created.map(|()| audit_detail::created(tier, *own, key, *owner)))
            }
            ChangeKind::AddKey { key, .. } => {
                Ok(self.add_key(id, key).await?.map(|()| audit_detail::key_added(key)))
            }
            ChangeKind::Rotate { key, retire_others_at, .. } if *retire_others_at <= self.change.at => {
                let at = millis(self.change.at);
                let revoked = self.execute(REVOKE_ALL, &[(id, Type::TEXT), (&at, Type::INT8)]).await?;
                let added = self.add_key(id, key).await?;
                Ok(added.map(|()| audit_detail::replaced(key, revoked)))
            }
            ChangeKind::Rotate { key, retire_others_at, .. } => {
                let at = millis(*retire_others_at);
                let retired = self.execute(RETIRE, &[(id, Type::TEXT), (&at, Type::INT8)]).await?;
                let added = self.add_key(id, key).await?;
                Ok(added.map(|()| audit_detail::rotated(key, retired, *retire_others_at)))
            }
            ChangeKind::RevokeKey { digest } => {
                let shown = self.change_key(REVOKE_KEY, id, digest, Some(self.change.at)).await?;
                Ok(shown.map(|shown| audit_detail::key_revoked(&shown)))
            }
            ChangeKind::RevokeAll => {
                let at = millis(self.change.at);
                let count = self.execute(REVOKE_ALL, &[(id, Type::TEXT), (&at, Type::INT8)]).await?;
                Ok(Ok(audit_detail::all_revoked(count)))
            }
            ChangeKind::SetTier { tier } => self.set_tier(id, tier).await,
            ChangeKind::SetLimits { own } => {
                let (minute, day) = limits(*own);
                let set = "UPDATE {schema}.applications SET own_minute = $2, own_day = $3 WHERE id = $1";
                self.execute(set, &[(id, Type::TEXT), (&minute, Type::INT8), (&day, Type::INT8)]).await?;
                Ok(Ok(audit_detail::limits_set(*own)))
            }
            ChangeKind::SetExpiry { digests, at } => self.set_expiry(id, digests, *at).await,
            ChangeKind::Describe { name, url, contact, note } => {
                self.describe(id, name, [url, contact, note]).await
            }
            ChangeKind::Close => self.close(id).await,
        }
    }

    /// Checks a change in the name of an owner. The row of `site` is locked, so no suspension comes between.
    async fn check_owner(&self) -> Made<()> {
        let Some(id) = self.change.owner else { return Ok(Ok(())) };
        let owner = owners::owner(self.transaction.client(), &self.statements.0, id).await?;
        let owner = owner.ok_or(StoreError::Owner(OwnerRefusal::Unknown(id)));
        Ok(owner.and_then(|owner| owner.check_change_of(self.change.application)))
    }

    /// Checks the conditions for a new key. The row of `site` is locked, so no other key comes between.
    async fn check_key_allowance(&self) -> Made<()> {
        let Some(allowance) = self.change.what.key_allowance() else { return Ok(Ok(())) };
        let application = self.application().await?;
        Ok(application.and_then(|read| Ok(allowance.check(&read, self.change.at)?)))
    }

    /// Reads the application.
    async fn application(&self) -> Made<StoredApplication> {
        let (client, id, day) = (self.transaction.client(), self.change.application, self.change.at.day());
        let read = self.records.application(client, id, day).await?;
        let read = read.ok_or(StoreError::UnknownApplication(id));
        Ok(read.and_then(|read| read.map_err(records::unreadable)))
    }

    /// Creates an application with its first key and its owner.
    async fn create(
        &self,
        [of_id, name, tier]: [Parameter<'_>; 3],
        own: OwnLimits,
        [url, contact, note]: [&Option<String>; 3],
        (id, key, owner): (&String, &StoredKey, Option<Ownership>),
    ) -> Made<()> {
        let ((minute, day), at) = (limits(own), millis(self.change.at));
        let row: [Parameter<'_>; 9] = [
            of_id,
            name,
            tier,
            (&minute, Type::INT8),
            (&day, Type::INT8),
            (contact, Type::TEXT),
            (note, Type::TEXT),
            (&at, Type::INT8),
            (url, Type::TEXT),
        ];
        if self.execute(CREATE, &row).await? == 0 {
            return Ok(Err(StoreError::Exists("that application")));
        }
        let added = self.add_key(id, key).await?;
        match (added, owner) {
            (Ok(()), Some(owner)) => {
                let day = self.change.at.day();
                owners::own(self.transaction, &self.statements.0, id, owner, day).await
            }
            (added, _) => Ok(added),
        }
    }

    async fn describe(&self, id: &String, name: &String, texts: [&Option<String>; 3]) -> Made<String> {
        let [url, contact, note] = texts;
        let row: [Parameter<'_>; 5] = [
            (id, Type::TEXT),
            (name, Type::TEXT),
            (contact, Type::TEXT),
            (note, Type::TEXT),
            (url, Type::TEXT),
        ];
        self.execute(DESCRIBE, &row).await?;
        Ok(Ok(audit_detail::described(texts)))
    }

    /// Closes the application in the name of its owner.
    async fn close(&self, id: &String) -> Made<String> {
        let (at, name) = (millis(self.change.at), ChangeKind::CLOSED);
        let revoked = self.execute(REVOKE_ALL, &[(id, Type::TEXT), (&at, Type::INT8)]).await?;
        let set = "
UPDATE {schema}.applications SET name = $2, contact = NULL, note = NULL, url = NULL WHERE id = $1";
        self.execute(set, &[(id, Type::TEXT), (&name, Type::TEXT)]).await?;
        let unnamed = "UPDATE {schema}.keys SET name = NULL WHERE application = $1 AND name IS NOT NULL";
        self.execute(unnamed, &[(id, Type::TEXT)]).await?;
        closed_applications::add(self.transaction, &self.statements.0, id, self.change.at.day()).await?;
        let disown = "DELETE FROM {schema}.owned_applications WHERE application = $1";
        self.execute(disown, &[(id, Type::TEXT)]).await?;
        Ok(Ok(audit_detail::all_revoked(revoked)))
    }

    /// Sets the expiry of keys.
    async fn set_expiry(&self, id: &String, digests: &[Digest], at: Option<Wall>) -> Made<String> {
        let mut shown = Vec::new();
        for digest in digests {
            match self.change_key(SET_EXPIRY, id, digest, at).await? {
                Ok(key) => shown.push(key),
                Err(refusal) => return Ok(Err(refusal)),
            }
        }
        Ok(Ok(audit_detail::expiry_set(&shown, at)))
    }

    async fn execute(&self, text: &str, row: &[Parameter<'_>]) -> Result<u64, tokio_postgres::Error> {
        self.transaction.client().execute_typed(&self.statements.0.statement(text), row).await
    }

    async fn add_key(&self, id: &String, key: &StoredKey) -> Made<()> {
        let digest = key.digest.as_bytes().as_slice();
        let created_at = millis(key.created_at);
        let [expires_at, revoked_at, last_used_at] =
            [key.expires_at, key.revoked_at, key.last_used_at].map(|at| at.map(millis));
        let row: [Parameter<'_>; 8] = [
            (id, Type::TEXT),
            (&digest, Type::BYTEA),
            (&key.shown, Type::TEXT),
            (&created_at, Type::INT8),
            (&expires_at, Type::INT8),
            (&revoked_at, Type::INT8),
            (&last_used_at, Type::INT8),
            (&key.name, Type::TEXT),
        ];
        let added = self.execute(ADD_KEY, &row).await?;
        Ok(if added == 0 { Err(StoreError::Exists("that key")) } else { Ok(()) })
    }

    /// Changes one key and returns its visible characters.
    async fn change_key(&self, text: &str, id: &String, digest: &Digest, at: Option<Wall>) -> Made<String> {
        let (digest, at) = (digest.as_bytes().as_slice(), at.map(millis));
        let row: [Parameter<'_>; 3] = [(id, Type::TEXT), (&digest, Type::BYTEA), (&at, Type::INT8)];
        let client = self.transaction.client();
        let found = client.query_typed_opt(&self.statements.0.statement(text), &row).await?;
        let unknown = StoreError::UnknownKey(self.change.application);
        found.map_or(Ok(Err(unknown)), |row| row.try_get(0).map(Ok))
    }

    async fn set_tier(&self, id: &String, tier: &String) -> Made<String> {
        let set = "
UPDATE {schema}.applications a SET tier = $2 FROM {schema}.applications b WHERE a.id = $1 AND b.id = a.id
RETURNING b.tier";
        let row: [Parameter<'_>; 2] = [(id, Type::TEXT), (tier, Type::TEXT)];
        let before: String = self
            .transaction
            .client()
            .query_typed_one(&self.statements.0.statement(set), &row)
            .await?
            .try_get(0)?;
        Ok(Ok(audit_detail::tier_set(&before, tier)))
    }
}

fn limits(own: OwnLimits) -> (Option<i64>, Option<i64>) {
    (own.minute.map(i64::from), own.day.map(i64::from))
}

fn millis(at: Wall) -> i64 {
    i64::try_from(at.millis()).unwrap_or(i64::MAX)
}
