//! Limits how many events of one place in the code are logged: the first [`BURST`] in ten seconds are. The rest are counted, and
//! their number is logged at the end of that time.
//!
//! `debug` and `trace` events are not limited.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tracing::callsite::Identifier;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// Events of a place that are logged between two reports.
const BURST: u64 = 10;
/// Interval between reports.
const REPORT_EVERY: Duration = Duration::from_secs(10);
/// The target of reports. They are not limited, and `log` enables them at every level: a report follows events that
/// were enabled.
pub(super) const REPORTS: &str = "scoregate::event_limits";

/// The events of a place since the last report.
#[derive(Clone, Copy, Debug)]
struct CountedEvents {
    place: &'static Metadata<'static>,
    number: u64,
}

/// The limits, as a layer before the one that writes. Clones share their counts.
// Each count is complete by itself, so a panic leaves nothing half changed. There are as many counts as places in the code.
#[derive(Clone, Default)]
pub(super) struct EventLimits(Arc<Mutex<HashMap<Identifier, CountedEvents>>>);

impl EventLimits {
    /// Starts the thread that reports, which ends with the process.
    pub(super) fn report_from_a_thread(&self) -> std::io::Result<()> {
        let limits = self.clone();
        let report = move || {
            loop {
                std::thread::sleep(REPORT_EVERY);
                limits.report();
            }
        };
        let thread = std::thread::Builder::new().name("event-limits".into());
        thread.spawn(report).map(drop)
    }

    /// Logs how many events were dropped since the last report.
    pub(super) fn report(&self) {
        // The lock is released before events are made of the counts.
        let counted = std::mem::take(&mut *self.0.lock());
        for CountedEvents { place, number } in counted.into_values() {
            let dropped = number.saturating_sub(BURST);
            if dropped > 0 {
                tracing::warn!(
                    target: REPORTS,
                    dropped,
                    place = place.target(),
                    line = place.line(),
                    "more events of one kind than are logged"
                );
            }
        }
    }
}

impl<S: Subscriber> Layer<S> for EventLimits {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        let place = event.metadata();
        if *place.level() > Level::INFO || place.target() == REPORTS {
            return true;
        }
        let mut counts = self.0.lock();
        let counted = counts
            .entry(place.callsite())
            .or_insert(CountedEvents { place, number: 0 });
        counted.number += 1;
        counted.number <= BURST
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
