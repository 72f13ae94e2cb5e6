//! Other tiers and limits than before, for every application at once, while requests go on.
//!
//! All or nothing: a tier that applications are on cannot vanish. Not for: the tier of one application (`amend`).

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::store::StoreError;

use super::super::terms::TermsByTier;
use super::{PAGE, Registrar};

/// Why other terms were not adopted. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum AdoptError {
    /// Applications are on a tier that would be gone.
    #[error("applications use the tier {}: keep it, or move them first with `scoregate keys set-tier`", .0.join(", "))]
    InUse(Vec<String>),
    /// The store could not say who is on which.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Registrar {
    /// Puts other terms into force.
    pub async fn adopt(&self, terms: TermsByTier) -> Result<(), AdoptError> {
        let _turn = self.turn.lock().await;
        let lost = self.on_tiers_besides(&terms).await?;
        if !lost.is_empty() {
            return Err(AdoptError::InUse(lost.into_iter().collect()));
        }
        let before = self.terms.swap(Arc::new(terms));
        if let Err(error) = self.load().await {
            self.terms.store(before);
            // Those that were read already go back. If the store fails again, a restart is what helps, and the log says
            // what failed.
            if let Err(again) = self.load().await {
                tracing::error!(%again, "some applications keep their previous tier settings");
            }
            return Err(error.into());
        }
        Ok(())
    }

    /// The tiers that applications are on now, and that would be gone.
    async fn on_tiers_besides(&self, terms: &TermsByTier) -> Result<BTreeSet<String>, StoreError> {
        let day = self.clock.now().wall.day();
        let (mut lost, mut after) = (BTreeSet::new(), None);
        loop {
            let page = self.store.page(after, PAGE, day).await?;
            for application in page.applications {
                // One whose tier was gone before is refused before and after.
                let knows = |terms: &TermsByTier| terms.names().any(|name| name == application.tier);
                if knows(&self.terms.load()) && !knows(terms) {
                    lost.insert(application.tier);
                }
            }
            after = page.next;
            if after.is_none() {
                return Ok(lost);
            }
        }
    }
}
