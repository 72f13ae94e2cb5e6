//! Limits how many events of one kind are logged: the first [`BURST`] in ten seconds are, the rest are counted and
//! reported in one line at the end of that time: "a fetch failed (253 more in 10 s)".
//!
//! A kind is a place in the code, plus the value of a field with a closed set of values where the event has one.
//! `debug` and `trace` events are not limited.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use parking_lot::Mutex;
use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// Events of a kind that are logged in a window.
const BURST: u32 = 10;
/// A window begins with the first event of a kind.
const WINDOW: Duration = Duration::from_secs(10);
/// How often windows are checked once something was dropped.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Fields that distinguish kinds, each with a closed set of values.
const KIND_FIELDS: [&str; 2] = ["endpoint", "code"];
/// Maximum number of kinds in memory. Above it, a place in the code is one kind, regardless of its fields.
const MAX_KINDS: usize = 512;
/// Maximum number of characters of a message that a report repeats.
const MAX_MESSAGE: usize = 200;
/// The target of reports. They are not limited, and `log` enables them at every level: a report follows events that
/// were enabled.
pub(super) const REPORTS: &str = "scoregate::event_limits";

/// Monotonic time, by the program's clock.
pub type RunningTime = Box<dyn Fn() -> Duration + Send + Sync>;

/// A kind of events.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct EventKind {
    callsite: Identifier,
    value: Option<String>,
}

#[derive(Debug)]
struct EventWindow {
    began: Duration,
    logged: u32,
    dropped: u64,
    level: Level,
    message: String,
}

/// Events of a kind dropped in a window.
#[derive(Clone, Debug, PartialEq, Eq)]
struct DroppedEvents {
    level: Level,
    message: String,
    dropped: u64,
    within: Duration,
}

/// The decision about an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EventDecision {
    Log,
    /// The first event dropped in its window.
    DropFirst,
    Drop,
}

/// The windows of all kinds that are being counted.
#[derive(Debug, Default)]
struct EventWindows(HashMap<EventKind, EventWindow>);

impl EventWindow {
    fn at(now: Duration) -> Self {
        Self {
            began: now,
            logged: 0,
            dropped: 0,
            level: Level::INFO,
            message: "events".into(),
        }
    }

    fn is_over(&self, now: Duration) -> bool {
        now.saturating_sub(self.began) >= WINDOW
    }
}

impl EventWindows {
    /// Counts an event. A window with dropped events lasts until it is reported.
    fn admit(&mut self, kind: &EventKind, now: Duration) -> EventDecision {
        let kind = self.bounded(kind, now);
        let window = self.0.entry(kind).or_insert_with(|| EventWindow::at(now));
        if window.is_over(now) && window.dropped == 0 {
            *window = EventWindow::at(now);
        }
        if window.logged < BURST {
            window.logged += 1;
            return EventDecision::Log;
        }
        window.dropped += 1;
        if window.dropped == 1 {
            EventDecision::DropFirst
        } else {
            EventDecision::Drop
        }
    }

    /// Sets the text of the report about a kind.
    fn describe(&mut self, kind: &EventKind, now: Duration, level: Level, message: String) {
        let kind = self.bounded(kind, now);
        if let Some(window) = self.0.get_mut(&kind) {
            (window.level, window.message) = (level, message);
        }
    }

    /// The event's kind; once the table is full, a catch-all for its call site.
    fn bounded(&mut self, kind: &EventKind, now: Duration) -> EventKind {
        if self.0.len() >= MAX_KINDS && !self.0.contains_key(kind) {
            self.0
                .retain(|_, window| window.dropped > 0 || !window.is_over(now));
            if self.0.len() >= MAX_KINDS {
                return EventKind {
                    callsite: kind.callsite.clone(),
                    value: None,
                };
            }
        }
        kind.clone()
    }

    /// Ends the windows selected by `is_over`, and returns what was dropped in them.
    fn reports(
        &mut self,
        now: Duration,
        is_over: impl Fn(&EventWindow) -> bool,
    ) -> Vec<DroppedEvents> {
        let ended = self
            .0
            .extract_if(|_, window| is_over(window))
            .map(|(_, window)| window);
        let dropped = ended.filter(|window| window.dropped > 0);
        let report = |window: EventWindow| DroppedEvents {
            level: window.level,
            message: window.message,
            dropped: window.dropped,
            within: now.saturating_sub(window.began),
        };
        dropped.map(report).collect()
    }

    fn has_dropped(&self) -> bool {
        self.0.values().any(|window| window.dropped > 0)
    }
}

