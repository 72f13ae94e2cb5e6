//! New applications, by operators and by owners. Further keys of an application are created by `add_key` and `rotate`.

use crate::clock::Wall;
use crate::keys::{ApplicationId, OwnerId};
use crate::store::{ChangeKind, KeyAllowance, OwnLimits, Ownership};

use super::validation::{check_limits, check_text, check_url};
use super::{Actor, IssuedKey, Registrar, RegistrarError};

/// A new application.
#[derive(Clone, Debug)]
pub struct NewApplication {
    /// Its name.
    pub name: String,
    /// Its tier.
    pub tier: String,
    /// Limits of this application only.
    pub own: OwnLimits,
    /// Its website.
    pub url: Option<String>,
    /// How to reach the owner.
    pub contact: Option<String>,
    /// A remark.
    pub note: Option<String>,
    /// When its key expires.
    pub expires_at: Option<Wall>,
}

/// The properties of a new key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyDetails {
    /// The name that its owner gives it.
    pub name: Option<String>,
    /// When it expires.
    pub expires_at: Option<Wall>,
    /// The conditions for it, if an owner creates it.
    pub allowance: Option<KeyAllowance>,
}

impl Registrar {
    /// Creates an application with its first key.
    pub async fn create(&self, who: &str, new: NewApplication) -> Result<IssuedKey, RegistrarError> {
        self.create_with(Actor::Operator(who), new, None).await
    }

    /// Creates an application of an owner, who must not be suspended and may have `at_most` of them.
    pub async fn create_for(
        &self,
        owner: OwnerId,
        at_most: u32,
        new: NewApplication,
    ) -> Result<IssuedKey, RegistrarError> {
        self.create_with(Actor::Owner(owner), new, Some(Ownership { owner, at_most })).await
    }

    async fn create_with(
        &self,
        who: Actor<'_>,
        new: NewApplication,
        owner: Option<Ownership>,
    ) -> Result<IssuedKey, RegistrarError> {
        self.check(&new)?;
        let id = ApplicationId::mint()?;
        let now = self.clock.now().wall;
        let (secret, key) =
            self.mint(now, KeyDetails { expires_at: new.expires_at, ..KeyDetails::default() })?;
        let NewApplication { name, tier, own, url, contact, note, .. } = new;
        let what = ChangeKind::Create { name, tier, own, url, contact, note, key, owner };
        let application = self.change(who, id, what).await?;
        Ok(IssuedKey { application, key: secret })
    }

    fn check(&self, new: &NewApplication) -> Result<(), RegistrarError> {
        self.known_tier(&new.tier)?;
        check_text("name", Some(&new.name))?;
        check_url(new.url.as_deref())?;
        check_text("contact", new.contact.as_ref())?;
        check_text("note", new.note.as_ref())?;
        check_limits(new.own)
    }
}
