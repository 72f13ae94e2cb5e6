//! Keeps the key directory in sync with the store: loads all applications at startup, then applies changes made
//! elsewhere and tier changes. Also stores the last use of each key.

use std::{
    collections::{BTreeSet, HashSet},
    io,
    pin::pin,
    sync::Arc,
};

use futures_util::{StreamExt as _, TryStreamExt as _};

use crate::{
    accounts::{CATCH_UP_TIMEOUT, KeyDirectory, TermsByTier},
    instruments::StoreWork,
};
use scoregate_base::{clock::Day, keys::Digest};
use scoregate_store::{
    ApplicationPage, CopiedReading, FeedPosition, Ledger as _, LocalFile, Store, StoreError,
    StoreResult,
};

use crate::registry::key_changes::{ChangeTurn, KeyChanges};

/// Number of changed applications that are read at a time.
// This limits the memory that one read uses after a long feed outage.
const CHANGES: usize = 500;
/// Number of key uses that are stored in one write. Leases wait for the write, which may change a page of the file for
/// each use.
const USES: usize = 100;

/// Keeps the key directory of a running server.
pub struct DirectoryKeeper {
    store: Store,
    changes: Arc<KeyChanges>,
    key_directory: Arc<KeyDirectory>,
    /// Locked before a [`ChangeTurn`] is taken.
    progress: tokio::sync::Mutex<FeedProgress>,
}

/// The position up to which changes made elsewhere are applied.
#[derive(Debug, Default)]
struct FeedProgress {
    position: FeedPosition,
    /// Whether all applications were read from the store. Until then, there is no position to continue from.
    is_loaded: bool,
    is_failing: bool,
}

