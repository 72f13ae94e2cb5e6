//! Makes changes to applications, one at a time: first durably, then in this process. Changes therefore take effect in
//! the order in which they become durable.

use std::sync::Arc;

use arc_swap::ArcSwap;
use tokio::sync::MutexGuard;

use crate::{
    accounts::{Account, KeyDirectory, Terms, TermsByTier},
    instruments::{StoreInstruments, StoreWork},
};
use scoregate_base::{
    clock::{Clock, Day, Now, Wall},
    keys::ApplicationId,
    limits::OwnLimits,
};
use scoregate_store::{
    ApplicationPage, ChangeKind, NoticeTier, OwnerNotice, Store, StoreChange, StoreResult,
    StoredApplication,
};

use crate::registry::{
    actor::Actor,
    local_copy_writer::LocalCopyWriter,
    notice_texts::NoticeTexts,
    registrar_error::{RegistrarError, RegistrarResult},
};

/// Changes the store and the tiers and keys of this process. A running server also has a key directory and a local copy of it.
pub struct KeyChanges {
    pub(crate) store: Store,
    /// `None` on a stopped system, which serves no requests.
    key_directory: Option<Arc<KeyDirectory>>,
    pub(crate) copy: Option<Arc<LocalCopyWriter>>,
    terms: ArcSwap<TermsByTier>,
    // The lock is held from the write to the store until the change is in force, so that the store and this process
    // apply all changes in the same order.
    turn: tokio::sync::Mutex<()>,
    /// The texts of notices to owners, if notices are sent.
    pub(crate) notices: Option<NoticeTexts>,
    pub(crate) clock: Clock,
    pub(crate) instruments: Arc<StoreInstruments>,
}

/// The exclusive right to change the tiers and keys in force.
pub struct ChangeTurn<'c> {
    pub changes: &'c KeyChanges,
    _turn: MutexGuard<'c, ()>,
}

impl KeyChanges {
    /// Makes changes in `store`, then in `key_directory` if there is one, and lists them for the local copy of the
    /// directory.
    pub fn new(
        store: Store,
        key_directory: Option<Arc<KeyDirectory>>,
        copy: Option<Arc<LocalCopyWriter>>,
        terms: TermsByTier,
        clock: Clock,
        instruments: Arc<StoreInstruments>,
    ) -> Self {
        let terms = ArcSwap::from_pointee(terms);
        let turn = tokio::sync::Mutex::default();
        Self {
            store,
            key_directory,
            copy,
            terms,
            turn,
            notices: None,
            clock,
            instruments,
        }
    }

    /// Sends notices of changes to owners.
    #[must_use]
    pub fn telling(self, notices: Option<NoticeTexts>) -> Self {
        Self { notices, ..self }
    }

    pub(crate) fn notice_tiers(&self) -> Vec<NoticeTier> {
        self.terms.load().notice_tiers()
    }

    pub(crate) async fn turn(&self) -> ChangeTurn<'_> {
        ChangeTurn {
            changes: self,
            _turn: self.turn.lock().await,
        }
    }

    pub(crate) async fn change(
        &self,
        who: impl Into<Actor<'_>>,
        id: ApplicationId,
        what: ChangeKind,
    ) -> RegistrarResult<StoredApplication> {
        Ok(self.turn().await.make(who.into(), id, what).await?)
    }

    pub(crate) fn now(&self) -> Now {
        self.clock.now()
    }

    /// Runs a change in the store and records the duration.
    pub(crate) async fn measured<T>(
        &self,
        changing: impl Future<Output = StoreResult<T>>,
    ) -> StoreResult<T> {
        self.instruments
            .measured(&self.clock, StoreWork::Change, changing)
            .await
    }

    /// Whether this process serves requests.
    pub(crate) const fn serves(&self) -> bool {
        self.key_directory.is_some()
    }

    /// The account of an application; `None` on a stopped system, or if none of the application's keys is in memory.
    pub(crate) fn account_of(&self, stored: &StoredApplication) -> Option<Arc<Account>> {
        let key_directory = self.key_directory.as_ref()?;
        stored
            .keys
            .iter()
            .find_map(|key| key_directory.find(&key.digest))
            .map(|found| found.account)
    }

    /// The terms of an application; `None` if its tier is not configured.
    pub(crate) fn terms_of(&self, tier: &str, own: OwnLimits) -> Option<Arc<Terms>> {
        self.terms.load().of(tier, own)
    }

    pub(crate) fn check_tier(&self, tier: &str) -> RegistrarResult<()> {
        if self.has_tier(tier) {
            return Ok(());
        }
        Err(RegistrarError::UnknownTier {
            tier: tier.to_owned(),
            known: self.tiers(),
        })
    }

    pub(crate) fn has_tier(&self, tier: &str) -> bool {
        self.terms.load().names().any(|name| name == tier)
    }

    /// The names of the tiers.
    pub(crate) fn tiers(&self) -> String {
        self.terms.load().names().collect::<Vec<_>>().join(", ")
    }
}

impl ChangeTurn<'_> {
    pub fn now(&self) -> Wall {
        self.changes.now().wall
    }

    /// Makes a change.
    pub async fn make(
        &self,
        who: Actor<'_>,
        id: ApplicationId,
        what: ChangeKind,
    ) -> StoreResult<StoredApplication> {
        let KeyChanges {
            store,
            key_directory,
            copy,
            terms,
            ..
        } = self.changes;
        let at = self.now();
        // The owner of a new application is checked when the application is created.
        let owner = who
            .owner()
            .filter(|_| !matches!(what, ChangeKind::Create { .. }));
        let texts = self.changes.notices.as_ref();
        let notice = texts.and_then(|texts| texts.of_change(who, id, &what, at));
        let notice = notice.map(|mail| OwnerNotice {
            mail,
            tiers: self.changes.notice_tiers(),
        });
        let change = StoreChange {
            at,
            who: who.name(),
            owner,
            application: id,
            what,
            notice,
        };
        // The change becomes durable first, because a key that this process accepts must not disappear in a crash.
        let application = self.changes.measured(store.change(change)).await?;
        if let Some(key_directory) = key_directory {
            key_directory.apply(&application, &terms.load(), at.day());
        }
        if let Some(copy) = copy {
            copy.list(std::slice::from_ref(&application));
        }
        self.count_keys();
        Ok(application)
    }

    /// Applies stored applications. Returns the number of unusable records.
    pub fn apply_page(&self, page: &ApplicationPage, day: Day) -> usize {
        let Some(key_directory) = &self.changes.key_directory else {
            return 0;
        };
        for reason in &page.skipped {
            tracing::error!(%reason, "skipped an unreadable record of the store");
        }
        let terms = self.changes.terms.load();
        let unusable = page.applications.iter().filter(|application| {
            let is_known = key_directory.apply(application, &terms, day);
            if !is_known {
                let id = application.id;
                let tier = &application.tier;
                tracing::error!(application = %id, ?tier, "application with an unknown tier; its keys are refused");
            } else if key_directory.freshness.is_copied() {
                // A local copy contains no balances, and the store's day was unknown when the copy was loaded.
                key_directory.reopen_unused(application, day);
            }
            !is_known
        });
        page.skipped.len() + unusable.count()
    }

    /// Replaces the terms and returns the previous ones. Applications that are applied from then on get the new terms.
    pub fn replace_terms(&self, terms: Arc<TermsByTier>) -> Arc<TermsByTier> {
        self.changes.terms.swap(terms)
    }

    pub fn count_keys(&self) {
        if let Some(key_directory) = &self.changes.key_directory {
            self.changes.instruments.keys(key_directory.len());
        }
    }
}
