//! The log level. A change applies until the next reload or restart, and does not affect the setting `log.level`.

use serde_json::json;

use scoregate_observe::telemetry::log;

use super::{
    command::LogCommand,
    command_problem::{CommandProblem, CommandResult},
};

/// Shows or changes the level.
pub fn perform(command: LogCommand, actor: &str) -> CommandResult {
    match command {
        LogCommand::Show {} => Ok(json!({ "level": log::level() })),
        LogCommand::Set { level } => set(&level, actor),
    }
}

fn set(level: &str, actor: &str) -> CommandResult {
    if !log::is_level(level) {
        return Err(CommandProblem::bad(format!("level: {}", log::LEVELS)));
    }
    let Some(before) = log::level() else {
        return Err(CommandProblem::bad("this program has no log"));
    };
    let log_change = || tracing::info!(actor, before, level, "log level changed");
    // Logged before the change if possible, because the new level may suppress the line.
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
