//! The addresses of a backend: which one gets a request, and whether a failed one is repeated at another.
//!
//! Decisions are pure: `choice`, `retry_budget`, `health` and `states`. [`AddressBook`] shares them between the
//! requests (`protected`) and the health checks (`health_checks`).

mod address_book;
mod choice;
mod health;
mod retry_budget;
mod states;

pub use address_book::AddressBook;
pub(super) use address_book::AddressPermit;
pub use health::HealthThresholds;
pub use states::{AddressRules, AddressStatus};
