//! Exports of a store: all applications, keys, grants, usage, requests, audit records, the content of the status page and
//! owners, as lines of JSON, written and read by each engine.

mod batch;
mod lines;
mod reader;
mod transfer_error;
mod writer;

pub(in crate::store) use batch::DumpBatch;
pub use lines::RecordCounts;
pub(in crate::store) use lines::{
    ApplicationLine, AuditLine, AvailabilityLine, DumpLine, KeyLine, LedgerLine, OwnerLine, RequestsLine,
    StatusMessageLine, UsageLine,
};
pub(in crate::store) use reader::DumpReader;
pub(in crate::store) use transfer_error::DumpFault;
pub use transfer_error::TransferError;
pub(in crate::store) use writer::DumpWriter;
