//! Keeps the local copy of a shared store, and loads the key directory from it while the store is unreachable.
//!
//! Nothing here waits for a disk while it holds the turn of changes. The format is in `store::local_copy`.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use parking_lot::Mutex;

use crate::clock::{Mono, Wall};
use crate::keys::ApplicationId;
use crate::store::{
    CopiedReading, FeedPosition, LocalCopy, LocalCopyFlaw, LocalCopyLog, NewLocalCopy, StoreError,
    StoredApplication, VerifiedLocalCopy,
};

use super::Registrar;

/// Maximum interval between writes, which record that nothing has changed.
const WRITE_INTERVAL: Duration = Duration::from_secs(10);
/// Delay before the next attempt to write a copy from the beginning.
const RETRY_DELAY: Duration = Duration::from_secs(30);
const WRITE: &str = "write the local copy of the keys";

/// The local copy and the changes that are not in it yet.
pub(super) struct LocalCopyKeeper {
    copy: LocalCopy,
    pending: Mutex<PendingCopy>,
    /// The open file; none if the copy has to be written from the beginning.
    log: tokio::sync::Mutex<Option<LocalCopyLog>>,
}

#[derive(Default)]
struct PendingCopy {
    changed: HashMap<ApplicationId, StoredApplication>,
    /// Up to where the key directory is complete. None until it was loaded from the store.
    reading: Option<CopiedReading>,
    must_rewrite: bool,
    /// Up to when the copy is complete.
    written: Option<Wall>,
    retry_at: Mono,
    is_failing: bool,
}

/// The next write.
enum CopyWrite {
    /// A new copy, read from the store.
    Whole,
    Append(Vec<StoredApplication>, CopiedReading),
}

impl Registrar {
    /// Keeps a local copy of the store.
    pub fn with_local_copy(self, copy: LocalCopy) -> Self {
        let keeper = LocalCopyKeeper { copy, pending: Mutex::default(), log: tokio::sync::Mutex::default() };
        Self { copy: Some(keeper), ..self }
    }

    /// Loads the key directory from a local copy, because the store is unreachable.
    pub fn load_copy(&self, copy: VerifiedLocalCopy) -> Result<(), LocalCopyFlaw> {
        let Some(key_directory) = &self.key_directory else { return Ok(()) };
        // An attempt to load the store may have ended midway, and the copy may be of another data set.
        key_directory.clear();
        let read_at = copy.reading().at;
        let mut skipped = 0;
        copy.read(|page| skipped += self.apply_page(page, read_at.day()))?;
        self.instruments.unreadable_records(skipped);
        key_directory.freshness.loaded_from_copy(read_at, self.clock.now());
        self.count_keys();
        self.instruments.shared_store().serves_local_copy(true);
        self.instruments.ledger_unreachable(true);
        Ok(())
    }

    /// Writes changes to the local copy. Called every second.
    pub async fn keep_copy(&self) {
        let Some(keeper) = &self.copy else { return };
        self.write_copy(keeper, false).await;
        let (now, written) = (self.clock.now(), keeper.pending.lock().written);
        let age_at_start = || self.key_directory.as_ref()?.freshness.age_of_copy(now);
        if let Some(age) = written.map(|at| now.wall.since(at)).or_else(age_at_start) {
            self.instruments.shared_store().local_copy_age(age);
        }
    }

    /// Writes the last changes to the local copy at shutdown.
    pub async fn finish_copy(&self) {
        if let Some(keeper) = &self.copy {
            self.write_copy(keeper, true).await;
        }
    }

    /// The store was read after a start from the local copy.
    pub(super) fn left_copy(&self) {
        self.instruments.shared_store().serves_local_copy(false);
        self.instruments.ledger_unreachable(false);
        tracing::info!("shared store reachable; all keys were read from it, and units are leased again");
    }

    /// Lists changed applications for the local copy.
    pub(super) fn copy_changes(&self, changed: &[StoredApplication]) {
        let Some(keeper) = &self.copy else { return };
        let entries = changed.iter().map(|application| (application.id, application.clone()));
        keeper.pending.lock().changed.extend(entries);
    }

    /// Every change up to this position is in the key directory, or listed.
    pub(super) fn copy_is_complete_to(&self, position: &FeedPosition, at: Wall) {
        if let Some(keeper) = &self.copy {
            keeper.pending.lock().reading = Some(CopiedReading { position: position.clone(), at });
        }
    }

