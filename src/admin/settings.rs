//! The active settings over the side port: `GET /v1/settings`.
//!
//! `config` makes the list, without secrets. Does not change settings; see `reload`.

use http::Method;
use serde::Serialize;
use serde_json::{Value, json};

use super::command::CommandProblem;
use super::paths::SETTINGS;

/// An active setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SettingView {
    /// Its path, such as `upstream.timeout`.
    pub path: String,
    /// Its value as written in a file; null if not set. Never a secret.
    pub value: Value,
    /// Its source: `default`, `file`, `environment VARIABLE` or `flag`.
    pub from: String,
}

pub(super) fn handle(settings: &[SettingView], method: &Method, path: &str) -> Result<Value, CommandProblem> {
    match (method, path) {
        (&Method::GET, SETTINGS) => Ok(json!({ "settings": settings })),
        _ => Err(CommandProblem::not_found()),
    }
}
