//! Records the minutes of this gateway in the store, and publishes the status page when its content changes.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;

use crate::{
    instruments::{StoreInstruments, StoreWork},
    pages::{
        Page,
        status::{DataState, ServiceStatus, StatusPages, StatusSite},
    },
};
use scoregate_base::clock::{Clock, Mono, Now, Wall};
use scoregate_store::{StatusMessage, StatusMinute, Store, StoreError, minute_of};

use super::{pending_minutes::PendingMinutes, read_history::ReadHistory};

/// The operation, as named in error messages.
const WORK: &str = "record and read the status";
/// Interval between readings of history and messages. Messages that were posted at another gateway appear at the next
/// reading.
const READ_EVERY: Duration = Duration::from_secs(30);
/// Maximum number of messages on the page and in the feed, in addition to messages of open incidents.
const MESSAGES: usize = 100;
/// Time after which the store counts as unreachable.
const STORE_TIMEOUT: Duration = Duration::from_secs(10);
/// Smaller differences between times are attributed to inaccurate clocks.
const JITTER: Duration = Duration::from_secs(2);

/// The state of this gateway at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// Whether the gateway serves requests.
    pub is_ready: bool,
    /// Whether the backend is failing.
    pub backend_fails: bool,
    /// The state of the data.
    pub data: DataState,
}

/// Records the state of this gateway, and publishes the status page.
pub struct StatusPublisher {
    store: Store,
    clock: Clock,
    instruments: Arc<StoreInstruments>,
    site: ArcSwap<StatusSite>,
    // Requests read the pages and never wait for an observation.
    pages: ArcSwap<StatusPages>,
    // The lock is held during calls to the store, so that an older reading never replaces a newer one.
    progress: tokio::sync::Mutex<StatusProgress>,
    /// The time when the last complete observation began, in nanoseconds of monotonic time.
    observed_at: AtomicU64,
}

#[derive(Default)]
struct StatusProgress {
    observed: Observation,
    pending: PendingMinutes,
    history: ReadHistory,
    messages: Vec<StatusMessage>,
    read_at: Option<Mono>,
    store_fails: bool,
    /// The published content.
    shown: Option<(Arc<StatusSite>, ServiceStatus)>,
}

impl StatusPublisher {
    /// A publisher for `site`. The page has no history until the first observation.
    pub fn new(
        store: Store,
        site: StatusSite,
        data: DataState,
        clock: Clock,
        instruments: Arc<StoreInstruments>,
    ) -> Self {
        let data = steady(DataState::default(), data);
        let status = ServiceStatus {
            is_ready: true,
            data,
            ..ServiceStatus::default()
        };
        let pages = ArcSwap::from_pointee(StatusPages::new(&site, &status, clock.now().wall));
        let site = ArcSwap::from_pointee(site);
        let progress = tokio::sync::Mutex::default();
        Self {
            store,
            clock,
            instruments,
            site,
            pages,
            progress,
            observed_at: AtomicU64::new(0),
        }
    }

    /// The page at exactly this path.
    pub fn find(&self, path: &str) -> Option<Arc<Page>> {
        self.pages.load().find(path)
    }

    /// Changes the name and the address of the service. The next observation publishes them.
    pub fn set_site(&self, site: StatusSite) {
        self.site.store(Arc::new(site));
    }

    /// Records an observation, and publishes the page if its content has changed. Called every few seconds.
    pub async fn observe(&self, seen: Observation) {
        let now = self.clock.now();
        let mut progress = self.progress.lock().await;
        let is_fresh =
            seen.is_ready && seen.data.newest.is_some() && seen.data.stale_since.is_none();
        let minute = StatusMinute {
            minute: minute_of(now.wall),
            is_ready: seen.is_ready,
            is_fresh,
        };
        progress.pending.note(minute);
        progress.observed = Observation {
            data: steady(progress.observed.data, seen.data),
            ..seen
        };
        let is_due = progress
            .read_at
            .is_none_or(|at| now.mono.since(at) >= READ_EVERY);
        self.exchange(&mut progress, now, is_due).await;
        self.publish(&mut progress);
        // The time is stored last, so that a test that reads it sees the pages of this observation.
        self.observed_at.store(now.mono.nanos(), Ordering::Release);
    }

    /// The time when the last complete observation began. For tests.
    pub fn observed_at(&self) -> Mono {
        Mono::from_nanos(self.observed_at.load(Ordering::Acquire))
    }

