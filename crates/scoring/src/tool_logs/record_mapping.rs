//! The part of the mapping file that names the fields of records.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::RunFailure;

/// The fields of a record. `a.b` is the member `b` of the member `a`, and `a.0` is the first element of the list `a`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordMapping {
    pub(super) model: FieldSource,
    pub(super) task: FieldSource,
    /// The path of the time. If absent, the time is read from the end of the file name.
    pub(super) time: Option<String>,
    pub(super) sample: Option<String>,
    pub(super) latency_ms: Option<String>,
    pub(super) cost: Option<String>,
    pub(super) error: Option<String>,
    /// Records with this member are headers, which describe the records after them.
    pub(super) header: Option<String>,
    /// Only records with these values are samples.
    #[serde(default)]
    pub(super) only: BTreeMap<String, String>,
    /// The failure for each text that an error may contain, ignoring case.
    #[serde(default)]
    pub(super) failures: BTreeMap<String, RunFailure>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum FieldSource {
    Path(String),
    Fixed { value: String },
}
