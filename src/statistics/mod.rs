//! Statistics of requests: counts by endpoint and outcome, the usage of applications and of clients without a key, and
//! evidence of how an application uses the service.

mod application_usage;
mod evidence_book;
mod month_usage;
mod node_reporter;
mod request_counter;
mod usage_tracker;

pub use application_usage::{ApplicationUse, RemainingAllowance};
pub use month_usage::read_month;
pub use node_reporter::{CatalogueSize, NodeReporter};
pub use request_counter::RequestCounter;
pub use usage_tracker::{UnauthenticatedUse, UsageTracker};