    /// The whole store was read again: the copy may have more than changes can correct.
    pub(super) fn copy_again(&self) {
        if let Some(keeper) = &self.copy {
            keeper.pending.lock().must_rewrite = true;
        }
    }

    async fn write_copy(&self, keeper: &LocalCopyKeeper, is_last: bool) {
        let mut log = keeper.log.lock().await;
        let now = self.clock.now().mono;
        let next = keeper.pending.lock().next(log.as_ref(), is_last, now);
        let written = match (next, log.take()) {
            (None, open) => {
                *log = open;
                return;
            }
            (Some(CopyWrite::Append(changed, reading)), Some(open)) => append(open, changed, reading).await,
            (Some(CopyWrite::Append(..) | CopyWrite::Whole), _) => self.write_whole(&keeper.copy).await,
        };
        let mut pending = keeper.pending.lock();
        match written {
            Ok((open, at)) => {
                pending.written = Some(at);
                if std::mem::take(&mut pending.is_failing) {
                    tracing::info!("local copy of the keys written again");
                }
                *log = Some(open);
            }
            Err(error) => {
                (pending.must_rewrite, pending.retry_at) = (true, self.clock.mono().plus(RETRY_DELAY));
                if !std::mem::replace(&mut pending.is_failing, true) {
                    tracing::error!(
                        %error,
                        "local copy of the keys is out of date: a start without the shared store would use its last state"
                    );
                }
            }
        }
    }

    /// Reads all applications, and replaces the copy.
    async fn write_whole(&self, copy: &LocalCopy) -> Result<(LocalCopyLog, Wall), StoreError> {
        let at = self.clock.now().wall;
        // Before the first page is read, so that no change in between is missed.
        let position = self.store.position().await?;
        let copy = copy.clone();
        let mut new = blocking(move || NewLocalCopy::begin(&copy)).await?;
        let mut pages = self.store.all(at.day());
        while let Some(page) = pages.try_next().await? {
            new = blocking(move || {
                new.push(&page.applications)?;
                Ok(new)
            })
            .await?;
        }
        let open = blocking(move || new.finish(&CopiedReading { position, at })).await?;
        Ok((open, at))
    }
}

impl PendingCopy {
    /// The next write, if one is due. At shutdown a short one, if possible.
    fn next(&mut self, log: Option<&LocalCopyLog>, is_last: bool, now: Mono) -> Option<CopyWrite> {
        let reading = self.reading.clone()?;
        if self.must_rewrite || log.is_none_or(LocalCopyLog::is_long) {
            if is_last || now < self.retry_at {
                return None;
            }
            // A new copy contains them, and those that are listed meanwhile are appended.
            self.changed.clear();
            self.must_rewrite = false;
            return Some(CopyWrite::Whole);
        }
        // The wall clock may have been set back.
        let is_far = |at: Wall| reading.at < at || reading.at.since(at) >= WRITE_INTERVAL;
        let is_old = self.written.is_none_or(is_far);
        (is_last || is_old || !self.changed.is_empty()).then(|| {
            let changed = std::mem::take(&mut self.changed).into_values().collect();
            CopyWrite::Append(changed, reading)
        })
    }
}

