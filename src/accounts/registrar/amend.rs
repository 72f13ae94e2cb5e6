//! Changes to applications that are there already: whoever says less changes less.
//!
//! What is read to be changed is read and written in one turn, so that nothing comes between. Not for: new keys.

use crate::clock::Wall;
use crate::keys::{ApplicationId, Digest, shown_prefix};
use crate::store::{ChangeKind, OwnLimits, StoreError, StoredApplication, StoredKey};

use super::validation::{check_limits, check_text};
use super::{Registrar, RegistrarError};

/// What is wished for something that may be absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum FieldChange<T> {
    /// That it stays as it is.
    #[default]
    Keep,
    /// That it goes.
    Remove,
    /// That it becomes this.
    Set(T),
}

impl<T> FieldChange<T> {
    /// Whether it stays as it is.
    pub const fn keeps(&self) -> bool {
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

impl Registrar {
    /// Revokes all keys of an application, or the one that begins with `prefix`.
    pub async fn revoke(
        &self,
        who: &str,
        id: ApplicationId,
        prefix: Option<&str>,
    ) -> Result<StoredApplication, RegistrarError> {
        let Some(prefix) = prefix else { return self.change(who, id, ChangeKind::RevokeAll).await };
        let digest = match self.show(id).await {
            // A key that this process let in before its record was spoilt still comes in: its whole name ends it.
            Err(RegistrarError::Store(StoreError::Damaged { .. })) => {
                Digest::from_hex(prefix).unwrap_or_else(|| Digest::of(prefix))
            }
            application => one_key(&application?, prefix)?,
        };
        self.change(who, id, ChangeKind::RevokeKey { digest }).await
    }

    /// Moves an application to another tier. What it used today stays used.
    pub async fn set_tier(
        &self,
        who: &str,
        id: ApplicationId,
        tier: &str,
    ) -> Result<StoredApplication, RegistrarError> {
        self.known_tier(tier)?;
        self.change(who, id, ChangeKind::SetTier { tier: tier.to_owned() }).await
    }

    /// Gives an application limits of its own, or its tier's back. What it used today stays used.
    pub async fn set_limits(
        &self,
        who: &str,
        id: ApplicationId,
        minute: FieldChange<u32>,
        day: FieldChange<u32>,
    ) -> Result<StoredApplication, RegistrarError> {
        let turn = self.turn.lock().await;
        // Where both are said nothing has to be read, so that a record whose limits cannot be read is mended by that.
        let reads = minute.keeps() || day.keeps();
        let before = if reads { self.show(id).await?.own } else { OwnLimits::default() };
        let own = OwnLimits { minute: minute.over(before.minute), day: day.over(before.day) };
        check_limits(own)?;
        let application = self.make(who, id, ChangeKind::SetLimits { own }).await?;
        drop(turn);
        Ok(application)
    }

    /// Gives the key that begins with `prefix` another end, or every key that has not ended yet. Where there are several
    /// of those, none ends later than before: one that a rotation is about to end would be back for good. A key that has
    /// ended is brought back by its own name only; one that was revoked, never.
    pub async fn set_expiry(
        &self,
        who: &str,
        id: ApplicationId,
        prefix: Option<&str>,
        at: Option<Wall>,
    ) -> Result<StoredApplication, RegistrarError> {
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

    /// Gives an application other words for people.
    pub async fn describe(
        &self,
        who: &str,
        id: ApplicationId,
        name: Option<String>,
        contact: FieldChange<String>,
        note: FieldChange<String>,
    ) -> Result<StoredApplication, RegistrarError> {
        let turn = self.turn.lock().await;
        let before = self.show(id).await?;
        let name = name.unwrap_or(before.name);
        let (contact, note) = (contact.over(before.contact), note.over(before.note));
        check_text("name", Some(&name))?;
        check_text("contact", contact.as_ref())?;
        check_text("note", note.as_ref())?;
        let application = self.make(who, id, ChangeKind::Describe { name, contact, note }).await?;
        drop(turn);
        Ok(application)
    }
}

/// The one key that is meant. A whole key names itself, and so does its SHA-256; a beginning names a key if only one
/// begins like that.
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

/// The keys that have not ended, if all of them can be given that end.
fn all_in_force(
    application: &StoredApplication,
    now: Wall,
    at: Option<Wall>,
) -> Result<Vec<Digest>, RegistrarError> {
    let goes_on = |key: &&StoredKey| key.revoked_at.is_none() && key.expires_at.is_none_or(|ends| ends > now);
    let keys: Vec<&StoredKey> = application.keys.iter().filter(goes_on).collect();
    let is_put_off = |key: &&StoredKey| key.expires_at.is_some_and(|ends| at.is_none_or(|at| at > ends));
    match keys.as_slice() {
        [] => Err(RegistrarError::NoneInForce(application.id)),
        [_, _, ..] if keys.iter().any(is_put_off) => {
            Err(RegistrarError::SeveralInForce(application.id, keys.len()))
        }
        all => Ok(all.iter().map(|key| key.digest).collect()),
    }
}
