//! Changes to existing applications. Fields that a request omits stay as they are.
//!
//! Reading and writing happen in one turn, so no other change comes between. New keys are created in `create`.

use crate::clock::Wall;
use crate::keys::{ApplicationId, Digest, shown_prefix};
use crate::store::{ChangeKind, OwnLimits, StoreError, StoredApplication, StoredKey};

use super::validation::{check_limits, check_text, check_url};
use super::{Actor, Registrar, RegistrarError};

/// A change of an optional field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FieldChange<T> {
    /// Leave it unchanged.
    #[default]
    Keep,
    /// Remove it.
    Remove,
    /// Set it.
    Set(T),
}

impl<T> FieldChange<T> {
    /// Whether the field stays unchanged.
    pub const fn is_unchanged(&self) -> bool {
        matches!(self, Self::Keep)
    }

    fn over(self, before: Option<T>) -> Option<T> {
        match self {
            Self::Keep => before,
            Self::Remove => None,
            Self::Set(value) => Some(value),
        }
    }
}

/// A change of the description of an application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DescriptionChange {
    /// The new name.
    pub name: Option<String>,
    /// The website.
    pub url: FieldChange<String>,
    /// How to reach the owner.
    pub contact: FieldChange<String>,
    /// A remark.
    pub note: FieldChange<String>,
}

impl DescriptionChange {
    /// Whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Registrar {
    /// Revokes all keys of an application, or the one that begins with `prefix`.
    pub async fn revoke(
        &self,
        who: impl Into<Actor<'_>>,
        id: ApplicationId,
        prefix: Option<&str>,
    ) -> Result<StoredApplication, RegistrarError> {
        let Some(prefix) = prefix else { return self.change(who, id, ChangeKind::RevokeAll).await };
        let digest = match self.show(id).await {
            // If the record was damaged after this process loaded the key, the key still works; its full name or
            // digest revokes it.
            Err(RegistrarError::Store(StoreError::Damaged { .. })) => {
                Digest::from_hex(prefix).unwrap_or_else(|| Digest::of(prefix))
            }
            application => one_key(&application?, prefix)?,
        };
        self.change(who, id, ChangeKind::RevokeKey { digest }).await
    }

    /// Moves an application to another tier. Units used today stay used.
    pub async fn set_tier(
        &self,
        who: &str,
        id: ApplicationId,
        tier: &str,
    ) -> Result<StoredApplication, RegistrarError> {
        self.known_tier(tier)?;
        self.change(who, id, ChangeKind::SetTier { tier: tier.to_owned() }).await
    }

    /// Sets limits for one application, or removes them. Units used today stay used.
    pub async fn set_limits(
        &self,
        who: &str,
        id: ApplicationId,
        minute: FieldChange<u32>,
        day: FieldChange<u32>,
    ) -> Result<StoredApplication, RegistrarError> {
        let turn = self.turn.lock().await;
        // If both limits are given nothing is read, so a record whose limits cannot be read can be repaired this way.
        let reads = minute.is_unchanged() || day.is_unchanged();
        let before = if reads { self.show(id).await?.own } else { OwnLimits::default() };
        let own = OwnLimits { minute: minute.over(before.minute), day: day.over(before.day) };
        check_limits(own)?;
        let application = self.make(who.into(), id, ChangeKind::SetLimits { own }).await?;
        drop(turn);
        Ok(application)
    }

    /// Sets the expiry of the key that begins with `prefix`, or of every key that has not expired. In the latter
    /// case, with several keys, none may expire later than before: a rotation may be about to retire one. An expired
    /// key is reactivated by its own name only; a revoked key never.
    pub async fn set_expiry(
        &self,
        who: impl Into<Actor<'_>>,
        id: ApplicationId,
        prefix: Option<&str>,
        at: Option<Wall>,
    ) -> Result<StoredApplication, RegistrarError> {
        let who = who.into();
        let turn = self.turn.lock().await;
        let now = self.clock.now().wall;
        if at.is_some_and(|at| at <= now) {
            return Err(RegistrarError::BadExpiry);
        }
        let application = self.show(id).await?;
        let digests = match prefix {
            Some(prefix) => vec![one_key(&application, prefix)?],
            None => all_in_force(&application, now, at)?,
        };
        let application = self.make(who, id, ChangeKind::SetExpiry { digests, at }).await?;
        drop(turn);
        Ok(application)
    }

    /// Sets display name, website, contact and note of an application.
    pub async fn describe(
        &self,
        who: impl Into<Actor<'_>>,
        id: ApplicationId,
        change: DescriptionChange,
    ) -> Result<StoredApplication, RegistrarError> {
        let who = who.into();
        let turn = self.turn.lock().await;
        let before = self.show(id).await?;
        let DescriptionChange { name, url, contact, note } = change;
        let (name, url) = (name.unwrap_or(before.name), url.over(before.url));
        let (contact, note) = (contact.over(before.contact), note.over(before.note));
        check_text("name", Some(&name))?;
        check_url(url.as_deref())?;
        check_text("contact", contact.as_ref())?;
        check_text("note", note.as_ref())?;
        let application = self.make(who, id, ChangeKind::Describe { name, url, contact, note }).await?;
        drop(turn);
        Ok(application)
    }

    /// Closes an application: revokes its keys and removes its owner and everything that can be personal data.
    pub async fn close(
        &self,
        who: impl Into<Actor<'_>>,
        id: ApplicationId,
    ) -> Result<StoredApplication, RegistrarError> {
        self.change(who, id, ChangeKind::Close).await
    }
}

/// Finds one key: by the whole key, by its SHA-256, or by a unique prefix.
fn one_key(application: &StoredApplication, prefix: &str) -> Result<Digest, RegistrarError> {
    let whole = [Some(Digest::of(prefix)), Digest::from_hex(prefix)];
    let begins = |key: &StoredKey| !prefix.is_empty() && key.shown.starts_with(prefix);
    let is_meant = |key: &&StoredKey| whole.contains(&Some(key.digest)) || begins(key);
    let meant: Vec<&StoredKey> = application.keys.iter().filter(is_meant).collect();
    match meant.as_slice() {
        [only] => Ok(only.digest),
        several => Err(RegistrarError::NoSuchKey {
            application: application.id,
            prefix: shown_prefix(prefix).to_owned(),
            found: several.len(),
        }),
    }
}

/// The keys that have not expired, if all of them may get the new expiry.
fn all_in_force(
    application: &StoredApplication,
    now: Wall,
    at: Option<Wall>,
) -> Result<Vec<Digest>, RegistrarError> {
    let keys: Vec<&StoredKey> = application.keys.iter().filter(|key| key.is_active(now)).collect();
    let is_put_off = |key: &&StoredKey| key.expires_at.is_some_and(|ends| at.is_none_or(|at| at > ends));
    match keys.as_slice() {
        [] => Err(RegistrarError::NoneInForce(application.id)),
        [_, _, ..] if keys.iter().any(is_put_off) => {
            Err(RegistrarError::SeveralInForce(application.id, keys.len()))
        }
        all => Ok(all.iter().map(|key| key.digest).collect()),
    }
}
