//! The calls of the store. Each file has the statements of one subject, which are the same for both engines.

mod all_applications;
mod attachments;
mod audit;
mod changes;
mod closed_applications;
mod evidence;
mod file_ledger;
mod grace_shares;
mod idempotency;
mod leaks;
mod ledger;
mod limits_until;
mod mail_queue;
mod nodes;
mod notices;
mod outdated;
mod owners;
pub mod records;
mod request_totals;
pub mod restored_day;
mod sign_in;
mod status;
mod store;
mod webhooks;

pub use all_applications::ApplicationPages;
pub use sign_in::END_SIGN_INS;
pub use store::{Store, formats};