    /// Reads the messages and publishes them. Called after a message was posted at this gateway.
    pub async fn follow_messages(&self) {
        let mut progress = self.progress.lock().await;
        self.exchange(&mut progress, self.clock.now(), true).await;
        self.publish(&mut progress);
    }

    /// Stores pending minutes, and reads history and messages if due. Only the first of several consecutive failures is logged.
    async fn exchange(&self, progress: &mut StatusProgress, now: Now, is_due: bool) {
        let has_pending = progress.pending.has_some();
        let failed_before = progress.store_fails;
        if !has_pending && !is_due {
            return;
        }
        let working = self.store_and_read(progress, now, is_due);
        let working = async {
            self.clock
                .within(STORE_TIMEOUT, working)
                .await
                .unwrap_or_else(|_| {
                    Err(StoreError::Unavailable {
                        doing: WORK,
                        reason: "no response in time".into(),
                    })
                })
        };
        let exchanged = self
            .instruments
            .measured(&self.clock, StoreWork::Status, working)
            .await;
        progress.store_fails = exchanged.is_err();
        match exchanged {
            Ok(()) if failed_before => {
                tracing::info!("the status of this gateway is recorded again");
            }
            Ok(()) => {}
            Err(error) => {
                if !failed_before {
                    tracing::warn!(%error, "the status of this gateway cannot be recorded or read; unrecorded minutes are kept for three days");
                }
            }
        }
    }

    async fn store_and_read(
        &self,
        progress: &mut StatusProgress,
        now: Now,
        is_due: bool,
    ) -> Result<(), StoreError> {
        // Each batch is removed after it is stored, so after a failure only the remaining batches are retried.
        while let Some(batch) = progress.pending.next_batch() {
            self.store.record_minutes(batch.clone()).await?;
            progress.pending.stored(&batch);
        }
        if !is_due && !progress.store_fails {
            return Ok(());
        }
        let range = progress.history.next_range(now.wall);
        let history = self.store.status_history(range.start, range.end).await?;
        progress.history.read(&range, history);
        progress.messages = self.store.status_messages(MESSAGES).await?;
        progress.read_at = Some(now.mono);
        Ok(())
    }

    fn publish(&self, progress: &mut StatusProgress) {
        let site = self.site.load_full();
        let history = &progress.history;
        let Observation {
            is_ready,
            backend_fails,
            data,
        } = progress.observed;
        let status = ServiceStatus {
            is_ready,
            store_fails: progress.store_fails,
            backend_fails,
            data,
            days: history.days(),
            counted_until: history.end(),
            begun: history.begun(),
            messages: progress.messages.clone(),
        };
        let content = Some((site, status));
        if progress.shown == content {
            return;
        }
        if let Some((site, status)) = &content
            && let Some(changed) = self
                .pages
                .load()
                .changed(site, status, self.clock.now().wall)
        {
            self.pages.store(Arc::new(changed));
        }
        progress.shown = content;
    }
}

/// The new state, in seconds. Times that differ only slightly from the previous state keep their previous values.
fn steady(before: DataState, after: DataState) -> DataState {
    DataState {
        newest: steady_time(before.newest, after.newest),
        expected: steady_time(before.expected, after.expected),
        stale_since: steady_time(before.stale_since, after.stale_since),
    }
}

fn steady_time(before: Option<Wall>, after: Option<Wall>) -> Option<Wall> {
    match (before, after) {
        (Some(one), Some(other)) if one.since(other) < JITTER && other.since(one) < JITTER => {
            Some(one)
        }
        (_, after) => after.map(|at| Wall::from_seconds((at.millis() + 500) / 1_000)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_do_not_move_with_the_jitter_of_clocks() {
        let at = |millis| Some(Wall::from_millis(millis));
        let state = |expected| DataState {
            expected,
            ..DataState::default()
        };
        for (before, after, shown) in [
            (None, at(60_499), at(60_000)),
            (None, at(59_999), at(60_000)),
            (at(60_000), at(58_900), at(60_000)),
            (at(60_000), at(61_100), at(60_000)),
            (at(60_000), at(62_000), at(62_000)),
            (at(60_000), None, None),
        ] {
            assert_eq!(
                steady(state(before), state(after)).expected,
                shown,
                "{before:?} {after:?}"
            );
        }
    }
}
