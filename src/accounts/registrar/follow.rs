//! Keeps the key directory equal to the store: all applications at the start, then changes by others.

use std::collections::HashSet;
use std::pin::pin;

use futures_util::StreamExt as _;

use crate::clock::Day;
use crate::keys::Digest;
use crate::store::{ApplicationPage, FeedPosition, StoreError};

use super::Registrar;

/// Changed applications read at a time.
const CHANGES: usize = 500;

/// Up to where changes made elsewhere are applied.
#[derive(Debug, Default)]
pub(super) struct FeedProgress {
    position: FeedPosition,
    /// Whether all applications were read from the store. Until then there is no position to continue at.
    is_loaded: bool,
    is_failing: bool,
}

impl Registrar {
    /// Loads all applications into the key directory. Unusable records are skipped, counted and logged; they never
    /// prevent a start.
    pub async fn load(&self) -> Result<(), StoreError> {
        self.apply_changes(&mut *self.turn.lock().await).await
    }

    /// Applies changes that other gateways and commands have made since the last call. A failure is logged when it
    /// begins; the next call continues at the same position.
    pub async fn follow_changes(&self) {
        let mut progress = self.turn.lock().await;
        match self.apply_changes(&mut progress).await {
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
        if let Some(key_directory) = &self.key_directory {
            self.instruments.shared_store().changes_age(key_directory.freshness.age(self.clock.now()));
        }
    }

    async fn load_whole(&self, progress: &mut FeedProgress) -> Result<(), StoreError> {
        progress.position = self.store.position().await?;
        // Reads the clock of a shared store, which decides the day, before any balance of the day is opened.
        self.apply_after(progress).await?;
        self.load_from_start(progress).await?;
        progress.is_loaded = true;
        Ok(())
    }

    /// Waits for a hint that something was changed elsewhere; without hints, for ever.
    pub async fn changed_elsewhere(&self) {
        // A listener that failed gives no hints; the feed is read at its usual interval.
        if self.store.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    async fn apply_changes(&self, progress: &mut FeedProgress) -> Result<(), StoreError> {
        let began = self.clock.now();
        let applied = if progress.is_loaded {
            self.apply_after(progress).await
        } else {
            self.load_whole(progress).await
        };
        if applied.is_ok() {
            self.copy_is_complete_to(&progress.position, began.wall);
        }
        if let Some(key_directory) = &self.key_directory {
            let was_copied = key_directory.freshness.is_copied();
            key_directory.freshness.attempted(began, applied.is_ok());
            if was_copied && applied.is_ok() {
                self.left_copy();
            }
        }
        applied
    }

    async fn apply_after(&self, progress: &mut FeedProgress) -> Result<(), StoreError> {
        loop {
            let sent = self.clock.mono();
            let changed = self.store.changed_after(progress.position.clone(), CHANGES).await?;
            // The clock of a shared store is that of all its gateways.
            if let Some(offset) = changed.clock.and_then(|reference| self.clock.follow(reference, sent)) {
                self.instruments.shared_store().clock_offset(offset);
            }
            if changed.requires_reload(&progress.position) {
                let (from, to) = (&progress.position, &changed.reached);
                tracing::warn!(%from, %to, "change feed restarted; all applications are read again");
                return self.load_from_start(progress).await;
            }
            let is_partial = changed.is_partial();
            if !changed.applications.is_empty() {
                let day = self.current_day().await?;
                let page = self.store.applications(changed.applications, day).await?;
                self.apply_page(&page, day);
                self.copy_changes(&page.applications);
                self.count_keys();
            }
            progress.position = changed.reached;
            if !is_partial {
                return Ok(());
            }
        }
    }

    pub(super) async fn load_from_start(&self, progress: &mut FeedProgress) -> Result<(), StoreError> {
        // Before the first page is read, so that no change in between is missed.
        let start = self.store.position().await?;
        self.load_all().await?;
        self.copy_again();
        progress.position = start;
        Ok(())
    }

    /// Loads all applications. Keys that are no longer stored are revoked in memory.
    async fn load_all(&self) -> Result<(), StoreError> {
        let Some(key_directory) = &self.key_directory else { return Ok(()) };
        let day = self.current_day().await?;
        let mut skipped = 0;
        let mut stored = (!key_directory.is_empty()).then(HashSet::new);
        let mut pages = pin!(self.store.all(day).peekable());
        while let Some(page) = pages.next().await {
            let page = page?;
            // Begins to read the next page, which continues while this one is applied.
            _ = futures_util::poll!(pages.as_mut().peek());
            skipped += self.apply_page(&page, day);
            if let Some(stored) = &mut stored {
                stored.extend(digests(&page));
            }
        }
        if let Some(stored) = stored {
            key_directory.revoke_all_except(&stored);
        }
        self.instruments.unreadable_records(skipped);
        self.count_keys();
        Ok(())
    }

    /// Applies applications as stored. Returns the number of unusable records.
    pub(super) fn apply_page(&self, page: &ApplicationPage, day: Day) -> usize {
        let Some(key_directory) = &self.key_directory else { return 0 };
        for reason in &page.skipped {
            tracing::error!(%reason, "skipped an unreadable record of the store");
        }
        let unusable = page.applications.iter().filter(|application| {
            let is_known = key_directory.apply(application, &self.terms.load(), day);
            if !is_known {
                let (id, tier) = (application.id, &application.tier);
                tracing::error!(application = %id, ?tier, "application with an unknown tier; its keys are refused");
            } else if key_directory.freshness.is_copied() {
                // A copy contains no balances, and the day of the store was unknown.
                key_directory.reopen_unused(application, day);
            }
            !is_known
        });
        page.skipped.len() + unusable.count()
    }

    /// The current day. A clock that was set back does not reopen a day: that of the ledger stays in force.
    async fn current_day(&self) -> Result<Day, StoreError> {
        let today = self.clock.now().wall.day();
        Ok(self.store.day().await?.map_or(today, |current| current.max(today)))
    }
}

fn digests(page: &ApplicationPage) -> impl Iterator<Item = Digest> {
    page.applications.iter().flat_map(|application| application.keys.iter().map(|key| key.digest))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tempfile::TempDir;

    use super::*;
    use crate::accounts::key_directory::KeyDirectory;
    use crate::accounts::{NewApplication, TermsByTier};
    use crate::clock::{Clock, Wall};
    use crate::instruments::Instruments;
    use crate::keys::{KeyForm, standard_tiers};
    use crate::store::{Embedded, OwnLimits};
    use crate::telemetry::metrics::MetricsRegistry;

    /// A gateway on the store in a directory.
    async fn gateway(directory: &TempDir) -> (Registrar, Arc<KeyDirectory>) {
        let key_directory = Arc::new(KeyDirectory::default());
        let registrar = Registrar::new(
            Arc::new(Embedded::open(directory.path()).unwrap()),
            Some(Arc::clone(&key_directory)),
            TermsByTier::new(&standard_tiers(), 60),
            KeyForm::new("sg_live", false),
            Clock::manual(Wall::from_seconds(1_763_726_400)).0,
            Arc::new(Instruments::new(&MetricsRegistry::default(), &[])),
        );
        registrar.load().await.unwrap();
        (registrar, key_directory)
    }

    fn station() -> NewApplication {
        NewApplication {
            name: "Weather station".into(),
            tier: "pro".into(),
            own: OwnLimits::default(),
            url: None,
            contact: None,
            note: None,
            expires_at: None,
        }
    }

    #[tokio::test]
    async fn a_gateway_follows_the_changes_of_another_one() {
        let directory = TempDir::new().unwrap();
        let ((one, _), (other, keys)) = (gateway(&directory).await, gateway(&directory).await);
        let issued = one.create("a test", station()).await.unwrap();
        let digest = Digest::of(issued.key.expose());
        assert!(keys.find(&digest).is_none());
        other.follow_changes().await;
        let found = keys.find(&digest).unwrap();
        assert_eq!((&*found.account.terms().tier_name, found.expires_at), ("pro", None));
        let rotated = one.rotate("a test", issued.application.id, Duration::ZERO).await.unwrap();
        one.set_tier("a test", issued.application.id, "free").await.unwrap();
        other.follow_changes().await;
        assert!(keys.find(&digest).unwrap().expires_at.is_some());
        let newer = keys.find(&Digest::of(rotated.key.expose())).unwrap();
        assert_eq!((&*newer.account.terms().tier_name, newer.expires_at), ("free", None));
        assert!(Arc::ptr_eq(&newer.account, &found.account), "its units are kept");
    }

    #[tokio::test]
    async fn after_a_restore_keys_that_are_not_stored_are_revoked() {
        let (directory, restored) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let (mut one, keys) = gateway(&directory).await;
        let issued = one.create("a test", station()).await.unwrap();
        one.follow_changes().await;
        let (backup, _) = gateway(&restored).await;
        one.store = backup.store;
        one.follow_changes().await;
        let found = keys.find(&Digest::of(issued.key.expose())).unwrap();
        assert_eq!(found.expires_at, Some(Wall::default()));
    }
}
