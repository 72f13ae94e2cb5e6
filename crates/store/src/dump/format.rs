//! The first and the last line of an export.

use serde::{Deserialize, Serialize};

use super::RowCounts;

/// The name of the format, in the first line.
pub const FORMAT: &str = "scoregate-export";
/// The format version. A line with an unknown table or column is rejected, so a change to a table needs a new version.
pub const VERSION: u32 = 1;
/// The name of the last line.
pub const END: &str = "end";

/// The first line.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DumpHeader {
    pub format: String,
    pub version: u32,
    pub made_at: String,
}

/// The content of the last line.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct DumpEnd {
    pub rows: RowCounts,
    pub sha256: String,
}
