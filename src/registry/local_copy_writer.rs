//! Maintains the local copy of a shared store. A server starts from this copy if the store is unreachable. Changes do
//! not wait until the copy is written. The format is in `store::local`.

use std::{collections::HashMap, io, sync::Arc, time::Duration};

use futures_util::TryStreamExt as _;
use parking_lot::Mutex;

use crate::{accounts::KeyFreshness, instruments::StoreInstruments};
use scoregate_base::{
    clock::{Clock, Mono, Wall},
    keys::ApplicationId,
};
use scoregate_store::{
    CopiedReading, FeedPosition, LocalFile, Store, StoreError, StoreResult, StoredApplication,
};

/// Maximum interval between writes. If nothing has changed, the write records that the copy is still current.
const WRITE_INTERVAL: Duration = Duration::from_secs(10);
/// Delay before the next attempt to write a copy from the beginning.
// Writing a whole copy reads all applications, so it must not be retried every second after a failure.
const RETRY_DELAY: Duration = Duration::from_secs(30);
const WRITE: &str = "write the local copy of the keys";

/// The local copy and the changes that are not in it yet.
pub struct LocalCopyWriter {
    local: Arc<LocalFile>,
    store: Store,
    freshness: Arc<KeyFreshness>,
    clock: Clock,
    instruments: Arc<StoreInstruments>,
    // The lock is held only briefly, because every key change takes it while other changes wait.
    pending: Mutex<PendingCopy>,
    /// The number of the copy that this process wrote in full. The lock is held while the copy is written.
    copy: tokio::sync::Mutex<Option<u64>>,
}

#[derive(Default)]
struct PendingCopy {
    changed: HashMap<ApplicationId, StoredApplication>,
    /// The position up to which the key directory is complete; `None` until the directory has been loaded from the
    /// store.
    reading: Option<CopiedReading>,
    must_rewrite: bool,
    /// The time up to which the copy is complete.
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

impl LocalCopyWriter {
    /// Keeps the copy in `local` in sync with the applications in `store`. `freshness` is the state of the key
    /// directory.
    pub fn new(
        local: Arc<LocalFile>,
        store: Store,
        freshness: Arc<KeyFreshness>,
        clock: Clock,
        instruments: Arc<StoreInstruments>,
    ) -> Self {
        let pending = Mutex::default();
        let copy = tokio::sync::Mutex::default();
        Self {
            local,
            store,
            freshness,
            clock,
            instruments,
            pending,
            copy,
        }
    }

    /// Writes changes to the local copy. Called every second.
    pub async fn write_due(&self) {
        self.write(false).await;
        let now = self.clock.now();
        let written = self.pending.lock().written;
        if let Some(age) = written
            .map(|at| now.wall.since(at))
            .or_else(|| self.freshness.age_of_copy(now))
        {
            self.instruments.shared.local_copy_age(age);
        }
    }

    /// Writes the first copy of a data directory. Startup waits for this write, because the store may fail at any later
    /// time.
    pub async fn write_first(&self) {
        let local = Arc::clone(&self.local);
        if matches!(blocking(move || local.copied()).await, Ok(None)) {
            self.write_due().await;
        }
    }

    /// Writes the last changes to the local copy at shutdown.
    pub async fn finish(&self) {
        self.write(true).await;
    }

    /// Lists changed applications.
    pub(crate) fn list(&self, changed: &[StoredApplication]) {
        let entries = changed
            .iter()
            .map(|application| (application.id, application.clone()));
        self.pending.lock().changed.extend(entries);
    }

    /// Records that every change up to this position is in the key directory or listed.
    pub(crate) fn is_complete_to(&self, position: &FeedPosition, at: Wall) {
        self.pending.lock().reading = Some(CopiedReading {
            position: position.clone(),
            at,
        });
    }

    /// Records that the whole store was read again. The copy may now differ from the store in ways that later changes
    /// do not correct.
    pub(crate) fn rewrite(&self) {
        self.pending.lock().must_rewrite = true;
    }