/// The limits, as a layer before the one that writes. Clones share their windows.
#[derive(Clone)]
pub(super) struct EventLimits(Arc<SharedWindows>);

struct SharedWindows {
    /// Consistent after every step.
    windows: Mutex<EventWindows>,
    now: RunningTime,
    /// Wakes the reporting thread.
    dropped: SyncSender<()>,
}

impl EventLimits {
    /// Creates limits, and the receiver for the reporting thread.
    pub(super) fn new(now: RunningTime) -> (Self, Receiver<()>) {
        // One message suffices, because the receiver checks all windows.
        let (dropped, has_dropped) = sync_channel(1);
        (
            Self(Arc::new(SharedWindows {
                windows: Mutex::default(),
                now,
                dropped,
            })),
            has_dropped,
        )
    }

    /// Starts the thread that reports what was dropped, at the end of each window.
    pub(super) fn report_from_a_thread(&self, has_dropped: Receiver<()>) -> std::io::Result<()> {
        let limits = self.clone();
        let report = move || {
            while has_dropped.recv().is_ok() {
                // Unlocked during the pause: events of all threads need the lock.
                while limits.0.windows.lock().has_dropped() {
                    std::thread::sleep(CHECK_INTERVAL);
                    limits.report();
                }
            }
        };
        std::thread::Builder::new()
            .name("event-limits".into())
            .spawn(report)
            .map(drop)
    }

    /// Reports what was dropped in windows that are over.
    fn report(&self) {
        let now = (self.0.now)();
        // The lock is released before events are made of it.
        let reports = self
            .0
            .windows
            .lock()
            .reports(now, |window| window.is_over(now));
        reports.iter().for_each(log_dropped);
    }

    /// Reports everything that was dropped, at the end of the program.
    pub(super) fn finish(&self) {
        let reports = self.0.windows.lock().reports((self.0.now)(), |_| true);
        reports.iter().for_each(log_dropped);
    }
}

impl<S: Subscriber> Layer<S> for EventLimits {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        let metadata = event.metadata();
        if *metadata.level() > Level::INFO || metadata.target() == REPORTS {
            return true;
        }
        let mut value = KindVisitor(None);
        event.record(&mut value);
        let kind = EventKind {
            callsite: metadata.callsite(),
            value: value.0,
        };
        let now = (self.0.now)();
        let verdict = self.0.windows.lock().admit(&kind, now);
        if verdict == EventDecision::DropFirst {
            // Without the lock: formatting runs code of the event's fields, which may panic, and a panic is an event
            // too.
            let mut message = MessageVisitor(String::new());
            event.record(&mut message);
            let MessageVisitor(message) = message;
            let message = match &kind.value {
                Some(value) => format!("{message} ({value})"),
                None => message,
            };
            self.0
                .windows
                .lock()
                .describe(&kind, now, *metadata.level(), message);
            match self.0.dropped.try_send(()) {
                // If the channel is full, its receiver is about to check anyway.
                Ok(()) | Err(TrySendError::Full(()) | TrySendError::Disconnected(())) => {}
            }
        }
        verdict == EventDecision::Log
    }
}

fn log_dropped(report: &DroppedEvents) {
    let DroppedEvents {
        level,
        message,
        dropped,
        within,
    } = report;
    let seconds = within.as_secs().max(1);
    match *level {
        Level::ERROR => {
            tracing::error!(target: REPORTS, dropped, "{message} ({dropped} more in {seconds} s)");
        }
        Level::WARN => {
            tracing::warn!(target: REPORTS, dropped, "{message} ({dropped} more in {seconds} s)");
        }
        _ => tracing::info!(target: REPORTS, dropped, "{message} ({dropped} more in {seconds} s)"),
    }
}

/// The value of the first field that distinguishes kinds.
struct KindVisitor(Option<String>);

impl Visit for KindVisitor {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if self.0.is_none() && KIND_FIELDS.contains(&field.name()) {
            self.0 = Some(format!("{}={value:?}", field.name()));
        }
    }
}

/// The first line of the message.
struct MessageVisitor(String);

impl Visit for MessageVisitor {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            let whole = format!("{value:?}");
            self.0 = whole
                .lines()
                .next()
                .unwrap_or_default()
                .chars()
                .take(MAX_MESSAGE)
                .collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::kept_bytes::KeptBytes;
    use std::sync::atomic::{AtomicU64, Ordering};
    use tracing_subscriber::fmt;
    use tracing_subscriber::layer::SubscriberExt as _;

