//! How much the log says, over the side port: `GET /v1/log`, and `POST /v1/log` to have it say more or less until the next
//! reload or start.
//!
//! Not for: the level that is set (`log.level`), which this leaves as it is.

use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::json;
use crate::telemetry::log;

use super::command::CommandProblem;
use super::paths::LOG;

/// A level, as it is asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct LevelBody {
    level: String,
}

/// Answers a request for it.
pub(super) fn answer(method: &Method, path: &str, body: &[u8], who: &str) -> Result<Value, CommandProblem> {
    match (method, path) {
        (&Method::GET, LOG) => Ok(json!({ "level": log::level() })),
        (&Method::POST, LOG) => {
            let LevelBody { level } = json::read(body).map_err(|bad| CommandProblem::bad(bad.to_string()))?;
            change(&level, who)?;
            Ok(json!({ "level": level }))
        }
        _ => Err(CommandProblem::not_found()),
    }
}

fn change(level: &str, who: &str) -> Result<(), CommandProblem> {
    if !log::is_level(level) {
        return Err(CommandProblem::bad(format!("level: {}", log::LEVELS)));
    }
    let Some(before) = log::level() else {
        return Err(CommandProblem::bad("nobody listens to the events of this program"));
    };
    let tell = || tracing::info!(actor = who, before, level, "log level changed");
    // Before, if it is heard then: the new level may be one that leaves it out.
    let was_heard = tracing::enabled!(tracing::Level::INFO);
    if was_heard {
        tell();
    }
    log::set_level(level);
    if !was_heard {
        tell();
    }
    Ok(())
}
