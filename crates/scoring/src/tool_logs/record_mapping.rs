//! The part of the mapping file that names the fields of records.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::RunFailure;

/// The fields of a record. `a.b` is the member `b` of the member `a`, and `a.0` the first element of the list `a`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordMapping {
    pub(super) model: FieldSource,
    pub(super) task: FieldSource,
    /// Else the name of the file ends with the time.
    pub(super) time: Option<String>,
    pub(super) sample: Option<String>,
    pub(super) latency_ms: Option<String>,
    pub(super) cost: Option<String>,
    pub(super) error: Option<String>,
    /// A member of records that describe those after them.
    pub(super) header: Option<String>,
    /// Values of records that are samples.
    #[serde(default)]
    pub(super) only: BTreeMap<String, String>,
    /// Failures by a part of the text of an error, in lower case.
    #[serde(default)]
    pub(super) failures: BTreeMap<String, RunFailure>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum FieldSource {
    Path(String),
    Fixed { value: String },
}
