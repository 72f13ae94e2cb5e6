//! Administration of owners. An operator lists, suspends and deletes owners. Changes that affect the keys of their
//! applications take effect in this process immediately.

use std::sync::Arc;

use scoregate_base::{
    keys::OwnerId,
    limits::{LimitChanges, Scope},
};
use scoregate_store::{
    ChangeKind, MailKind, OwnerChange, OwnerChangeKind, OwnerQuery, OwnerRefusal, StoreError,
    StoredOwner, WebhookChange,
};

use crate::registry::{
    actor::Actor,
    key_changes::KeyChanges,
    registrar_error::{RegistrarError, RegistrarResult},
};

/// Maximum number of attempts to delete an account while applications are being created.
// This limits the loop, because an owner can create applications as fast as they are closed here.
const DELETE_TRIES: u32 = 3;
/// Maximum number of owners per page.
// This limits the memory for a page, whatever size is requested.
const OWNERS_PAGE: usize = 1_000;

/// Administers owners.
pub struct OwnerAdministration {
    changes: Arc<KeyChanges>,
}

impl OwnerAdministration {
    /// Administers the owners in the store of `changes`.
    pub fn new(changes: Arc<KeyChanges>) -> Self {
        Self { changes }
    }

    /// A page of owners, and the start of the next page.
    pub async fn list(
        &self,
        query: OwnerQuery,
    ) -> RegistrarResult<(Vec<StoredOwner>, Option<OwnerId>)> {
        let most = query.limit.clamp(1, OWNERS_PAGE);
        let mut owners = self
            .changes
            .store
            .owners(OwnerQuery {
                // One extra owner is read to find out whether another page follows.
                limit: most + 1,
                ..query
            })
            .await?;
        let is_last = owners.len() <= most;
        owners.truncate(most);
        let next = owners.last().map(|last| last.id).filter(|_| !is_last);
        Ok((owners, next))
    }

    /// An owner.
    pub async fn show(&self, id: OwnerId) -> RegistrarResult<StoredOwner> {
        let found = self.changes.store.owner(id).await?;
        Ok(found.ok_or(StoreError::Owner(OwnerRefusal::Unknown(id)))?)
    }

    /// Suspends an owner, ends all of the owner's sessions, and revokes all keys of the owner's applications. The call can be
    /// repeated after a failure.
    pub async fn suspend(&self, who: &str, id: OwnerId) -> RegistrarResult<StoredOwner> {
        // The owner is suspended first, so that they cannot create an application that the loop would miss.
        let owner = self.change(who, id, OwnerChangeKind::Suspend).await?;
        for application in &owner.applications {
            self.changes
                .change(who, *application, ChangeKind::RevokeAll)
                .await?;
        }
        Ok(owner)
    }

    /// Ends a suspension. The revoked keys remain revoked.
    pub async fn resume(&self, who: &str, id: OwnerId) -> RegistrarResult<StoredOwner> {
        self.change(who, id, OwnerChangeKind::Resume).await
    }

    /// Sets the tier of an owner's present and future applications. If `tier` is `None`, future applications get the
    /// default tier, and existing applications keep their tier. The call can be repeated after a failure.
    pub async fn set_tier(
        &self,
        who: &str,
        id: OwnerId,
        tier: Option<String>,
    ) -> RegistrarResult<StoredOwner> {
        if let Some(tier) = &tier {
            self.changes.check_tier(tier)?;
        }
        // The tier of future applications is set first, so that an application created in the meantime gets it.
        let owner = self
            .change(who, id, OwnerChangeKind::SetTier(tier.clone()))
            .await?;
        if let Some(tier) = tier {
            for application in &owner.applications {
                self.changes
                    .change(
                        who,
                        *application,
                        ChangeKind::SetTier { tier: tier.clone() },
                    )
                    .await?;
            }
        }
        Ok(owner)
    }

    /// Changes the limits of an owner's present and future applications. The call can be repeated after a failure.
    pub async fn set_limits(
        &self,
        who: &str,
        id: OwnerId,
        changes: LimitChanges,
    ) -> RegistrarResult<StoredOwner> {
        changes.check(Scope::Owner)?;
        // The limits of future applications are set first, so that an application created in the meantime gets them.
        let owner = self
            .change(who, id, OwnerChangeKind::SetLimits(changes))
            .await?;
        for application in &owner.applications {
            self.changes
                .change(who, *application, ChangeKind::SetOwnerLimits(owner.own))
                .await?;
        }
        Ok(owner)
    }

    /// Sets the kinds of notices that an owner gets, on behalf of the owner.
    pub async fn set_notices(
        &self,
        id: OwnerId,
        kinds: Vec<MailKind>,
    ) -> RegistrarResult<StoredOwner> {
        self.change(id, id, OwnerChangeKind::SetNotices(kinds))
            .await
    }

    /// Changes a webhook on behalf of its owner.
    pub async fn change_webhook(
        &self,
        owner: OwnerId,
        id: String,
        change: WebhookChange,
    ) -> RegistrarResult<()> {
        self.change(owner, owner, OwnerChangeKind::Webhook { id, change })
            .await
            .map(drop)
    }

    /// Closes all applications of an owner and deletes the account. The call can be repeated after a failure. Owners
    /// may delete their own accounts.
    pub async fn delete(
        &self,
        who: impl Into<Actor<'_>>,
        id: OwnerId,
    ) -> RegistrarResult<StoredOwner> {
        let who = who.into();
        let mut tries = 1;
        loop {
            for application in self.show(id).await?.applications {
                self.changes
                    .change(who, application, ChangeKind::Close)
                    .await?;
            }
            let what = OwnerChangeKind::Delete {
                in_own_name: who.owner().is_some(),
            };
            match self.change(who, id, what).await {
                // An application was created in the meantime.
                Err(RegistrarError::Store(StoreError::Owner(OwnerRefusal::HasApplications(_))))
                    if tries < DELETE_TRIES =>
                {
                    tries += 1;
                }
                deleted => return deleted,
            }
        }
    }

    async fn change(
        &self,
        who: impl Into<Actor<'_>>,
        owner: OwnerId,
        what: OwnerChangeKind,
    ) -> RegistrarResult<StoredOwner> {
        let change = OwnerChange {
            at: self.changes.now().wall,
            who: who.into().name(),
            owner,
            what,
        };
        Ok(self
            .changes
            .measured(self.changes.store.change_owner(change))
            .await?)
    }
}
