//! The active settings on the side port: `GET /v1/settings/list`.
//!
//! `config` builds the list without secrets. `reload` changes settings.

use serde::Serialize;
use serde_json::Value;

/// An active setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SettingView {
    /// The path of the setting, such as `upstream.timeout`.
    pub path: String,
    /// The value as written in a file. Null if not set. Never a secret.
    pub value: Value,
    /// The source of the value: `default`, `file`, `environment VARIABLE` or `flag`.
    pub from: String,
}