    async fn write(&self, is_last: bool) {
        let mut copy = self.copy.lock().await;
        let now = self.clock.now().mono;
        // The pending changes are removed from the list before the write, so that new changes can be added during it.
        let next = self.pending.lock().next(copy.is_some(), is_last, now);
        let written = match (next, *copy) {
            (None, _) => return,
            (Some(CopyWrite::Append(changed, reading)), Some(number)) => {
                self.append(number, changed, reading).await
            }
            (Some(CopyWrite::Append(..) | CopyWrite::Whole), _) => self.write_whole().await,
        };
        let mut pending = self.pending.lock();
        match written {
            Ok((number, at)) => {
                pending.written = Some(at);
                if std::mem::take(&mut pending.is_failing) {
                    tracing::info!("local copy of the keys written again");
                }
                *copy = Some(number);
            }
            Err(error) => {
                // The changes of this write are no longer listed, so only a new copy is complete.
                (pending.must_rewrite, pending.retry_at) =
                    (true, self.clock.mono().plus(RETRY_DELAY));
                if !std::mem::replace(&mut pending.is_failing, true) {
                    tracing::error!(
                        %error,
                        "local copy of the keys is out of date: a start without the shared store would use its last state"
                    );
                }
            }
        }
    }

    /// Reads all applications and replaces the copy.
    async fn write_whole(&self) -> StoreResult<(u64, Wall)> {
        let at = self.clock.now().wall;
        // The position is read before the first page, so that no later change is missed.
        let position = self.store.position().await?;
        let local = Arc::clone(&self.local);
        let number = blocking(move || local.begin_copy()).await?;
        let mut pages = self.store.all(at.day());
        while let Some(page) = pages.try_next().await? {
            let local = Arc::clone(&self.local);
            blocking(move || local.push_copy(number, &page.applications)).await?;
        }
        let reading = CopiedReading { position, at };
        let local = Arc::clone(&self.local);
        blocking(move || local.finish_copy(number, &reading)).await?;
        Ok((number, at))
    }

