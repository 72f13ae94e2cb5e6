//! Changes to applications and keys, each with its audit record in the same transaction, which must be rolled back if
//! the change is refused. The caller creates keys and checks tiers.
//!
//! Other changes are locked out first, so that the numbers of audit records are in commit order: a reader that has seen
//! a number has seen every earlier change.

use super::{
    attachments, closed_applications, leaks, limits_until, notices, owners, records,
    request_totals,
    store::{Access, Store},
};
use crate::{
    ChangeKind, Description, Ownership, StoreChange, StoreError, StoreResult, StoredApplication,
    StoredKey, audit_detail,
    statements::{
        Done, Fault,
        SqlField::{self, Digest as DigestOf, OptionalText, OptionalTime, Text, Time},
        Tables,
    },
};
use scoregate_base::{
    clock::{Day, Wall},
    keys::Digest,
    limits::OwnLimits,
};

const CREATE: &str = "
INSERT INTO {schema}.applications (id, name, tier, own_limits, created_at, {columns})
VALUES ($1, $2, $3, $4, $5, {values}) ON CONFLICT DO NOTHING";
const ADD_KEY: &str = "
INSERT INTO {schema}.keys (application, digest, shown, created_at, expires_at, revoked_at, last_used_at, name)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING";
/// Keys that are active at `$2` expire then, unless they expire sooner.
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
const TIER: &str = "SELECT tier FROM {schema}.applications WHERE id = $1";
const SET_TIER: &str = "UPDATE {schema}.applications SET tier = $2 WHERE id = $1";
const REMOVE_NAMES: &str =
    "UPDATE {schema}.keys SET name = NULL WHERE application = $1 AND name IS NOT NULL";

impl Store {
    /// Makes a change and its audit record durable in one transaction, and returns the changed application, with
    /// `granted` for the day of the change. If the application's record is unreadable, a change that adds no key is
    /// still made, and the returned application contains only revoked keys: no other key is active.
    pub async fn change(&self, change: StoreChange) -> StoreResult<StoredApplication> {
        let access = if matches!(change.what, ChangeKind::Close) {
            Access::Erase
        } else {
            Access::Change
        };
        self.run(access, "make a change", async move |tables| {
            let change = &change;
            RunningChange { tables, change }.make().await
        })
        .await
    }
}

struct RunningChange<'c> {
    tables: Tables<'c>,
    change: &'c StoreChange,
}

