//! Changes to applications and keys, each with its audit record, in one transaction.
//!
//! The row of `site` is locked first, so that the numbers of audit records are in commit order: a reader that has seen a
//! number has seen every change before it.

use crate::audit_detail;
use crate::postgres::accounts::closed_applications;
use crate::postgres::accounts::owners;
use crate::postgres::connection::schema_client::{ChangeResult, Parameter, SchemaClient, SqlResult};
use crate::postgres::keys::audit;
use crate::postgres::keys::records;
use crate::stored::millis;
use crate::{
    ChangeKind, Description, KeyUse, OwnLimits, Ownership, StoreChange, StoreError, StoredApplication,
    StoredKey,
};
use scoregate_base::clock::Wall;
use scoregate_base::keys::Digest;

const CREATE: &str = "
INSERT INTO {schema}.applications (id, name, tier, own_minute, own_day, created_at, {columns})
VALUES ($1, $2, $3, $4, $5, $6, {values}) ON CONFLICT DO NOTHING";

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

const SET_LIMITS: &str = "UPDATE {schema}.applications SET own_minute = $2, own_day = $3 WHERE id = $1";

const SET_TIER: &str = "
UPDATE {schema}.applications a SET tier = $2 FROM {schema}.applications b WHERE a.id = $1 AND b.id = a.id
RETURNING b.tier";

const USED: &str = "
UPDATE {schema}.keys k SET last_used_at = u.at
FROM (SELECT digest, max(at) AS at FROM unnest($1::bytea[], $2::int8[]) AS u (digest, at) GROUP BY digest) u
WHERE k.digest = u.digest AND (k.last_used_at IS NULL OR k.last_used_at < u.at)";

/// Makes a change in a transaction, which must be rolled back if it is refused.
pub(crate) async fn make(client: SchemaClient<'_>, change: &StoreChange) -> ChangeResult<StoredApplication> {
    let (running, id) = (RunningChange { client, change }, change.application.to_string());
    audit::lock(client).await?;
    let detail = running.apply(&id).await?;
    audit::add(client, change.at, [&change.who, change.what.word(), &id, &detail]).await?;
    running.application().await
}

/// Records uses of keys.
pub(crate) async fn used(client: SchemaClient<'_>, keys: &[KeyUse]) -> SqlResult<()> {
    let digests: Vec<&[u8]> = keys.iter().map(|key| key.digest.as_bytes().as_slice()).collect();
    let times: Vec<i64> = keys.iter().map(|key| millis(key.at)).collect();
    client.execute(USED, &[&digests, &times]).await.map(drop)
}

struct RunningChange<'c> {
    client: SchemaClient<'c>,
    change: &'c StoreChange,
}

