//! The log level, which can be changed until the next reload or start. The setting `log.level` stays unchanged.

use serde_json::{Value, json};

use scoregate_observe::telemetry::log;

use super::command_problem::{CommandProblem, CommandResult};

/// The current level.
pub(super) fn show() -> Value {
    json!({ "level": log::level() })
}

/// Changes the level.
pub(super) fn set(level: &str, actor: &str) -> CommandResult {
    if !log::is_level(level) {
        return Err(CommandProblem::bad(format!("level: {}", log::LEVELS)));
    }
    let Some(before) = log::level() else {
        return Err(CommandProblem::bad("this program has no log"));
    };
    let log_change = || tracing::info!(actor, before, level, "log level changed");
    // Logged before the change if possible: the new level may suppress it.
    let was_enabled = tracing::enabled!(tracing::Level::INFO);
    if was_enabled {
        log_change();
    }
    log::set_level(level);
    if !was_enabled {
        log_change();
    }
    Ok(json!({ "level": level }))
}
