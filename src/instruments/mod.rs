//! Typed handles for the metrics of requests and background tasks, and the label values. The table of metrics is in
//! `telemetry::metrics`.

mod backend_addresses;
mod background;
mod capacity;
mod documents;
mod labels;
mod leaks;
mod ledger;
mod mail;
mod mcp;
mod metric_handles;
mod outcome;
mod requests;
mod server_instruments;
mod shared_store;
mod site;
mod store;

pub(crate) use background::{FetchEnd, SharedFetchEnd, StoreWork, UnitUse, UnreachableDecision};
pub use capacity::CapacityInstruments;
pub use documents::DocumentInstruments;
pub(crate) use labels::{PoolLabel, RequestSubject};
pub use leaks::LeakOutcome;
pub use ledger::LedgerInstruments;
pub use mail::MailInstruments;
pub(crate) use mail::MailResult;
pub use mcp::McpInstruments;
pub(crate) use mcp::McpOutcome;
pub use outcome::CacheOutcome;
pub use requests::RequestInstruments;
pub(crate) use requests::RequestObservation;
pub use server_instruments::ServerInstruments;
pub use site::SiteInstruments;
pub(crate) use site::{AccountStep, LinkRequest, SignInEnd};
pub use store::StoreInstruments;