/// The reason why new tiers and limits were rejected. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum AdoptError {
    /// Applications use a tier that would be removed.
    #[error("applications use the tier {}: keep it, or move them first with `scoregate keys set-tier`", .0.join(", "))]
    InUse(Vec<String>),
    /// The store could not list the tiers in use.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl DirectoryKeeper {
    /// Keeps `key_directory` in sync with the store that `changes` writes to. `changes` itself applies the changes made by this process to the directory.
    pub fn new(changes: Arc<KeyChanges>, key_directory: Arc<KeyDirectory>) -> Self {
        let store = changes.store.clone();
        let progress = tokio::sync::Mutex::default();
        Self {
            store,
            changes,
            key_directory,
            progress,
        }
    }

    /// Loads all applications into the key directory. Unusable records are skipped, counted and logged. They never
    /// prevent a start.
    pub async fn load(&self) -> StoreResult<()> {
        self.apply_changes(&mut *self.progress.lock().await).await
    }

    /// Loads the key directory from a local copy, because the store is unreachable.
    pub async fn load_copy(&self, local: &LocalFile, copy: &CopiedReading) -> io::Result<()> {
        let turn = self.changes.turn().await;
        // An attempt to load the store may have failed midway, and the copy may belong to another data set.
        self.key_directory.clear();
        let read_at = copy.at;
        let mut skipped = 0;
        local.read_copy(|page| skipped += turn.apply_page(page, read_at.day()))?;
        self.changes.instruments.unreadable_records(skipped);
        self.key_directory
            .freshness
            .loaded_from_copy(read_at, self.changes.clock.now());
        turn.count_keys();
        self.changes.instruments.shared.serves_local_copy(true);
        self.changes.instruments.ledger_unreachable(true);
        Ok(())
    }

    /// Applies changes that other gateways and commands have made since the last call. Only the first of consecutive
    /// failures is logged. The next call continues at the same position.
    pub async fn follow_changes(&self) {
        // The lock is held for the whole read. Otherwise, the slower of two concurrent reads would set the position back.
        let mut progress = self.progress.lock().await;
        match self.apply_in_time(&mut progress).await {
            Ok(()) => {
                if std::mem::take(&mut progress.is_failing) {
                    tracing::info!("change feed of the store reachable again");
                }
            }
            Err(error) => {
                if !std::mem::replace(&mut progress.is_failing, true) {
                    tracing::error!(%error, "change feed of the store unreachable; changes made elsewhere are not applied");
                }
            }
        }
        drop(progress);
        let age = self.key_directory.freshness.age(self.changes.clock.now());
        self.changes.instruments.shared.changes_age(age);
    }

    /// Applies changes. A late attempt counts as failed from its deadline until it ends.
    async fn apply_in_time(&self, progress: &mut FeedProgress) -> StoreResult<()> {
        let clock = &self.changes.clock;
        let began = clock.now();
        let mut applying = pin!(self.apply_changes(progress));
        if let Ok(applied) = clock.within(CATCH_UP_TIMEOUT, &mut applying).await {
            return applied;
        }
        // The reading continues, because its changes are needed. Only requests stop waiting for it.
        self.key_directory.freshness.attempted(began, false);
        applying.await
    }

    /// Waits for a hint of a change made elsewhere. If the store sends no hints, it waits forever.
    pub async fn changed_elsewhere(&self) {
        self.store.changed().await;
    }

    /// Changes tiers and limits of all applications while requests are served. Either all changes apply or none. A tier
    /// that applications use cannot be removed.
    pub async fn adopt(&self, terms: TermsByTier) -> Result<(), AdoptError> {
        // Locked before the turn is taken, in the same order as when the feed is read, to avoid a deadlock.
        let mut progress = self.progress.lock().await;
        let turn = self.changes.turn().await;
        // The tiers are checked during the turn, so that no concurrent change by this process can move an application
        // to a removed tier.
        let lost = self.removed_tiers_in_use(&terms).await?;
        if !lost.is_empty() {
            return Err(AdoptError::InUse(lost.into_iter().collect()));
        }
        let before = turn.replace_terms(Arc::new(terms));
        if let Err(error) = self.load_from_start(&turn, &mut progress).await {
            turn.replace_terms(before);
            // The applications changed so far are restored. If the store fails again, only a restart helps, and the
            // error is logged.
            if let Err(error) = self.load_from_start(&turn, &mut progress).await {
                tracing::error!(%error, "some applications still use the rejected tier settings");
            }
            return Err(error.into());
        }
        Ok(())
    }

    /// Stores key uses since the last call in small writes. Pauses after each write for `pauses` times its duration, so that the store is available for leases most of the time. Uses that cannot be stored
    /// are kept for the next call.
    pub async fn store_uses(&self, pauses: u32) {
        let mut last = None;
        loop {
            let uses = self.key_directory.take_used(last, USES);
            let Some(newest) = uses.last() else { return };
            last = Some(*newest);
            let started = self.changes.clock.mono();
            let storing = self.store.record_uses(uses.clone());
            if let Err(error) = self
                .changes
                .instruments
                .measured(&self.changes.clock, StoreWork::Uses, storing)
                .await
            {
                tracing::warn!(%error, "last use of keys could not be recorded");
                self.key_directory.put_used_back(uses);
                return;
            }
            if pauses > 0 {
                self.changes
                    .clock
                    .sleep(self.changes.clock.mono().since(started) * pauses)
                    .await;
            }
        }
    }

    /// Tiers in use that would be removed.
    async fn removed_tiers_in_use(&self, terms: &TermsByTier) -> StoreResult<BTreeSet<String>> {
        let mut lost = BTreeSet::new();
        let mut pages = self.store.all(self.changes.clock.now().wall.day());
        while let Some(page) = pages.try_next().await? {
            // A tier that was already unknown does not count, because its keys are refused both before and after the
            // change.
            lost.extend(
                page.applications
                    .into_iter()
                    .map(|application| application.tier)
                    .filter(|tier| {
                        self.changes.has_tier(tier) && terms.names().all(|name| name != tier)
                    }),
            );
        }
        Ok(lost)
    }

    async fn apply_changes(&self, progress: &mut FeedProgress) -> StoreResult<()> {
        let turn = self.changes.turn().await;
        // The time is taken before the feed is read, because a read may miss changes that are made while it runs.
        let began = self.changes.clock.now();
        let applied = if progress.is_loaded {
            self.apply_after(&turn, progress).await
        } else {
            self.load_whole(&turn, progress).await
        };
        if let Some(copy) = &self.changes.copy
            && let Ok(()) = &applied
        {
            copy.is_complete_to(&progress.position, began.wall);
        }
        // The flag is read before `attempted` clears it.
        let was_copied = self.key_directory.freshness.is_copied();
        self.key_directory
            .freshness
            .attempted(began, applied.is_ok());
        if was_copied && applied.is_ok() {
            self.changes.instruments.shared.serves_local_copy(false);
            self.changes.instruments.ledger_unreachable(false);
            tracing::info!(
                "shared store reachable; all keys were read from it, and units are leased again"
            );
        }
        applied
    }

    async fn load_whole(
        &self,
        turn: &ChangeTurn<'_>,
        progress: &mut FeedProgress,
    ) -> StoreResult<()> {
        progress.position = self.store.position().await?;
        // The clock of a shared store determines the day, so it is read before any balance of the day is opened.
        self.apply_after(turn, progress).await?;
        self.load_from_start(turn, progress).await?;
        progress.is_loaded = true;
        Ok(())
    }

    async fn apply_after(
        &self,
        turn: &ChangeTurn<'_>,
        progress: &mut FeedProgress,
    ) -> StoreResult<()> {
        loop {
            let sent = self.changes.clock.mono();
            let changed = self
                .store
                .changed_after(progress.position.clone(), CHANGES)
                .await?;
            // All gateways of a shared store follow its clock.
            if let Some(offset) = changed
                .clock
                .and_then(|reference| self.changes.clock.follow(reference, sent))
            {
                self.changes.instruments.shared.clock_offset.set(offset);
            }
            if changed.requires_reload(&progress.position) {
                let from = &progress.position;
                let to = &changed.reached;
                tracing::warn!(%from, %to, "change feed restarted; all applications are read again");
                return self.load_from_start(turn, progress).await;
            }
            let is_partial = changed.is_partial();
            if !changed.applications.is_empty() {
                let day = self.current_day().await?;
                let page = self.store.applications(changed.applications, day).await?;
                turn.apply_page(&page, day);
                if let Some(copy) = &self.changes.copy {
                    copy.list(&page.applications);
                }
                turn.count_keys();
            }
            progress.position = changed.reached;
            if !is_partial {
                return Ok(());
            }
        }
    }

    async fn load_from_start(
        &self,
        turn: &ChangeTurn<'_>,
        progress: &mut FeedProgress,
    ) -> StoreResult<()> {
        // The position is read before the first page, so that no later change is missed.
        let start = self.store.position().await?;
        self.load_all(turn).await?;
        if let Some(copy) = &self.changes.copy {
            copy.rewrite();
        }
        progress.position = start;
        Ok(())
    }

    /// Loads all applications. Keys that are no longer stored are revoked in memory.
    async fn load_all(&self, turn: &ChangeTurn<'_>) -> StoreResult<()> {
        let day = self.current_day().await?;
        let mut skipped = 0;
        // At the start, no key is known and none has to be revoked, so the set of all digests is not built.
        let mut stored = (!self.key_directory.is_empty()).then(HashSet::new);
        let mut pages = pin!(self.store.all(day).peekable());
        while let Some(page) = pages.next().await {
            let page = page?;
            // The next page is read while this page is applied.
            _ = futures_util::poll!(pages.as_mut().peek());
            skipped += turn.apply_page(&page, day);
            if let Some(stored) = &mut stored {
                stored.extend(digests(&page));
            }
        }
        if let Some(stored) = stored {
            self.key_directory.revoke_all_except(&stored);
        }
        self.changes.instruments.unreadable_records(skipped);
        turn.count_keys();
        Ok(())
    }

    /// The current day. If the clock was set back, the day of the ledger stays in force, so no day is reopened.
    async fn current_day(&self) -> StoreResult<Day> {
        let today = self.changes.clock.now().wall.day();
        Ok(self
            .store
            .day()
            .await?
            .map_or(today, |current| current.max(today)))
    }
}

