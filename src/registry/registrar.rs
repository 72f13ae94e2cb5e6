//! Creates, changes and reads applications and keys. Fields that a request omits are not changed. Reads and writes of a
//! change share one turn, so no other change can happen in between.

use std::{sync::Arc, time::Duration};

use crate::accounts::Account;
use scoregate_base::{
    clock::{Day, Wall},
    keys::{ApplicationId, Digest, KeyForm, OwnerId, check_text, shown_prefix},
    limits::{BELOW_DAY, LimitChanges, LimitStatus, Scope},
    secret::Secret,
};
use scoregate_store::{
    ApplicationPage, AuditQuery, AuditRecord, ChangeKind, MailKind, NewMail, Ownership, StoreError,
    StoreResult, StoredApplication, StoredKey, StoredOwner, notice_kinds,
};

use crate::registry::{
    actor::Actor,
    field_change::DescriptionChange,
    key_changes::KeyChanges,
    new_application::{IssuedKey, KeyDetails, NewApplication},
    registrar_error::{RegistrarError, RegistrarResult},
};

/// The actor in the audit trail when temporary limits end.
const ACTOR: &str = "end of limits";
/// Maximum time until temporary limits end: a year, plus a day for leap years. Operators tend to forget longer limits.
const LIMITS_END_WITHIN: Duration = Duration::from_hours(366 * 24);
/// Maximum number of audit records per page.
// This limits the memory for a page, whatever size is requested.
const AUDIT_PAGE: usize = 1_000;
/// Maximum number of applications per page.
// This limits the memory for a page, whatever size is requested.
const LIST_PAGE: usize = 10_000;

/// Administers applications and their keys.
pub struct Registrar {
    pub(crate) changes: Arc<KeyChanges>,
    form: KeyForm,
}

impl Registrar {
    /// A registrar for the store of `changes`. New keys have the given form.
    pub fn new(changes: Arc<KeyChanges>, form: KeyForm) -> Self {
        Self { changes, form }
    }

    /// Creates an application with its first key.
    pub async fn create(&self, who: &str, new: NewApplication) -> RegistrarResult<IssuedKey> {
        self.create_with(Actor::Operator(who), new, None).await
    }

    /// Creates an application for an owner, who must not be suspended and may have up to `at_most` applications.
    pub async fn create_for(
        &self,
        owner: OwnerId,
        at_most: u32,
        new: NewApplication,
    ) -> RegistrarResult<IssuedKey> {
        self.create_with(
            Actor::Owner(owner),
            new,
            Some(Ownership::SignedUp { owner, at_most }),
        )
        .await
    }

    async fn create_with(
        &self,
        who: Actor<'_>,
        new: NewApplication,
        owner: Option<Ownership>,
    ) -> RegistrarResult<IssuedKey> {
        self.changes.check_tier(&new.tier)?;
        check_text("name", Some(&new.name))?;
        new.description.check()?;
        new.own.check(Scope::Application)?;
        let id = ApplicationId::mint()?;
        let details = KeyDetails {
            expires_at: new.expires_at,
            key: new.key,
            ..KeyDetails::default()
        };
        let (secret, key) = self.mint(self.changes.now().wall, details)?;
        let NewApplication {
            name,
            tier,
            own,
            description,
            owner: address,
            ..
        } = new;
        let attached = address
            .map(|address| self.attachment(id, address))
            .transpose()?;
        let owner = owner.or(attached.map(Ownership::Attached));
        let what = ChangeKind::Create {
            name,
            tier,
            own,
            description,
            key,
            owner,
        };
        self.issue(who, id, what, secret).await
    }

    /// Makes a change with a new key. If an earlier attempt already stored this key, nothing is changed.
    async fn issue(
        &self,
        who: Actor<'_>,
        id: ApplicationId,
        what: ChangeKind,
        key: Secret,
    ) -> RegistrarResult<IssuedKey> {
        let application = match self.changes.change(who, id, what).await {
            Err(RegistrarError::Store(StoreError::Exists(what))) => {
                let digest = Digest::of(key.expose());
                let found = self.changes.store.find_keys(vec![digest]).await?;
                let (_, id) = found.first().ok_or(StoreError::Exists(what))?;
                self.show(*id).await?
            }
            changed => changed?,
        };
        Ok(IssuedKey { application, key })
    }