impl RunningChange<'_> {
    /// Makes the change itself and describes it for the audit trail.
    async fn apply(&self, id: &String) -> ChangeResult<String> {
        let is_create = matches!(self.change.what, ChangeKind::Create { .. });
        let there = "SELECT FROM {schema}.applications WHERE id = $1";
        if !is_create && self.client.execute(there, &[id]).await? == 0 {
            return Err(StoreError::UnknownApplication(self.change.application).into());
        }
        self.check_owner().await?;
        self.check_key_allowance().await?;
        Ok(match &self.change.what {
            ChangeKind::Create { name, tier, own, description, key, owner } => {
                let ((minute, day), at) = (limits(*own), millis(self.change.at));
                let row = with_description(&[id, name, tier, &minute, &day, &at], description);
                self.create(&row, (id, key, *owner)).await?;
                audit_detail::created(tier, *own, key, *owner)
            }
            ChangeKind::AddKey { key, .. } => {
                self.add_key(id, key).await?;
                audit_detail::key_added(key)
            }
            ChangeKind::Rotate { key, retire_others_at, .. } if *retire_others_at <= self.change.at => {
                let revoked = self.client.execute(REVOKE_ALL, &[id, &millis(self.change.at)]).await?;
                self.add_key(id, key).await?;
                audit_detail::replaced(key, revoked)
            }
            ChangeKind::Rotate { key, retire_others_at, .. } => {
                let retired = self.client.execute(RETIRE, &[id, &millis(*retire_others_at)]).await?;
                self.add_key(id, key).await?;
                audit_detail::rotated(key, retired, *retire_others_at)
            }
            ChangeKind::RevokeKey { digest } => {
                let shown = self.change_key(REVOKE_KEY, id, digest, Some(self.change.at)).await?;
                audit_detail::key_revoked(&shown)
            }
            ChangeKind::RevokeAll => {
                let count = self.client.execute(REVOKE_ALL, &[id, &millis(self.change.at)]).await?;
                audit_detail::all_revoked(count)
            }
            ChangeKind::SetTier { tier } => {
                let before: String = self.client.query_one(SET_TIER, &[id, tier]).await?.try_get(0)?;
                audit_detail::tier_set(&before, tier)
            }
            ChangeKind::SetLimits { own } => {
                let (minute, day) = limits(*own);
                self.client.execute(SET_LIMITS, &[id, &minute, &day]).await?;
                audit_detail::limits_set(*own)
            }
            ChangeKind::SetExpiry { digests, at } => self.set_expiry(id, digests, *at).await?,
            ChangeKind::Describe { name, description } => {
                self.describe(id, name, description).await?;
                audit_detail::described(description)
            }
            ChangeKind::Close => self.close(id).await?,
        })
    }

    /// Checks a change in the name of an owner. The row of `site` is locked, so no suspension comes between.
    async fn check_owner(&self) -> ChangeResult<()> {
        let Some(id) = self.change.owner else { return Ok(()) };
        Ok(owners::existing(self.client, id).await?.check_change_of(self.change.application)?)
    }

    /// Checks the conditions for a new key. The row of `site` is locked, so no other key comes between.
    async fn check_key_allowance(&self) -> ChangeResult<()> {
        let Some(allowance) = self.change.what.key_allowance() else { return Ok(()) };
        let checked = allowance.check(&self.application().await?, self.change.at);
        Ok(checked.map_err(StoreError::from)?)
    }

    /// Reads the application.
    async fn application(&self) -> ChangeResult<StoredApplication> {
        let (id, day) = (self.change.application, self.change.at.day());
        let read = records::application(self.client, id, day).await?;
        Ok(read.unwrap_or(Err(StoreError::UnknownApplication(id)))?)
    }

    /// Creates an application with its first key and its owner.
    async fn create(
        &self,
        row: &[&dyn Parameter],
        (id, key, owner): (&String, &StoredKey, Option<Ownership>),
    ) -> ChangeResult<()> {
        let values = Description::sql_list(|index, _| format!("${}", index + 7));
        let create = CREATE.replace("{columns}", &Description::NAMES.join(", ")).replace("{values}", &values);
        if self.client.execute(&create, row).await? == 0 {
            return Err(StoreError::Exists("that application").into());
        }
        self.add_key(id, key).await?;
        match owner {
            Some(owner) => owners::own(self.client, id, owner, self.change.at.day()).await,
            None => Ok(()),
        }
    }

    async fn describe(&self, id: &String, name: &str, description: &Description) -> SqlResult<u64> {
        let columns = Description::sql_list(|index, name| format!("{name} = ${}", index + 3));
        let update = format!("UPDATE {{schema}}.applications SET name = $2, {columns} WHERE id = $1");
        self.client.execute(&update, &with_description(&[id, &name], description)).await
    }

    /// Closes the application in the name of its owner.
    async fn close(&self, id: &String) -> SqlResult<String> {
        let revoked = self.client.execute(REVOKE_ALL, &[id, &millis(self.change.at)]).await?;
        self.describe(id, ChangeKind::CLOSED, &Description::default()).await?;
        let unnamed = "UPDATE {schema}.keys SET name = NULL WHERE application = $1 AND name IS NOT NULL";
        self.client.execute(unnamed, &[id]).await?;
        closed_applications::add(self.client, id, self.change.at.day()).await?;
        let disown = "DELETE FROM {schema}.owned_applications WHERE application = $1";
        self.client.execute(disown, &[id]).await?;
        Ok(audit_detail::all_revoked(revoked))
    }

    /// Sets the expiry of keys.
    async fn set_expiry(&self, id: &String, digests: &[Digest], at: Option<Wall>) -> ChangeResult<String> {
        let mut shown = Vec::new();
        for digest in digests {
            shown.push(self.change_key(SET_EXPIRY, id, digest, at).await?);
        }
        Ok(audit_detail::expiry_set(&shown, at))
    }

    async fn add_key(&self, id: &String, key: &StoredKey) -> ChangeResult<()> {
        let StoredKey { digest, shown, name, created_at, expires_at, revoked_at, last_used_at } = key;
        let (digest, created_at) = (digest.as_bytes().as_slice(), millis(*created_at));
        let [expires_at, revoked_at, last_used_at] =
            [expires_at, revoked_at, last_used_at].map(|at| at.map(millis));
        let row: [&dyn Parameter; 8] =
            [id, &digest, shown, &created_at, &expires_at, &revoked_at, &last_used_at, name];
        let added = self.client.execute(ADD_KEY, &row).await?;
        if added == 0 { Err(StoreError::Exists("that key").into()) } else { Ok(()) }
    }

    /// Changes one key and returns its visible characters.
    async fn change_key(
        &self,
        text: &str,
        id: &String,
        digest: &Digest,
        at: Option<Wall>,
    ) -> ChangeResult<String> {
        let (digest, at) = (digest.as_bytes().as_slice(), at.map(millis));
        let found = self.client.query_opt(text, &[id, &digest, &at]).await?;
        let row = found.ok_or(StoreError::UnknownKey(self.change.application))?;
        Ok(row.try_get(0)?)
    }
}

fn with_description<'r>(row: &[&'r dyn Parameter], description: &'r Description) -> Vec<&'r dyn Parameter> {
    row.iter().copied().chain(description.columns().map(|(_, text)| text as &dyn Parameter)).collect()
}

fn limits(own: OwnLimits) -> (Option<i64>, Option<i64>) {
    (own.minute.map(i64::from), own.day.map(i64::from))
}
