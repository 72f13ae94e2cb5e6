//! The log level over the side port: `GET /v1/log`, and `POST /v1/log` to change it until the next reload or start.
//!
//! The setting `log.level` stays unchanged.

use serde::Deserialize;
use serde_json::{Value, json};

use scoregate_base::json;
use scoregate_observe::telemetry::log;

use super::command_problem::{CommandProblem, CommandResult};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LevelBody {
    level: String,
}

/// The current level.
pub(super) fn read() -> Value {
    json!({ "level": log::level() })
}

/// Changes the level.
pub(super) fn change(body: &[u8], actor: &str) -> CommandResult {
    let LevelBody { level } =
        json::read(body).map_err(|bad| CommandProblem::bad(bad.to_string()))?;
    if !log::is_level(&level) {
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
    log::set_level(&level);
    if !was_enabled {
        log_change();
    }
    Ok(json!({ "level": level }))
}