async fn append(
    mut open: LocalCopyLog,
    changed: Vec<StoredApplication>,
    reading: CopiedReading,
) -> Result<(LocalCopyLog, Wall), StoreError> {
    let at = reading.at;
    let append = move || open.append(&changed, &reading).map(|()| open);
    Ok((blocking(append).await?, at))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work).await.map_err(io::Error::other).flatten();
    done.map_err(|error| StoreError::Unavailable { doing: WRITE, reason: error.to_string() })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tempfile::TempDir;

    use super::*;
    use crate::accounts::key_directory::KeyDirectory;
    use crate::accounts::{KeyFreshness, NewApplication, TermsByTier};
    use crate::clock::{Clock, ManualClock};
    use crate::instruments::Instruments;
    use crate::keys::{Digest, KeyForm, standard_tiers};
    use crate::store::{Embedded, OwnLimits};
    use crate::telemetry::metrics::MetricsRegistry;

    /// A gateway on a store in a directory, with its copy in another one. It loads nothing.
    struct Copying {
        registrar: Registrar,
        keys: Arc<KeyDirectory>,
        copy: LocalCopy,
        clock: ManualClock,
    }

    fn gateway(store: &TempDir, data: &TempDir) -> Copying {
        let keys = Arc::new(KeyDirectory::shared(KeyFreshness::shared(None)));
        let (clock, manual) = Clock::manual(Wall::from_seconds(1_763_726_400));
        let copy = LocalCopy::of(data.path());
        let registrar = Registrar::new(
            Arc::new(Embedded::open(store.path()).unwrap()),
            Some(Arc::clone(&keys)),
            TermsByTier::new(&standard_tiers(), 60),
            KeyForm::new("sg_live", false),
            clock,
            Arc::new(Instruments::new(&MetricsRegistry::default(), &[])),
        );
        Copying { registrar: registrar.with_local_copy(copy.clone()), keys, copy, clock: manual }
    }

    fn station() -> NewApplication {
        let own = OwnLimits { minute: None, day: Some(70) };
        NewApplication {
            name: "Weather station".into(),
            tier: "pro".into(),
            own,
            url: None,
            contact: None,
            note: None,
            expires_at: None,
        }
    }

    impl Copying {
        /// Another gateway that starts from this copy; its store was never read.
        fn started_from_copy(&self, elsewhere: &TempDir) -> Self {
            let other = gateway(elsewhere, elsewhere);
            other.registrar.load_copy(self.copy.open().unwrap().unwrap()).unwrap();
            other
        }

        /// Whether a key is in force.
        fn accepts(&self, key: &Digest) -> bool {
            self.keys.find(key).is_some_and(|found| found.expires_at != Some(Wall::default()))
        }
    }

    #[tokio::test]
    async fn a_gateway_starts_from_the_copy_with_the_keys_that_were_in_force() {
        let (store, data, elsewhere) =
            (TempDir::new().unwrap(), TempDir::new().unwrap(), TempDir::new().unwrap());
        let one = gateway(&store, &data);
        let before = one.registrar.create("a test", station()).await.unwrap();
        one.registrar.keep_copy().await;
        assert!(one.copy.open().unwrap().is_none(), "nothing was read yet");
        one.registrar.load().await.unwrap();
        one.registrar.keep_copy().await;
        let after = one.registrar.create("a test", station()).await.unwrap();
        one.registrar.revoke("a test", before.application.id, None).await.unwrap();
        one.registrar.keep_copy().await;

        let other = one.started_from_copy(&elsewhere);
        let [revoked, created] = [before, after].map(|issued| Digest::of(issued.key.expose()));
        assert!(other.accepts(&created) && !other.accepts(&revoked));
        let account = other.keys.find(&created).unwrap().account;
        assert_eq!((&*account.name(), account.terms().limits.day), ("Weather station", 70));
        assert!(other.keys.freshness.is_copied());

        // Its own store, in which these keys do not exist.
        other.registrar.follow_changes().await;
        assert!(!other.keys.freshness.is_copied() && !other.accepts(&created));
    }

    #[tokio::test]
    async fn the_copy_records_when_the_store_was_read_and_is_written_again_after_a_failure() {
        let (store, data) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        let one = gateway(&store, &data);
        one.registrar.load().await.unwrap();
        one.registrar.keep_copy().await;
        let start = Wall::from_seconds(1_763_726_400);
        let read_at = || one.copy.open().unwrap().unwrap().reading().at;
        for (wait, expected) in [(9, 0), (1, 10), (5, 10)] {
            one.clock.advance(Duration::from_secs(wait));
            one.registrar.follow_changes().await;
            one.registrar.keep_copy().await;
            assert_eq!(read_at(), start.plus(Duration::from_secs(expected)));
        }
        one.registrar.finish_copy().await;
        assert_eq!(read_at(), start.plus(Duration::from_secs(15)));

        // A directory in the place of the file.
        std::fs::remove_file(one.copy.path()).unwrap();
        std::fs::create_dir(one.copy.path()).unwrap();
        one.registrar.copy_again();
        one.registrar.keep_copy().await;
        std::fs::remove_dir(one.copy.path()).unwrap();
        one.registrar.keep_copy().await;
        assert!(one.copy.open().unwrap().is_none(), "the next attempt is not due");
        one.clock.advance(RETRY_DELAY);
        one.registrar.keep_copy().await;
        assert_eq!(read_at(), start.plus(Duration::from_secs(45)));
    }
}
