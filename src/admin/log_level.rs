//! The log level over the side port: `GET /v1/log`, and `POST /v1/log` to change it until the next reload or start.
//!
//! The setting `log.level` stays unchanged.

use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use scoregate_base::json;
use scoregate_observe::telemetry::log;

use super::command::CommandProblem;
use super::paths::LOG;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LevelBody {
    level: String,
}

pub(super) fn handle(method: &Method, path: &str, body: &[u8], actor: &str) -> Result<Value, CommandProblem> {
    match (method, path) {
        (&Method::GET, LOG) => Ok(json!({ "level": log::level() })),
        (&Method::POST, LOG) => {
            let LevelBody { level } = json::read(body).map_err(|bad| CommandProblem::bad(bad.to_string()))?;
            change(&level, actor)?;
            Ok(json!({ "level": level }))
        }
        _ => Err(CommandProblem::not_found()),
    }
}

fn change(level: &str, actor: &str) -> Result<(), CommandProblem> {
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
    Ok(())
}
