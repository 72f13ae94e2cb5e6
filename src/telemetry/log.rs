//! The event log: events for the operator, on standard error, as lines for people or as JSON.
//!
//! Events only (start, stop, failures, changes); requests are counted and go to the access log. Nothing a client sent
//! may be logged except through `{:?}`, which escapes it; keys cannot be, their type does not print. Lines are
//! formatted by the caller and written by a thread of their own, panics included: nobody waits for standard error.

use std::io::Write;
use std::panic::PanicHookInfo;
use std::sync::OnceLock;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tracing::{Level, Metadata};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Registry, fmt, reload};

pub use super::event_limits::RunningTime;
use super::event_limits::{EventLimits, REPORTS};
use super::line_writer::LineWriter;
use super::metrics::{self, Counter, MetricFamily, MetricLabel};

/// Events that may wait to be written. Their kinds are limited, so this is far more than a burst; and few enough that
/// a reader who stopped shows in the count of lost lines soon.
const QUEUE: usize = 256;

/// How the log looks and how much it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// One JSON object a line, in place of text.
    pub json: bool,
    /// `error`, `warn`, `info`, `debug` or `trace`, or a filter such as `info,scoregate::upstream=debug`.
    pub level: String,
}

/// A log of the program, as the label of its lost lines.
#[derive(Clone, Copy, Debug)]
pub enum LogStream {
    /// One line per request, on standard output.
    Access,
    /// Events, on standard error.
    Events,
}

impl MetricLabel for LogStream {
    const NAME: &'static str = "log";
    fn index(self) -> usize {
        self as usize
    }
}

/// The parts of a log that was started.
struct StartedLog {
    /// Changes the level while events are logged.
    filter: reload::Handle<EnvFilter, Registry>,
    writer: LineWriter,
    limits: EventLimits,
}

static STARTED: OnceLock<StartedLog> = OnceLock::new();
/// The level in force.
static LEVEL: Mutex<String> = Mutex::new(String::new());

/// What a level has to be, for whoever wrote another.
pub const LEVELS: &str =
    "write error, warn, info, debug, trace, or a filter such as \"info,scoregate::upstream=debug\"";

/// Writes events and panics to standard error from now on. Only the program does this, once; tests have no log. Fails
/// if its threads cannot be started.
pub fn start(config: &LogConfig, now: RunningTime) -> std::io::Result<()> {
    let writer = LineWriter::start("event-log", QUEUE, std::io::stderr())?;
    let (limits, has_dropped) = EventLimits::new(now);
    limits.report_from_a_thread(has_dropped)?;
    let (filter, handle) = reload::Layer::new(filter(&config.level));
    let to = writer.clone();
    let lines =
        fmt::layer().with_writer(move || EventLines(to.clone())).with_ansi(false).log_internal_errors(false);
    let events =
        tracing_subscriber::registry().with(filter).with(filter_fn(is_ours_to_tell)).with(limits.clone());
    let started = if config.json {
        events.with(lines.json()).try_init()
    } else {
        events.with(lines.with_target(false)).try_init()
    };
    config.level.clone_into(&mut lock());
    // Another subscriber being there already is no reason not to serve.
    if started.is_err() || STARTED.set(StartedLog { filter: handle, writer, limits }).is_err() {
        tracing::debug!("event log already started");
        return Ok(());
    }
    std::panic::set_hook(Box::new(log_panic));
    Ok(())
}

/// Takes the place of the standard hook, which writes to standard error on the thread that panics.
fn log_panic(panic: &PanicHookInfo<'_>) {
    let thread = std::thread::current();
    let (thread, place) = (thread.name().unwrap_or("unnamed"), panic.location().map(ToString::to_string));
    let message = panic.payload_as_str().unwrap_or("no message");
    // Empty unless RUST_BACKTRACE asks for one.
    let backtrace = std::backtrace::Backtrace::capture();
    let backtrace =
        (backtrace.status() == std::backtrace::BacktraceStatus::Captured).then(|| backtrace.to_string());
    tracing::error!(thread, place, panic = ?message, backtrace, "thread panicked");
}

/// The event log's output: each write is one line.
struct EventLines(LineWriter);

impl Write for EventLines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let line = bytes.to_vec();
        self.0.send(Box::new(move |text| text.extend_from_slice(&line)));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Writes a line to standard error as it is, in order with the events. Returns false if the log was not started.
pub fn say(line: &str) -> bool {
    let Some(StartedLog { writer, .. }) = STARTED.get() else { return false };
    let line = format!("{line}\n");
    writer.send(Box::new(move |text| text.extend_from_slice(line.as_bytes())));
    true
}

/// Writes what is queued, and how many events were dropped; waits for at most `patience`. Blocks.
pub fn finish(patience: Duration) {
    if let Some(StartedLog { writer, limits, .. }) = STARTED.get() {
        limits.finish();
        writer.finish(patience);
    }
}

/// Registers the counters of lost lines, and counts those of the event log from its start on.
pub fn count_lost_lines(registry: &metrics::MetricsRegistry) -> MetricFamily<Counter, LogStream> {
    let lost = registry.counters("scoregate_log_lines_lost_total", &["access", "events"].map(str::to_owned));
    if let (Some(StartedLog { writer, .. }), Some(counter)) = (STARTED.get(), lost.of(LogStream::Events)) {
        writer.lost().count_in(counter.clone());
    }
    lost
}

/// Says more or less than before, from now on.
pub fn set_level(level: &str) {
    let Some(started) = STARTED.get() else { return };
    // Held meanwhile, so that what is said to be the level is the one of whoever came last.
    let mut now = lock();
    match started.filter.reload(filter(level)) {
        Ok(()) => level.clone_into(&mut now),
        Err(error) => tracing::warn!(%error, level, "log level unchanged"),
    }
}

/// How much the log says; none where nobody listens.
pub fn level() -> Option<String> {
    STARTED.get().map(|_| lock().clone())
}

/// It is replaced as a whole, so a panic elsewhere does no harm.
fn lock() -> MutexGuard<'static, String> {
    LEVEL.lock()
}

/// What the codec says below its warnings quotes what strangers sent, a malformed head with a key in it too: that is
/// never told, whatever level is asked for.
fn is_ours_to_tell(event: &Metadata<'_>) -> bool {
    let is_codec = event.target() == "h2" || event.target().starts_with("h2::");
    !is_codec || *event.level() <= Level::WARN
}

/// The codec warns of each frame that it did not ask for, which would let strangers write the log: what such a
/// connection comes to is counted. Who wants to hear it says `h2=warn`.
fn filter(level: &str) -> EnvFilter {
    let quiet = |level: &str| EnvFilter::try_new(format!("{REPORTS}=info,h2=error,{level}"));
    quiet(level).or_else(|_| quiet("info")).unwrap_or_default()
}

/// Whether a text is a level or filter that we understand.
pub fn is_level(text: &str) -> bool {
    let words = ["error", "warn", "info", "debug", "trace", "off"];
    let level = |part: &str| words.contains(&part.rsplit('=').next().unwrap_or("").trim());
    let is_one_line = !text.is_empty() && !text.contains(char::is_control);
    is_one_line && text.split(',').all(level) && EnvFilter::try_new(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_level_is_noticed() {
        for good in ["info", "warn,scoregate::upstream=debug", "off"] {
            assert!(is_level(good), "{good}");
        }
        for bad in ["", "loud", "info,", "scoregate=loudly", "info,\nwarn"] {
            assert!(!is_level(bad), "{bad}");
        }
    }
}
