//! The log: events for whoever is on call, on standard error, as lines for people or as JSON.
//!
//! Events only (start, stop, failures, changes); requests are counted, not logged here. Nothing a stranger sent may be
//! logged except through `{:?}`, which escapes it; keys cannot be, their type does not print.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use tracing::{Level, Metadata};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Registry, fmt, reload};

/// How the log looks and how much it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// One JSON object a line, in place of text.
    pub json: bool,
    /// `error`, `warn`, `info`, `debug` or `trace`, or a filter such as `info,scoregate::upstream=debug`.
    pub level: String,
}

/// What is heard can be changed while events are.
type Hearing = reload::Handle<EnvFilter, Registry>;

static HEARING: OnceLock<Hearing> = OnceLock::new();
/// How much is heard.
static LEVEL: Mutex<String> = Mutex::new(String::new());

/// What a level has to be, for whoever wrote another.
pub const LEVELS: &str =
    "write error, warn, info, debug, trace, or a filter such as \"info,scoregate::upstream=debug\"";

/// Sends events to standard error from now on. Only the program does this, once; tests leave events unheard.
pub fn start(config: &LogConfig) {
    let (filter, hearing) = reload::Layer::new(filter(&config.level));
    let base = fmt::layer().with_writer(std::io::stderr).with_ansi(false).log_internal_errors(false);
    let heard = tracing_subscriber::registry().with(filter).with(filter_fn(is_ours_to_tell));
    let started = if config.json {
        heard.with(base.json()).try_init()
    } else {
        heard.with(base.with_target(false)).try_init()
    };
    // Somebody else's subscriber being there already is no reason not to serve.
    config.level.clone_into(&mut lock());
    if started.is_err() || HEARING.set(hearing).is_err() {
        tracing::debug!("events are already being listened to");
    }
}

/// Says more or less than before, from now on.
pub fn set_level(level: &str) {
    let Some(hearing) = HEARING.get() else { return };
    // Held meanwhile, so that what is said to be the level is the one of whoever came last.
    let mut now = lock();
    match hearing.reload(filter(level)) {
        Ok(()) => level.clone_into(&mut now),
        Err(error) => tracing::warn!(%error, level, "the log goes on as before"),
    }
}

/// How much the log says; none where nobody listens.
pub fn level() -> Option<String> {
    HEARING.get().map(|_| lock().clone())
}

/// It is replaced as a whole, so a panic elsewhere does no harm.
fn lock() -> MutexGuard<'static, String> {
    LEVEL.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the codec says below its warnings quotes what strangers sent, a malformed head with a key in it too: that is never
/// told, whatever level is asked for.
fn is_ours_to_tell(event: &Metadata<'_>) -> bool {
    let is_codec = event.target() == "h2" || event.target().starts_with("h2::");
    !is_codec || *event.level() <= Level::WARN
}

/// The codec warns of each frame that it did not ask for, which would let strangers write the log: what such a connection
/// comes to is counted. Who wants to hear it says `h2=warn`.
fn filter(level: &str) -> EnvFilter {
    let quiet = |level: &str| EnvFilter::try_new(format!("h2=error,{level}"));
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
