//! The event log: events for the operator, on standard error, as text or as JSON.
//!
//! It contains only events (start, shutdown, failures, changes). Requests are in the access log. Text from clients may be
//! logged only through `{:?}`, which escapes it. Keys cannot be logged, because their type cannot be printed. All lines,
//! including panic messages, are formatted by the caller and written by a separate thread, so no caller waits
//! for standard error.

use std::{io::Write, panic::PanicHookInfo, sync::OnceLock, time::Duration};

use parking_lot::Mutex;
use tracing::{Level, Metadata};
use tracing_subscriber::{
    Registry,
    filter::{Targets, filter_fn},
    fmt,
    layer::SubscriberExt as _,
    reload,
    util::SubscriberInitExt as _,
};

use super::{
    event_limits::{EventLimits, REPORTS},
    line_writer::LineWriter,
    metrics::{self, Counter, MetricFamily, metric_label},
};

/// Maximum number of queued events. Events are limited per call site, so this is far more than a burst. It is small
/// enough that a stalled reader soon becomes visible in the count of lost lines.
const QUEUE: usize = 256;

/// Format and level of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// One JSON object per line instead of text.
    pub json: bool,
    /// `error`, `warn`, `info`, `debug` or `trace`, or a filter such as `info,scoregate::upstream=debug`.
    pub level: String,
}

metric_label! {
    /// A log of the program, as a label of the lost-lines metric.
    pub enum LogStream: "log" {
        /// One line per request, on standard output.
        Access = "access",
        /// Events, on standard error.
        Events = "events",
    }
}

/// The log after startup.
struct StartedLog {
    /// The handle that changes the level at run time.
    filter: reload::Handle<Targets, Registry>,
    writer: LineWriter,
    limits: EventLimits,
}

static STARTED: OnceLock<StartedLog> = OnceLock::new();
/// The current level. Replaced as a whole, so a panic leaves nothing half changed.
static LEVEL: Mutex<String> = Mutex::new(String::new());

/// The expected form of a level, for error messages.
pub const LEVELS: &str =
    "write error, warn, info, debug, trace, or a filter such as \"info,scoregate::upstream=debug\"";

/// Starts writing events and panics to standard error. The program calls this once. Tests have no log. Fails if the
/// threads cannot be started.
pub fn start(config: &LogConfig) -> std::io::Result<()> {
    let writer = LineWriter::start("event-log", QUEUE, std::io::stderr())?;
    let limits = EventLimits::default();
    limits.report_from_a_thread()?;
    let (filter, handle) = reload::Layer::new(filter(&config.level));
    let to = writer.clone();
    let lines = fmt::layer()
        .with_writer(move || EventLines(to.clone()))
        .with_ansi(false)
        .log_internal_errors(false);
    let events = tracing_subscriber::registry()
        .with(filter)
        .with(filter_fn(may_be_logged))
        .with(limits.clone());
    let started = if config.json {
        events.with(lines.json()).try_init()
    } else {
        events.with(lines.with_target(false)).try_init()
    };
    config.level.clone_into(&mut LEVEL.lock());
    // It is not an error if a subscriber already exists.
    if started.is_err()
        || STARTED
            .set(StartedLog {
                filter: handle,
                writer,
                limits,
            })
            .is_err()
    {
        tracing::debug!("event log already started");
        return Ok(());
    }
    std::panic::set_hook(Box::new(log_panic));
    Ok(())
}

/// The panic hook. It replaces the standard hook, which writes to standard error on the panicking thread.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let thread = thread.name().unwrap_or("unnamed");
    let location = panic.location().map(ToString::to_string);
    let message = panic.payload_as_str().unwrap_or("no message");
    // The backtrace is empty unless RUST_BACKTRACE is set.
    let backtrace = std::backtrace::Backtrace::capture();
    let backtrace = (backtrace.status() == std::backtrace::BacktraceStatus::Captured)
        .then(|| backtrace.to_string());
    tracing::error!(thread, location, panic = ?message, backtrace, "thread panicked");
}

/// The output of the event log. Each write is one line.
struct EventLines(LineWriter);

impl Write for EventLines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let line = bytes.to_vec();
        self.0
            .send(Box::new(move |text| text.extend_from_slice(&line)));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Writes a line unchanged to standard error, in order with the events. Returns false if the log was not started.
pub fn write_line(line: &str) -> bool {
    let Some(StartedLog { writer, .. }) = STARTED.get() else {
        return false;
    };
    let line = format!("{line}\n");
    writer.send(Box::new(move |text| {
        text.extend_from_slice(line.as_bytes());
    }));
    true
}

/// Reports dropped events and waits until queued lines are written, for at most `timeout`. Blocks.
pub fn finish(timeout: Duration) {
    if let Some(StartedLog { writer, limits, .. }) = STARTED.get() {
        limits.report();
        writer.finish(timeout);
    }
}

/// Registers the counters of lost lines. The event log's counter includes all lines lost since startup.
pub fn count_lost_lines(registry: &metrics::MetricsRegistry) -> MetricFamily<Counter, LogStream> {
    let lost = registry.counters("scoregate_log_lines_lost_total");
    if let Some(StartedLog { writer, .. }) = STARTED.get()
        && let Some(counter) = lost.of(LogStream::Events)
    {
        writer.lost().count_in(counter.clone());
    }
    lost
}

/// Changes the level.
pub fn set_level(level: &str) {
    let Some(started) = STARTED.get() else { return };
    // The lock is held during the change, so that `level` returns the level that is in force.
    let mut now = LEVEL.lock();
    match started.filter.reload(filter(level)) {
        Ok(()) => level.clone_into(&mut now),
        Err(error) => tracing::warn!(%error, level, "log level unchanged"),
    }
}

/// The current level; `None` if the log was not started.
pub fn level() -> Option<String> {
    STARTED.get().map(|_| LEVEL.lock().clone())
}

/// Whether an event may be logged. Events of the HTTP codec below `warn` quote text from clients, such as a malformed
/// head that contains a key. They are never logged, at any level.
fn may_be_logged(event: &Metadata<'_>) -> bool {
    let is_codec = event.target() == "h2" || event.target().starts_with("h2::");
    !is_codec || *event.level() <= Level::WARN
}

/// The filter for a level. The HTTP/2 codec warns about every unexpected frame, so clients could flood the log. These
/// warnings are disabled unless the level contains `h2=warn`. Metrics count such connections.
fn filter(level: &str) -> Targets {
    [level, "info"]
        .into_iter()
        .find_map(|level| format!("{REPORTS}=info,h2=error,{level}").parse().ok())
        .unwrap_or_default()
}

/// Whether a string is a valid level or filter.
pub fn is_level(text: &str) -> bool {
    let words = ["error", "warn", "info", "debug", "trace", "off"];
    let is_one_line = !text.is_empty() && !text.contains(char::is_control);
    is_one_line
        && text
            .split(',')
            .all(|part| words.contains(&part.rsplit('=').next().unwrap_or("").trim()))
        && text.parse::<Targets>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelled_level_is_rejected() {
        for good in ["info", "warn,scoregate::upstream=debug", "off"] {
            assert!(is_level(good), "{good}");
        }
        for bad in ["", "loud", "info,", "scoregate=loudly", "info,\nwarn"] {
            assert!(!is_level(bad), "{bad}");
        }
    }
}