    /// The key that is derived from a string.
    pub fn derive_key(&self, text: &str) -> Secret {
        self.form.derive(text)
    }

    /// Creates a new key for an application. The other keys expire after `overlap`. The quota belongs to the
    /// application and is unchanged.
    pub async fn rotate(
        &self,
        who: impl Into<Actor<'_>>,
        id: ApplicationId,
        overlap: Duration,
        details: KeyDetails,
    ) -> RegistrarResult<IssuedKey> {
        let now = self.changes.now().wall;
        let allowance = details.allowance;
        let (secret, key) = self.mint(now, details)?;
        let what = ChangeKind::Rotate {
            key,
            retire_others_at: now.plus(overlap),
            allowance,
        };
        self.issue(who.into(), id, what, secret).await
    }

    /// Creates another key for an application. Existing keys are not affected.
    pub async fn add_key(
        &self,
        who: impl Into<Actor<'_>>,
        id: ApplicationId,
        details: KeyDetails,
    ) -> RegistrarResult<IssuedKey> {
        let allowance = details.allowance;
        let (secret, key) = self.mint(self.changes.now().wall, details)?;
        let application = self
            .changes
            .change(who, id, ChangeKind::AddKey { key, allowance })
            .await?;
        Ok(IssuedKey {
            application,
            key: secret,
        })
    }

    fn mint(&self, now: Wall, details: KeyDetails) -> RegistrarResult<(Secret, StoredKey)> {
        let KeyDetails {
            name,
            expires_at,
            key,
            ..
        } = details;
        check_text("key_name", name.as_deref())?;
        if expires_at.is_some_and(|ends| ends <= now) {
            return Err(RegistrarError::BadExpiry);
        }
        let secret = match key {
            Some(key) => key,
            None => self.form.mint()?,
        };
        let digest = Digest::of(secret.expose());
        let shown = shown_prefix(secret.expose()).to_owned();
        let revoked_at = None;
        let last_used_at = None;
        let key = StoredKey {
            digest,
            shown,
            name,
            created_at: now,
            expires_at,
            revoked_at,
            last_used_at,
        };
        Ok((secret, key))
    }

    /// The notice of a new session, if owners get notices.
    pub fn sign_in_notice(&self, session: &Digest, at: Wall) -> Option<NewMail> {
        self.changes
            .notices
            .as_ref()
            .map(|texts| texts.of_sign_in(session, at))
    }

    /// The kinds of notices for an owner of these applications: the owner's choice, or the defaults of the tiers.
    pub fn notices_of(
        &self,
        owner: &StoredOwner,
        applications: &[StoredApplication],
    ) -> Vec<MailKind> {
        owner.notices.clone().unwrap_or_else(|| {
            let mut tiers = self.changes.notice_tiers();
            tiers.retain(|tier| {
                applications
                    .iter()
                    .any(|application| *tier.name == application.tier)
            });
            notice_kinds(|row| tiers.iter().any(|tier| tier.defaults.contains(&row.kind)))
        })
    }

    /// Revokes all keys of an application, or the key that begins with `prefix`.
    pub async fn revoke(
        &self,
        who: impl Into<Actor<'_>>,
        id: ApplicationId,
        prefix: Option<&str>,
    ) -> RegistrarResult<StoredApplication> {
        let Some(prefix) = prefix else {
            return self.changes.change(who, id, ChangeKind::RevokeAll).await;
        };
        let digest = match self.show(id).await {
            // If the record was damaged after this process loaded the key, the key still works. It can be revoked by the full key
            // or its digest.
            Err(RegistrarError::Store(StoreError::Damaged { .. })) => {
                Digest::from_hex(prefix).unwrap_or_else(|| Digest::of(prefix))
            }
            application => one_key(&application?, prefix)?,
        };
        self.changes
            .change(who, id, ChangeKind::RevokeKey { digest })
            .await
    }

    /// Moves an application to another tier. Units used today still count.
    pub async fn set_tier(
        &self,
        who: &str,
        id: ApplicationId,
        tier: &str,
    ) -> RegistrarResult<StoredApplication> {
        self.changes.check_tier(tier)?;
        self.changes
            .change(
                who,
                id,
                ChangeKind::SetTier {
                    tier: tier.to_owned(),
                },
            )
            .await
    }

