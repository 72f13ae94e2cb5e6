//! The part of the mapping file that names the fields of records.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::RunFailure;

/// The fields of a record. `a.b` is the member `b` of the member `a`, and `a.0` is the first element of the list `a`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordMapping {
    pub model: FieldSource,
    pub task: FieldSource,
    /// The path of the time. If absent, the time is read from the end of the file name.
    pub time: Option<String>,
    pub sample: Option<String>,
    pub latency_ms: Option<String>,
    pub cost: Option<String>,
    pub error: Option<String>,
    /// Records with this member are headers, which describe the records after them.
    pub header: Option<String>,
    /// Only records with these values are samples.
    #[serde(default)]
    pub only: BTreeMap<String, String>,
    /// The failure for each text that an error may contain, ignoring case.
    #[serde(default)]
    pub failures: BTreeMap<String, RunFailure>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum FieldSource {
    Path(String),
    Fixed { value: String },
}
