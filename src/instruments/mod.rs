//! Typed handles on the metrics of requests and background tasks, with their label values. The table of metrics is in
//! `telemetry::metrics`.

mod backend_addresses;
mod background;
mod handles;
mod labels;
mod leaks;
mod mail;
mod mcp;
mod metric_handles;
mod outcome;
mod shared_store;
mod site;

pub(crate) use background::{FetchEnd, SharedFetchEnd, StoreWork, UnitUse, UnreachableDecision};
pub use handles::Instruments;
pub(crate) use handles::RequestObservation;
pub(crate) use labels::{PoolLabel, RequestSubject};
pub use leaks::LeakOutcome;
pub(crate) use mail::MailResult;
pub use mcp::McpInstruments;
pub(crate) use mcp::McpOutcome;
pub use outcome::CacheOutcome;
pub use site::SiteInstruments;
pub(crate) use site::{AccountStep, LinkRequest, SignInEnd};
