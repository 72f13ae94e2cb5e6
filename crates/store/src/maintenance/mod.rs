//! Operations on a store as a whole: check, backup, restore, export, import. Functions that are not methods operate on
//! a store file.
//!
//! No operation needs an open store. All except [`import()`] and [`close_future_days`] work while a server runs, and
//! only [`close_future_days`] writes to the file that it reads. `scoregate keys` changes single keys.

mod backed_up;
mod backup;
mod database;
mod database_restore;
mod database_transfer;
mod dump;
mod future_days;
mod import;
mod inspect;
mod load;
mod maintenance_error;
mod read_only;
mod seal;
mod store_file;
mod transfer;

pub use crate::embedded::paths::recovery_steps;
pub use crate::transfer_error::since;
pub use backed_up::{LastBackup, last_backup, record_backup};
pub use backup::{back_up, dated, prune};
pub use database::DatabaseCommand;
pub use database_restore::DatabaseRestore;
pub use database_transfer::DatabaseExport;
pub use dump::export;
pub use future_days::{ClosedDays, close_command, close_future_days};
pub use import::{ImportOptions, ImportSummary, ImportedDay, import};
pub use inspect::{InspectionReport, check, verify};
pub use maintenance_error::MaintenanceError;
pub use store_file::{close, create_new, file_in, is_used};
pub use transfer::TransferSummary;
