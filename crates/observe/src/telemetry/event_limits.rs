//! Limits the number of logged events per call site: only the first [`BURST`] in ten seconds are logged. Further events
//! are counted, and their number is logged at the end of that time.
//!
//! `debug` and `trace` events are not limited.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tracing::{Event, Level, Metadata, Subscriber, callsite::Identifier};
use tracing_subscriber::{Layer, layer::Context};

/// Maximum number of events of a call site that are logged between two reports.
const BURST: u64 = 10;
/// Interval between reports.
const REPORT_EVERY: Duration = Duration::from_secs(10);
/// The target of reports. They are not limited, and `log` enables them at every level, because a report is written only
/// after events that were enabled.
pub const REPORTS: &str = "scoregate::event_limits";

/// The number of events from a call site since the last report.
#[derive(Clone, Copy, Debug)]
struct CountedEvents {
    place: &'static Metadata<'static>,
    number: u64,
}

/// The limits, as a layer in front of the layer that writes. Clones share their counts.
// Each count is updated in one step, so a panic leaves nothing half changed. There is at most one count for each call site.
#[derive(Clone, Default)]
pub struct EventLimits(Arc<Mutex<HashMap<Identifier, CountedEvents>>>);

impl EventLimits {
    /// Starts the reporting thread, which ends with the process.
    pub fn report_from_a_thread(&self) -> std::io::Result<()> {
        let limits = self.clone();
        let thread = std::thread::Builder::new().name("event-limits".into());
        let started = thread.spawn(move || {
            loop {
                std::thread::sleep(REPORT_EVERY);
                limits.report();
            }
        });
        started.map(drop)
    }

    /// Logs how many events were dropped since the last report.
    pub fn report(&self) {
        // The lock is released before the reports are logged.
        let counted = std::mem::take(&mut *self.0.lock());
        for CountedEvents { place, number } in counted.into_values() {
            let dropped = number.saturating_sub(BURST);
            if dropped > 0 {
                tracing::warn!(
                    target: REPORTS,
                    dropped,
                    place = place.target(),
                    line = place.line(),
                    "too many events of one kind; the rest were not logged"
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
    use std::io::Write;
    use tracing_subscriber::fmt;
    use tracing_subscriber::layer::SubscriberExt as _;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl Written {
        /// The lines since the last call.
        fn lines(&self) -> Vec<String> {
            let text = std::mem::take(&mut *self.0.lock());
            let text = String::from_utf8(text).unwrap();
            text.lines().map(|line| line.trim().to_owned()).collect()
        }
    }

    #[test]
    fn a_flood_logs_ten_events_and_their_number_and_affects_no_other_events() {
        let limits = EventLimits::default();
        let written = Written::default();
        let to = written.clone();
        let lines = fmt::layer()
            .with_writer(move || to.clone())
            .without_time()
            .with_target(false)
            .with_ansi(false);
        let events = tracing_subscriber::registry()
            .with(limits.clone())
            .with(lines);
        tracing::subscriber::with_default(events, || {
            for _ in 0..2 {
                for _ in 0..263 {
                    tracing::warn!("a fetch failed");
                    tracing::debug!("seen");
                }
                tracing::error!("the ledger is unreachable");
                let lines = written.lines();
                let count = |words: &str| lines.iter().filter(|line| line.contains(words)).count();
                let counts = ["fetch", "seen", "ledger"].map(count);
                assert_eq!(counts, [10, 263, 1]);
                limits.report();
                let [report] = &written.lines()[..] else {
                    panic!("one report")
                };
                assert!(report.contains("dropped=253"), "{report}");
                limits.report();
                assert_eq!(written.lines(), [""; 0]);
            }
        });
    }
}
