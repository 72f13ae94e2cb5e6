//! The backend's refreshes: the last one detected and the next one expected. `cache::freshness` handles the dates of a
//! document.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::cache::{RefreshInterval, StoredDocument};
use scoregate_base::{
    clock::{Mono, Now, Wall},
    routes::DocumentKey,
};

/// The backend's refreshes, as far as they are known.
#[derive(Debug, Default)]
pub struct RefreshSchedule {
    /// The time of the last detected refresh, in nanoseconds of monotonic time. Documents confirmed earlier are
    /// outdated.
    last_detected: AtomicU64,
    /// The next refresh according to the newest response, in seconds of wall time. Zero while it is unknown.
    stated: AtomicU64,
    /// The time of the newest data, in seconds of wall time. Zero while there is no data.
    newest: AtomicU64,
    /// `None` until a document is stored.
    interval: Mutex<Option<RefreshInterval>>,
    started: Notify,
    /// The newest refresh that a request's fetch detected. It is kept until the refresher takes it.
    detected: Mutex<Option<DetectedRefresh>>,
    has_detected: Notify,
}

/// A refresh that was detected by a request's fetch.
#[derive(Clone, Debug)]
pub struct DetectedRefresh {
    /// The changed document.
    pub document: DocumentKey,
    /// The document that was stored before.
    pub before: Arc<StoredDocument>,
    /// The new document.
    pub stored: Arc<StoredDocument>,
    /// When the new document was received.
    pub at: Mono,
}

impl RefreshSchedule {
    /// When a refresh was last detected.
    pub fn last_detected(&self) -> Mono {
        Mono::from_nanos(self.last_detected.load(Ordering::Acquire))
    }

    /// Records a detected refresh.
    pub fn record_refresh(&self, now: Mono) {
        // Detections can be recorded out of order. The time must not go back, because outdated documents would become current
        // again.
        self.last_detected.fetch_max(now.nanos(), Ordering::AcqRel);
    }

    /// Records that a request's fetch returned a changed document. If the next refresh is overdue, the change counts as
    /// this refresh. Otherwise it may affect only that document, and other documents must not be marked as outdated.
    pub fn record_changed_document(&self, detected: DetectedRefresh) {
        if self
            .interval()
            .is_some_and(|interval| interval.expected() <= detected.at)
        {
            *self.detected.lock() = Some(detected);
            self.has_detected.notify_one();
        }
    }

    /// Waits until a request's fetch detects a new refresh.
    pub async fn next_detected(&self) -> DetectedRefresh {
        loop {
            let detected = self.detected.lock().take();
            match detected.filter(|detected| detected.at > self.last_detected()) {
                Some(detected) => return detected,
                None => self.has_detected.notified().await,
            }
        }
    }

    /// Records the next refresh that a response states.
    pub fn state(&self, due: Wall) {
        // These times are read independently, so no ordering is needed.
        self.stated.store(due.seconds(), Ordering::Relaxed);
    }

    /// The next refresh according to the newest response, if it is in the future.
    pub fn stated_after(&self, now: Wall) -> Option<Wall> {
        self.stated().filter(|stated| *stated > now)
    }

    /// The next refresh according to the newest response. It may be in the past.
    pub fn stated(&self) -> Option<Wall> {
        let stated = self.stated.load(Ordering::Relaxed);
        (stated > 0).then(|| Wall::from_seconds(stated))
    }

    /// Records the time of data that changes with each refresh of the backend. A time in the future is caused by a wrong clock
    /// and counts as `now`.
    pub fn record_data(&self, generated_at: Wall, now: Wall) {
        self.newest
            .fetch_max(generated_at.min(now).seconds(), Ordering::Relaxed);
    }

    /// Clears the time of the newest data.
    pub fn forget_data(&self) {
        self.newest.store(0, Ordering::Relaxed);
    }

    /// The time of the newest data.
    pub fn newest_data(&self) -> Option<Wall> {
        let newest = self.newest.load(Ordering::Relaxed);
        (newest > 0).then(|| Wall::from_seconds(newest))
    }

    /// The next refresh according to the measured interval. It may be in the past.
    pub fn expected(&self) -> Option<Mono> {
        self.interval().map(|interval| interval.expected())
    }

    /// The next refresh according to the measured interval, if it is in the future.
    pub fn expected_after(&self, now: Now) -> Option<Wall> {
        self.expected()
            .filter(|expected| *expected > now.mono)
            .map(|expected| now.wall_at(expected))
    }

    /// Sets the first interval, unless an interval is already set.
    pub fn begin(&self, interval: RefreshInterval) {
        // The check and the change are made under one lock, so that only the first document sets the interval.
        let mut known = self.interval.lock();
        if known.is_none() {
            *known = Some(interval);
            self.started.notify_one();
        }
    }

    /// Waits until the interval is set, and returns it.
    pub async fn begun(&self) -> RefreshInterval {
        loop {
            match self.interval() {
                Some(interval) => return interval,
                None => self.started.notified().await,
            }
        }
    }

    /// Updates the interval.
    pub fn step(&self, step: impl Fn(RefreshInterval) -> RefreshInterval) {
        let mut interval = self.interval.lock();
        *interval = interval.map(step);
    }

    fn interval(&self) -> Option<RefreshInterval> {
        *self.interval.lock()
    }
}
