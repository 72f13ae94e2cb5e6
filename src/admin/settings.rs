//! The settings in force, over the side port: `GET /v1/settings`.
//!
//! Whoever knows settings makes the list, and leaves secrets out of it. Not for: changing any (`reload`).

use http::Method;
use serde::Serialize;
use serde_json::{Value, json};

use super::command::CommandProblem;
use super::paths::SETTINGS;

/// A setting in force.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SettingView {
    /// Its path, such as `upstream.timeout`.
    pub path: String,
    /// Its value as it would be written; null if nothing is said. Never a secret.
    pub value: Value,
    /// Where it was said: `default`, `file`, `environment VARIABLE` or `flag`.
    pub from: String,
}

/// Answers a request for them.
pub(super) fn answer(settings: &[SettingView], method: &Method, path: &str) -> Result<Value, CommandProblem> {
    match (method, path) {
        (&Method::GET, SETTINGS) => Ok(json!({ "settings": settings })),
        _ => Err(CommandProblem::not_found()),
    }
}
