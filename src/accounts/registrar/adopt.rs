//! Changes tiers and limits for all applications at once while requests are served.
//!
//! All or nothing: a tier that applications use cannot be removed. The tier of a single application is changed in
//! `amend`.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::TryStreamExt as _;

use crate::store::StoreError;

use super::super::terms::TermsByTier;
use super::Registrar;

/// Why new terms were rejected. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum AdoptError {
    /// Applications use a tier that would be removed.
    #[error("applications use the tier {}: keep it, or move them first with `scoregate keys set-tier`", .0.join(", "))]
    InUse(Vec<String>),
    /// The store could not list the tiers in use.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Registrar {
    /// Applies new terms.
    pub async fn adopt(&self, terms: TermsByTier) -> Result<(), AdoptError> {
        let mut progress = self.turn.lock().await;
        let lost = self.removed_tiers_in_use(&terms).await?;
        if !lost.is_empty() {
            return Err(AdoptError::InUse(lost.into_iter().collect()));
        }
        let before = self.terms.swap(Arc::new(terms));
        if let Err(error) = self.load_from_start(&mut progress).await {
            self.terms.store(before);
            // Applications changed so far are changed back. If the store fails again, only a restart helps, and the
            // log names the error.
            if let Err(error) = self.load_from_start(&mut progress).await {
                tracing::error!(%error, "some applications keep their previous tier settings");
            }
            return Err(error.into());
        }
        Ok(())
    }

    /// Tiers in use that would be removed.
    async fn removed_tiers_in_use(&self, terms: &TermsByTier) -> Result<BTreeSet<String>, StoreError> {
        let day = self.clock.now().wall.day();
        let mut lost = BTreeSet::new();
        let mut pages = self.store.all(day);
        while let Some(page) = pages.try_next().await? {
            for application in page.applications {
                // A tier that was already unknown does not count: its keys are refused before and after.
                let knows = |terms: &TermsByTier| terms.names().any(|name| name == application.tier);
                if knows(&self.terms.load()) && !knows(terms) {
                    lost.insert(application.tier);
                }
            }
        }
        Ok(lost)
    }
}
