//! Exports of a store: all applications, keys, grants, usage, requests, audit records, the content of the status page and
//! owners, as lines of JSON, written and read by each engine.

mod lines;
mod reader;
mod rows;
mod transfer_error;
mod writer;

pub use lines::RecordCounts;
pub(in crate::store) use lines::{
    AvailabilityLine, DumpLine, KeyLine, LedgerLine, OwnerLine, RequestsLine, StatusMessageLine, UsageLine,
};
pub(in crate::store) use reader::DumpReader;
pub(in crate::store) use rows::time_of;
pub(in crate::store) use transfer_error::DumpFault;
pub use transfer_error::TransferError;
pub(in crate::store) use writer::DumpWriter;
