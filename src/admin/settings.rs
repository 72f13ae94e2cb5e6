//! The active settings over the side port: `GET /v1/settings/list`.
//!
//! `config` makes the list, without secrets. Does not change settings; see `reload`.

use serde::Serialize;
use serde_json::Value;

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