    async fn append(
        &self,
        number: u64,
        changed: Vec<StoredApplication>,
        reading: CopiedReading,
    ) -> StoreResult<(u64, Wall)> {
        let at = reading.at;
        let local = Arc::clone(&self.local);
        blocking(move || local.append_copy(number, &changed, &reading)).await?;
        Ok((number, at))
    }
}

impl PendingCopy {
    /// The next write, if one is due. At shutdown, only a short write is made.
    fn next(&mut self, has_copy: bool, is_last: bool, now: Mono) -> Option<CopyWrite> {
        let reading = self.reading.clone()?;
        if self.must_rewrite || !has_copy {
            if is_last || now < self.retry_at {
                // A whole copy would delay the shutdown. The next process writes it.
                return None;
            }
            // The new copy contains the listed changes. Changes listed during the write are appended later.
            self.changed.clear();
            self.must_rewrite = false;
            return Some(CopyWrite::Whole);
        }
        // The wall clock may have been set back.
        let is_old = self
            .written
            .is_none_or(|at| reading.at < at || reading.at.since(at) >= WRITE_INTERVAL);
        (is_last || is_old || !self.changed.is_empty()).then(|| {
            let changed = std::mem::take(&mut self.changed).into_values().collect();
            CopyWrite::Append(changed, reading)
        })
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> StoreResult<T> {
    let done = tokio::task::spawn_blocking(work)
        .await
        .map_err(io::Error::other)
        .flatten();
    done.map_err(|error| StoreError::Unavailable {
        doing: WRITE,
        reason: error.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use crate::registry::local_copy_writer::*;
    use crate::registry::new_application::NewApplication;
    use crate::registry::test_gateway::{ChangingGateway, NOON, station};
    use scoregate_base::keys::Digest;
    use scoregate_base::limits::{LimitSetting, OwnLimits};

    fn limited() -> NewApplication {
        NewApplication {
            own: OwnLimits::NONE.with(LimitSetting::Day, 70),
            ..station()
        }
    }

    impl ChangingGateway {
        /// Another gateway that starts from this copy and has never read its own store.
        async fn started_from_copy(&self, elsewhere: &TempDir) -> Self {
            let other = Self::with_copy(elsewhere, elsewhere);
            let local = &self.copy().local;
            let copied = local.copied().unwrap().unwrap();
            other.keeper.load_copy(local, &copied).await.unwrap();
            other
        }

        fn copy(&self) -> &LocalCopyWriter {
            self.copy.as_ref().unwrap()
        }

        /// Whether a key is accepted.
        fn accepts(&self, key: &Digest) -> bool {
            self.keys
                .find(key)
                .is_some_and(|found| found.expires_at != Some(Wall::default()))
        }
    }

    #[tokio::test]
    async fn a_gateway_starts_from_the_copy_with_the_keys_that_were_in_force() {
        let store = TempDir::new().unwrap();
        let data = TempDir::new().unwrap();
        let elsewhere = TempDir::new().unwrap();
        let one = ChangingGateway::with_copy(&store, &data);
        let before = one.registrar.create("a test", limited()).await.unwrap();
        one.copy().write_due().await;
        assert!(
            one.copy().local.copied().unwrap().is_none(),
            "nothing was read yet"
        );
        one.keeper.load().await.unwrap();
        one.copy().write_due().await;
        let after = one.registrar.create("a test", limited()).await.unwrap();
        one.registrar
            .revoke("a test", before.application.id, None)
            .await
            .unwrap();
        one.copy().write_due().await;

        let other = one.started_from_copy(&elsewhere).await;
        let [revoked, created] = [before, after].map(|issued| Digest::of(issued.key.expose()));
        assert!(other.accepts(&created) && !other.accepts(&revoked));
        let account = other.keys.find(&created).unwrap().account;
        assert_eq!(
            (&*account.name(), account.terms().limits.day),
            ("Weather station", 70)
        );
        assert!(other.keys.freshness.is_copied());

        // The other gateway's own store does not have these keys.
        other.keeper.follow_changes().await;
        assert!(!other.keys.freshness.is_copied() && !other.accepts(&created));
    }

    #[tokio::test]
    async fn the_copy_records_when_the_store_was_read_and_is_written_again_after_a_failure() {
        let store = TempDir::new().unwrap();
        let data = TempDir::new().unwrap();
        let one = ChangingGateway::with_copy(&store, &data);
        one.keeper.load().await.unwrap();
        one.copy().write_due().await;
        let read_at = || one.copy().local.copied().unwrap().unwrap().at;
        for (wait, expected) in [(9, 0), (1, 10), (5, 10)] {
            one.manual.advance(Duration::from_secs(wait));
            one.keeper.follow_changes().await;
            one.copy().write_due().await;
            assert_eq!(read_at(), NOON.plus(Duration::from_secs(expected)));
        }
        one.copy().finish().await;
        assert_eq!(read_at(), NOON.plus(Duration::from_secs(15)));

        // Writes fail.
        let path = data.path().join(LocalFile::NAME);
        let other = rusqlite::Connection::open(path).unwrap();
        let rename = |from, to| other.execute_batch(&format!("ALTER TABLE {from} RENAME TO {to}"));
        rename("applications", "aside").unwrap();
        one.copy().rewrite();
        one.copy().write_due().await;
        rename("aside", "applications").unwrap();
        one.copy().write_due().await;
        assert_eq!(
            read_at(),
            NOON.plus(Duration::from_secs(15)),
            "the next attempt is not due"
        );
        one.manual.advance(RETRY_DELAY);
        one.copy().write_due().await;
        assert_eq!(read_at(), NOON.plus(Duration::from_secs(45)));
    }
}