    /// Changes limits of one application, permanently or until a given time. Units used today still count.
    pub async fn set_limits(
        &self,
        who: &str,
        id: ApplicationId,
        changes: LimitChanges,
        until: Option<Wall>,
    ) -> RegistrarResult<StoredApplication> {
        let now = self.changes.now().wall;
        if until.is_some_and(|at| at <= now || at > now.plus(LIMITS_END_WITHIN)) {
            return Err(RegistrarError::BadUntil);
        }
        changes.check(Scope::Application)?;
        let what = ChangeKind::SetLimits { changes, until };
        self.changes.change(who, id, what).await
    }

    /// Restores the previous limits of applications whose temporary limits have ended. Called every minute.
    pub async fn restore_limits(&self) {
        let due = self.changes.store.due_limits(self.changes.now().wall).await;
        let ids = match due {
            Ok(ids) => ids,
            Err(error) => return limits_remain(&error.into()),
        };
        for id in ids {
            let what = ChangeKind::RestoreLimits;
            match self.changes.change(ACTOR, id, what).await {
                // `Exists`: another gateway has restored the limits, or an operator has set other limits.
                Ok(_) | Err(RegistrarError::Store(StoreError::Exists(_))) => {}
                Err(error) => limits_remain(&error),
            }
        }
    }

    /// Sets the expiry of the key that begins with `prefix`, or of every key that has not expired. In the latter case,
    /// if there are several keys, no key may expire later than before, because a rotation may be about to retire it. An
    /// expired key is reactivated only if it is named. A revoked key is never reactivated.
    pub async fn set_expiry(
        &self,
        who: impl Into<Actor<'_>>,
        id: ApplicationId,
        prefix: Option<&str>,
        at: Option<Wall>,
    ) -> RegistrarResult<StoredApplication> {
        let who = who.into();
        let turn = self.changes.turn().await;
        let now = self.changes.now().wall;
        if at.is_some_and(|at| at <= now) {
            return Err(RegistrarError::BadExpiry);
        }
        let application = self.show(id).await?;
        let digests = match prefix {
            Some(prefix) => vec![one_key(&application, prefix)?],
            None => all_in_force(&application, now, at)?,
        };
        Ok(turn
            .make(who, id, ChangeKind::SetExpiry { digests, at })
            .await?)
    }

    /// Changes the name and description of an application.
    pub async fn describe(
        &self,
        who: impl Into<Actor<'_>>,
        id: ApplicationId,
        change: DescriptionChange,
    ) -> RegistrarResult<StoredApplication> {
        let who = who.into();
        let turn = self.changes.turn().await;
        let before = self.show(id).await?;
        let name = change.name.clone().unwrap_or(before.name);
        let description = change.over(before.description);
        check_text("name", Some(&name))?;
        description.check()?;
        Ok(turn
            .make(who, id, ChangeKind::Describe { name, description })
            .await?)
    }

    /// Closes an application: revokes its keys, and removes its owner and all fields that may contain personal data.
    pub async fn close(
        &self,
        who: impl Into<Actor<'_>>,
        id: ApplicationId,
    ) -> RegistrarResult<StoredApplication> {
        self.changes.change(who, id, ChangeKind::Close).await
    }

    /// Returns an application.
    pub async fn show(&self, id: ApplicationId) -> RegistrarResult<StoredApplication> {
        let found = self
            .changes
            .store
            .application(id, self.changes.now().wall.day())
            .await?;
        Ok(found.ok_or(StoreError::UnknownApplication(id))?)
    }

    /// The applications with these ids that exist and can be read, with the units granted for `day`.
    pub async fn find(
        &self,
        ids: Vec<ApplicationId>,
        day: Day,
    ) -> StoreResult<Vec<StoredApplication>> {
        Ok(self
            .changes
            .store
            .applications(ids, day)
            .await?
            .applications)
    }

    /// A page of applications.
    pub async fn list(
        &self,
        after: Option<ApplicationId>,
        most: usize,
    ) -> RegistrarResult<ApplicationPage> {
        let day = self.changes.now().wall.day();
        Ok(self
            .changes
            .store
            .page(after, most.clamp(1, LIST_PAGE), day)
            .await?)
    }

