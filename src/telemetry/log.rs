//! The log: events for whoever is on call, on standard error, as lines for people or as JSON.
//!
//! Events only (start, stop, failures, changes); requests are counted, not logged here. Nothing a stranger sent may be
//! logged except through `{:?}`, which escapes it; keys cannot be, their type does not print.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

/// How the log looks and how much it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// One JSON object a line, in place of text.
    pub json: bool,
    /// `error`, `warn`, `info`, `debug` or `trace`, or a filter such as `info,scoregate::upstream=debug`.
    pub level: String,
}

/// Sends events to standard error from now on. Only the program does this, once; tests leave events unheard.
pub fn start(config: &LogConfig) {
    let filter = EnvFilter::try_new(&config.level).unwrap_or_else(|_| EnvFilter::new("info"));
    let base = fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .log_internal_errors(false);
    // Somebody else's subscriber being there already is no reason not to serve.
    let started = if config.json { base.json().try_init() } else { base.with_target(false).try_init() };
    if started.is_err() {
        tracing::debug!("events are already being listened to");
    }
}

/// Whether a text is a level or filter that [`start`] understands.
pub fn is_level(text: &str) -> bool {
    let words = ["error", "warn", "info", "debug", "trace", "off"];
    let level = |part: &str| words.contains(&part.rsplit('=').next().unwrap_or("").trim());
    !text.is_empty() && text.split(',').all(level) && EnvFilter::try_new(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelled_level_is_noticed() {
        for good in ["info", "warn,scoregate::upstream=debug", "off"] {
            assert!(is_level(good), "{good}");
        }
        for bad in ["", "loud", "info,", "scoregate=loudly"] {
            assert!(!is_level(bad), "{bad}");
        }
    }
}
