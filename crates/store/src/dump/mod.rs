//! Exports of a store: all applications, keys, grants, requests, audit records, the content of the status page and
//! owners, as lines of JSON, written and read by each engine.

mod lines;
mod reader;
mod rows;
mod tables;
mod transfer_error;
mod writer;

pub use lines::RecordCounts;
pub(crate) use lines::VERSION;
pub(crate) use lines::{
    ApplicationLine, AvailabilityLine, DumpLine, KeyLine, LedgerLine, OwnerLine, RequestsLine,
    StatusMessageLine,
};
pub(crate) use reader::DumpReader;
pub(crate) use rows::time_of;
pub(crate) use tables::{ExportedTable, TABLES};
pub use transfer_error::{TransferError, since};
pub(crate) use writer::DumpWriter;
