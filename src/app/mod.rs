//! Starts the parts of the program in order, and stops them in reverse order.
//!
//! Only this module names concrete engines. `cli` parses arguments.

mod administration;
mod background;
mod build;
mod clock_steps;
mod data_dir;
mod mail_delivery;
mod network_backend;
mod notices;
mod open_files;
mod opened_days;
mod reload;
mod running;
mod running_ports;
mod server_parts;
mod site;
mod sockets;
mod start_context;
mod status_report;
mod storage;
mod store_engine;
mod supervisor;
mod tasks;
mod trace_export;
mod watched_files;

pub use administration::{ServerKeys, administration};
pub use build::open_scoring;
pub use data_dir::{DataDir, DataDirInUse, SOCKET};
pub use notices::notice_texts;
pub(crate) use open_files::OpenFiles;
pub use running::{RunningServer, ShutdownReport, start, start_on};
pub use sockets::InheritedSockets;
pub use store_engine::open_store;