fn digests(page: &ApplicationPage) -> impl Iterator<Item = Digest> {
    page.applications
        .iter()
        .flat_map(|application| application.keys.iter().map(|key| key.digest))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tempfile::TempDir;

    use crate::registry::directory_keeper::*;
    use crate::registry::new_application::KeyDetails;
    use crate::registry::test_gateway::{ChangingGateway, station};
    use scoregate_base::clock::Wall;

    #[tokio::test]
    async fn no_request_waits_for_a_reading_that_is_late() {
        let directory = TempDir::new().unwrap();
        let data = TempDir::new().unwrap();
        let gateway = ChangingGateway::with_copy(&directory, &data);
        gateway.keeper.load().await.unwrap();
        let clock = &gateway.keeper.changes.clock;
        let freshness = &gateway.keys.freshness;
        gateway.manual.advance(Duration::from_secs(1));
        // A change whose write hangs.
        let turn = gateway.keeper.changes.turn().await;
        let mut reading = Box::pin(gateway.keeper.follow_changes());
        assert!(futures_util::poll!(&mut reading).is_pending());
        gateway.manual.advance(CATCH_UP_TIMEOUT);
        assert!(futures_util::poll!(&mut reading).is_pending());
        gateway.manual.advance(Duration::from_mins(1));
        let mut request = Box::pin(freshness.ensure(clock, clock.now()));
        assert!(futures_util::poll!(&mut request).is_ready());
        drop(turn);
        reading.await;
        assert!(freshness.is_current(clock.now()));
    }

    #[tokio::test]
    async fn a_gateway_follows_the_changes_of_another_one() {
        let directory = TempDir::new().unwrap();
        let one = ChangingGateway::loaded(&directory).await;
        let other = ChangingGateway::loaded(&directory).await;
        let keys = &other.keys;
        let issued = one.registrar.create("a test", station()).await.unwrap();
        let digest = Digest::of(issued.key.expose());
        assert!(keys.find(&digest).is_none());
        other.keeper.follow_changes().await;
        let found = keys.find(&digest).unwrap();
        assert_eq!(
            (&*found.account.terms().tier_name, found.expires_at),
            ("pro", None)
        );
        let rotated = one
            .registrar
            .rotate(
                "a test",
                issued.application.id,
                Duration::ZERO,
                KeyDetails::default(),
            )
            .await
            .unwrap();
        one.registrar
            .set_tier("a test", issued.application.id, "free")
            .await
            .unwrap();
        other.keeper.follow_changes().await;
        assert!(keys.find(&digest).unwrap().expires_at.is_some());
        let newer = keys.find(&Digest::of(rotated.key.expose())).unwrap();
        assert_eq!(
            (&*newer.account.terms().tier_name, newer.expires_at),
            ("free", None)
        );
        assert!(
            Arc::ptr_eq(&newer.account, &found.account),
            "its units are kept"
        );
    }

    #[tokio::test]
    async fn after_a_restore_keys_that_are_not_stored_are_revoked() {
        let directory = TempDir::new().unwrap();
        let restored = TempDir::new().unwrap();
        let mut one = ChangingGateway::loaded(&directory).await;
        let issued = one.registrar.create("a test", station()).await.unwrap();
        one.keeper.follow_changes().await;
        let backup = ChangingGateway::loaded(&restored).await.store;
        one.keeper.store = backup;
        one.keeper.follow_changes().await;
        let found = one.keys.find(&Digest::of(issued.key.expose())).unwrap();
        assert_eq!(found.expires_at, Some(Wall::default()));
    }
}