    /// Audit records, newest first, and the start of the next page.
    pub async fn audit(&self, ask: AuditQuery) -> RegistrarResult<(Vec<AuditRecord>, Option<u64>)> {
        let most = ask.limit.clamp(1, AUDIT_PAGE);
        let mut records = self
            .changes
            .store
            .audit(AuditQuery {
                limit: most + 1,
                ..ask
            })
            .await?;
        let is_last = records.len() <= most;
        records.truncate(most);
        let next = records.last().map(|last| last.number).filter(|_| !is_last);
        Ok((records, next))
    }

    /// The account of an application; `None` on a stopped system, or if none of the application's keys is in memory.
    pub async fn account(&self, id: ApplicationId) -> RegistrarResult<Option<Arc<Account>>> {
        Ok(self.changes.account_of(&self.show(id).await?))
    }

    /// Warnings about an application's limits that may be mistakes.
    pub fn limit_warnings(&self, stored: &StoredApplication) -> Vec<String> {
        let terms = self.changes.terms_of(&stored.tier, stored.own);
        let Some(limits) = terms.map(|terms| terms.limits) else {
            return Vec::new();
        };
        let small = limits.calendar.below_day(limits.day);
        small
            .map(|rule| format!("{}: {BELOW_DAY}", rule.name()))
            .collect()
    }

    /// Units that an application used today; `None` on a stopped system, where only the granted units are known.
    pub fn used_today(&self, stored: &StoredApplication) -> Option<u64> {
        let today = self.changes.now().wall.day();
        self.changes.serves().then(|| {
            self.changes
                .account_of(stored)
                .map_or(stored.granted, |account| account.used(today).into())
        })
    }

    /// The status of the minute and calendar limits of a stored application, with the units granted today. `None` if
    /// the tier is not configured. If no key of the application is in memory, all granted units count as used.
    pub fn current_use(&self, stored: &StoredApplication) -> Option<Vec<LimitStatus>> {
        let now = self.changes.now();
        if let Some(account) = self.changes.account_of(stored) {
            return Some(account.statuses(now));
        }
        let terms = self.changes.terms_of(&stored.tier, stored.own)?;
        Some(Account::new(stored, terms, now.wall.day()).statuses(now))
    }

    /// Whether keys of other forms are looked up.
    pub fn accepts_imported(&self) -> bool {
        self.form.accepts_imported()
    }
}

fn limits_remain(error: &RegistrarError) {
    tracing::warn!(%error, "temporary limits that have ended are still in force; the next attempt is in a minute");
}

/// Finds a key by its full text, its SHA-256, or a unique prefix.
fn one_key(application: &StoredApplication, prefix: &str) -> RegistrarResult<Digest> {
    let whole = [Some(Digest::of(prefix)), Digest::from_hex(prefix)];
    let is_named = |key: &&StoredKey| {
        whole.contains(&Some(key.digest)) || !prefix.is_empty() && key.shown.starts_with(prefix)
    };
    let meant: Vec<&StoredKey> = application.keys.iter().filter(is_named).collect();
    match meant.as_slice() {
        [only] => Ok(only.digest),
        several => Err(RegistrarError::NoSuchKey {
            application: application.id,
            prefix: shown_prefix(prefix).to_owned(),
            found: several.len(),
        }),
    }
}

/// The unexpired keys, if all of them may get the new expiry.
fn all_in_force(
    application: &StoredApplication,
    now: Wall,
    at: Option<Wall>,
) -> RegistrarResult<Vec<Digest>> {
    let keys = application.keys.iter();
    let keys: Vec<&StoredKey> = keys.filter(|key| key.is_active(now)).collect();
    match keys.as_slice() {
        [] => Err(RegistrarError::NoneInForce(application.id)),
        [_, _, ..] if keys.iter().any(|key| expires_before(key, at)) => {
            Err(RegistrarError::SeveralInForce(application.id, keys.len()))
        }
        all => Ok(all.iter().map(|key| key.digest).collect()),
    }
}

/// Whether the key expires before `at`; `None` is never.
fn expires_before(key: &StoredKey, at: Option<Wall>) -> bool {
    key.expires_at
        .is_some_and(|ends| at.is_none_or(|at| at > ends))
}