impl RunningChange<'_> {
    /// Makes a change, and returns the changed application.
    async fn make(&self) -> Done<StoredApplication> {
        let Self { tables, change } = *self;
        let id = change.application.to_string();
        tables.lock().await?;
        self.check_existence(&id).await?;
        self.check_owner().await?;
        self.check_key_allowance().await?;
        self.keep_terms().await?;
        let detail = self.apply(&id).await?;
        tables
            .audit(change.at, [&change.who, change.what.word(), &id, &detail])
            .await?;
        self.tell(&id).await?;
        records::changed(tables, change)
            .await?
            .ok_or_else(|| self.unknown())
    }

    /// Stores the account and the tier that applied on earlier days if either of the two changes. Usage of the day on which
    /// an application is closed is billed too.
    async fn keep_terms(&self) -> Done<()> {
        let is_closed = matches!(self.change.what, ChangeKind::Close);
        let changes_terms = matches!(
            self.change.what,
            ChangeKind::SetTier { .. } | ChangeKind::Attach(_) | ChangeKind::Detach(_)
        );
        if !is_closed && !changes_terms {
            return Ok(());
        }
        let today = self.change.at.day().number();
        let last = Day::from_number(today.saturating_sub(u32::from(!is_closed)));
        request_totals::keep_terms(self.tables, self.change.application, last).await
    }

    /// Applies the change and describes it for the audit trail.
    async fn apply(&self, id: &str) -> Done<String> {
        let Self { tables, change } = *self;
        match &change.what {
            ChangeKind::Create {
                name,
                tier,
                own,
                description,
                key,
                owner,
            } => {
                self.create(id, [name, tier], *own, description, key, owner.as_ref())
                    .await
            }
            ChangeKind::AddKey { key, .. } => self.add_another_key(id, key).await,
            ChangeKind::Rotate {
                key,
                retire_others_at,
                ..
            } => self.rotate(id, key, *retire_others_at).await,
            ChangeKind::RevokeKey { digest } => self.revoke_key(id, digest).await,
            ChangeKind::RevokeAll => self.revoke_every_key(id).await,
            ChangeKind::SetTier { tier } => self.set_tier(id, tier).await,
            ChangeKind::SetLimits { .. }
            | ChangeKind::SetOwnerLimits(_)
            | ChangeKind::RestoreLimits => limits_until::make(tables, id, change).await,
            ChangeKind::SetExpiry { digests, at } => self.set_expiry(id, digests, *at).await,
            ChangeKind::Describe { name, description } => {
                self.describe(id, name, description).await
            }
            ChangeKind::ReportLeak(leak) => leaks::report(tables, change, leak).await,
            ChangeKind::Attach(attachment) => attachments::attach(tables, change, attachment).await,
            ChangeKind::Detach(mail) => attachments::detach(tables, change, mail).await,
            ChangeKind::Close => self.close(id).await,
        }
    }

    /// Checks that the application exists, unless the change creates it.
    async fn check_existence(&self, id: &str) -> Done<()> {
        if matches!(self.change.what, ChangeKind::Create { .. }) {
            return Ok(());
        }
        let found = self.tables.find(TIER, &[Text(id)], |_| Ok(())).await?;
        found.ok_or_else(|| self.unknown())
    }

    fn unknown(&self) -> Fault {
        StoreError::UnknownApplication(self.change.application).into()
    }

    /// Checks a change on behalf of an owner. Other changes are locked out, so the owner cannot be suspended in the
    /// meantime.
    async fn check_owner(&self) -> Done<()> {
        let Some(id) = self.change.owner else {
            return Ok(());
        };
        Ok(owners::existing(self.tables, id)
            .await?
            .check_change_of(self.change.application)?)
    }

    /// Checks the conditions for a new key. Other changes are locked out, so no other key can be added in the meantime.
    async fn check_key_allowance(&self) -> Done<()> {
        let Some((_, Some(allowance))) = self.change.what.added_key() else {
            return Ok(());
        };
        let day = self.change.at.day();
        let read = records::application(self.tables, self.change.application, day).await?;
        Ok(allowance.check(&read.ok_or_else(|| self.unknown())?, self.change.at)?)
    }

    /// Queues the notice about the change, if the application has an owner who wants it.
    async fn tell(&self, id: &str) -> Done<()> {
        match &self.change.notice {
            Some(notice) => notices::tell(self.tables, id, notice).await,
            None => Ok(()),
        }
    }

    /// Creates an application with its first key.
    async fn create(
        &self,
        id: &str,
        texts: [&str; 2],
        own: OwnLimits,
        description: &Description,
        key: &StoredKey,
        owner: Option<&Ownership>,
    ) -> Done<String> {
        let [name, tier] = texts;
        let limits = own.to_text();
        let limits = OptionalText(limits.as_deref());
        let created_at = Time(self.change.at);
        let row = [Text(id), Text(name), Text(tier), limits, created_at];
        let values = Description::sql_list(|index, _| format!("${}", index + 6));
        let create = CREATE
            .replace("{columns}", &Description::NAMES.join(", "))
            .replace("{values}", &values);
        let created = self
            .tables
            .run(&create, &with_description(&row, description))
            .await?;
        if created == 0 {
            return Err(StoreError::Exists("that application").into());
        }
        self.add_key(id, key).await?;
        let owner = self.give(id, owner).await?;
        Ok(audit_detail::created(tier, own, key, &owner))
    }

    /// Assigns a new application to its owner, and returns the owner's details.
    async fn give(&self, id: &str, owner: Option<&Ownership>) -> Done<String> {
        let Self { tables, change } = *self;
        match owner {
            None => Ok(String::new()),
            Some(Ownership::SignedUp { owner, at_most }) => {
                owners::own(tables, id, *owner, *at_most, change.at.day()).await?;
                Ok(format!(", owner {owner}"))
            }
            Some(Ownership::Attached(attachment)) => {
                let owner = attachments::attach(tables, change, attachment).await?;
                Ok(format!(", {owner}"))
            }
        }
    }

    async fn add_another_key(&self, id: &str, key: &StoredKey) -> Done<String> {
        self.add_key(id, key).await?;
        Ok(format!("key {}", audit_detail::shown(key)))
    }

    async fn rotate(&self, id: &str, key: &StoredKey, retire_at: Wall) -> Done<String> {
        if retire_at <= self.change.at {
            let revoked = self.revoke_all(id).await?;
            self.add_key(id, key).await?;
            let shown = audit_detail::shown(key);
            return Ok(format!("new key {shown}; {revoked} older revoked"));
        }
        let values = [Text(id), Time(retire_at)];
        let retired = self.tables.run(RETIRE, &values).await?;
        self.add_key(id, key).await?;
        Ok(audit_detail::rotated(key, retired, retire_at))
    }

    async fn revoke_key(&self, id: &str, digest: &Digest) -> Done<String> {
        let at = Some(self.change.at);
        let shown = self.change_key(REVOKE_KEY, id, digest, at).await?;
        Ok(format!("key {shown}"))
    }

    async fn set_tier(&self, id: &str, tier: &str) -> Done<String> {
        let before = self
            .tables
            .find(TIER, &[Text(id)], |row| Ok(row.any_text("tier")))
            .await?;
        self.tables.run(SET_TIER, &[Text(id), Text(tier)]).await?;
        Ok(format!("from {} to {tier}", before.unwrap_or_default()))
    }

    async fn set_expiry(&self, id: &str, digests: &[Digest], at: Option<Wall>) -> Done<String> {
        let mut shown = Vec::new();
        for digest in digests {
            shown.push(self.change_key(SET_EXPIRY, id, digest, at).await?);
        }
        Ok(audit_detail::expiry_set(&shown, at))
    }

    async fn describe(&self, id: &str, name: &str, description: &Description) -> Done<String> {
        let columns = Description::sql_list(|index, name| format!("{name} = ${}", index + 3));
        let update =
            format!("UPDATE {{schema}}.applications SET name = $2, {columns} WHERE id = $1");
        let row = with_description(&[Text(id), Text(name)], description);
        self.tables.run(&update, &row).await?;
        Ok(audit_detail::described(description))
    }

    /// Closes the application on behalf of its owner.
    async fn close(&self, id: &str) -> Done<String> {
        let detail = self.revoke_every_key(id).await?;
        self.describe(id, ChangeKind::CLOSED, &Description::default())
            .await?;
        self.tables.run(REMOVE_NAMES, &[Text(id)]).await?;
        closed_applications::add(self.tables, id, self.change.at.day()).await?;
        self.tell(id).await?;
        self.tables.run(owners::DISOWN, &[Text(id)]).await?;
        Ok(detail)
    }

    async fn revoke_every_key(&self, id: &str) -> Done<String> {
        limits_until::forget(self.tables, id).await?;
        Ok(audit_detail::all_revoked(self.revoke_all(id).await?))
    }

    async fn revoke_all(&self, id: &str) -> Done<u64> {
        self.tables
            .run(REVOKE_ALL, &[Text(id), Time(self.change.at)])
            .await
    }

    async fn add_key(&self, id: &str, key: &StoredKey) -> Done<()> {
        let StoredKey {
            digest,
            shown,
            name,
            created_at,
            expires_at,
            revoked_at,
            last_used_at,
        } = key;
        let [expires_at, revoked_at, last_used_at] =
            [expires_at, revoked_at, last_used_at].map(|at| OptionalTime(*at));
        let created_at = Time(*created_at);
        let name = OptionalText(name.as_deref());
        let row = [
            Text(id),
            DigestOf(digest),
            Text(shown),
            created_at,
            expires_at,
            revoked_at,
            last_used_at,
            name,
        ];
        let added = self.tables.run(ADD_KEY, &row).await?;
        if added == 0 {
            Err(StoreError::Exists("that key").into())
        } else {
            Ok(())
        }
    }

    /// Changes one key and returns its visible characters.
    async fn change_key(
        &self,
        text: &str,
        id: &str,
        digest: &Digest,
        at: Option<Wall>,
    ) -> Done<String> {
        let values = [Text(id), DigestOf(digest), OptionalTime(at)];
        let shown = self
            .tables
            .find(text, &values, |row| Ok(row.any_text("shown")))
            .await?;
        shown.ok_or_else(|| StoreError::UnknownKey(self.change.application).into())
    }
}

fn with_description<'r>(row: &[SqlField<'r>], description: &'r Description) -> Vec<SqlField<'r>> {
    row.iter()
        .copied()
        .chain(
            description
                .columns()
                .map(|(_, text)| OptionalText(text.as_deref())),
        )
        .collect()
}