    /// The lines since the last call.
    fn lines(written: &KeptBytes) -> Vec<String> {
        let text = written.text();
        text.lines().map(|line| line.trim().to_owned()).collect()
    }

    /// Runs `scene` with limited events, the seconds of their clock and what is written.
    fn limited(scene: impl FnOnce(&EventLimits, &AtomicU64, &KeptBytes, &Receiver<()>)) {
        let seconds = Arc::new(AtomicU64::new(1_000));
        let written = KeptBytes::default();
        let clock = Arc::clone(&seconds);
        let now = move || Duration::from_secs(clock.load(Ordering::SeqCst));
        let (limits, has_dropped) = EventLimits::new(Box::new(now));
        let to = written.clone();
        let layer = fmt::layer()
            .with_writer(move || to.clone())
            .without_time()
            .with_target(false)
            .with_ansi(false);
        let events = tracing_subscriber::registry()
            .with(limits.clone())
            .with(layer);
        tracing::subscriber::with_default(events, || {
            scene(&limits, &seconds, &written, &has_dropped);
        });
    }

    fn fetch_fails(endpoint: &str) {
        tracing::warn!(endpoint, reason = "of many", "a fetch failed");
    }

    fn fetches_fail(times: u32) {
        (0..times).for_each(|_| fetch_fails("index"));
    }

    #[test]
    fn flood_logs_ten_events_and_one_summary_per_window() {
        limited(|limits, seconds, written, has_dropped| {
            fetches_fail(10);
            assert_eq!(lines(written).len(), 10);
            assert!(has_dropped.try_recv().is_err());
            fetches_fail(253);
            assert!(has_dropped.try_recv().is_ok(), "the reporter is woken");
            limits.report();
            assert_eq!(lines(written), [""; 0], "the window is not over");
            // Without any further event.
            seconds.fetch_add(10, Ordering::SeqCst);
            limits.report();
            let report = "WARN a fetch failed (endpoint=\"index\") (253 more in 10 s) dropped=253";
            assert_eq!(lines(written), [report]);
            limits.report();
            limits.finish();
            assert_eq!(lines(written), [""; 0]);
            fetch_fails("index");
            assert_eq!(lines(written).len(), 1, "a new window");
        });
    }

    #[test]
    fn flood_of_one_kind_affects_no_other_events() {
        limited(|_, _, written, _| {
            for _ in 0..100 {
                fetch_fails("index");
                tracing::debug!("seen");
            }
            fetch_fails("models");
            tracing::error!("the ledger is unreachable");
            let lines = lines(written);
            let count = |words: &str| lines.iter().filter(|line| line.contains(words)).count();
            let counts = ["index", "seen", "models", "ledger"].map(count);
            assert_eq!(counts, [10, 100, 1, 1]);
        });
    }

    #[test]
    fn dropped_events_are_reported_at_exit() {
        limited(|limits, seconds, written, _| {
            for _ in 0..12 {
                tracing::error!("it failed\nfor a reason of two lines");
            }
            seconds.fetch_add(3, Ordering::SeqCst);
            lines(written);
            limits.finish();
            assert_eq!(
                lines(written),
                ["ERROR it failed (2 more in 3 s) dropped=2"]
            );
        });
    }

    #[test]
    fn a_window_without_dropped_events_ends_by_itself_and_a_late_report_loses_none() {
        limited(|limits, seconds, written, _| {
            for _ in 0..5 {
                fetches_fail(10);
                seconds.fetch_add(10, Ordering::SeqCst);
            }
            assert_eq!(lines(written).len(), 50);
            fetches_fail(11);
            seconds.fetch_add(60, Ordering::SeqCst);
            fetch_fails("index");
            assert_eq!(lines(written).len(), 10);
            limits.report();
            assert!(lines(written)[0].contains("(2 more in 60 s)"));
        });
    }

    #[test]
    fn memory_is_bounded_for_any_field_values() {
        limited(|limits, seconds, written, _| {
            for number in 0..10 * MAX_KINDS {
                fetch_fails(&number.to_string());
            }
            assert_eq!(
                limits.0.windows.lock().0.len(),
                MAX_KINDS + 1,
                "those, and the place in the code"
            );
            assert_eq!(lines(written).len(), MAX_KINDS + 10);
            // Windows that are over make room.
            seconds.fetch_add(10, Ordering::SeqCst);
            fetch_fails("another");
            assert_eq!(limits.0.windows.lock().0.len(), 2);
        });
    }
}
