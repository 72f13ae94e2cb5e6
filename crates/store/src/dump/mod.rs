//! Exports of a store: rows of its tables as lines of JSON, in one format for both engines. The first line states the
//! format. The last line contains the number of rows and the SHA-256 of everything before it, so that truncation is
//! detected.

mod format;
mod reader;
mod row_counts;
mod tables;
mod transfer;
mod writer;

pub use format::VERSION;
pub use reader::DumpReader;
pub use row_counts::RowCounts;
#[cfg(test)]
pub use tables::TABLES;
pub use transfer::{export, fill};
