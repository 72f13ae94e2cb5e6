//! Changes and reads whose statements are the same in both engines: applications, owners, mail, evidence and
//! messages about incidents.
//!
//! An engine runs the statements ([`tables`]) within a transaction of its own. What it must do in its own way stays in its
//! folder: the ledger, batches and deletions.

mod attachments;
pub(crate) mod audit;
pub(crate) mod changes;
mod closed_applications;
pub(crate) mod evidence;
pub(crate) mod grace_shares;
pub(crate) mod leaks;
pub(crate) mod limits_until;
pub(crate) mod mail_queue;
pub(crate) mod notices;
pub(crate) mod outdated;
pub(crate) mod owners;
pub(crate) mod records;
pub(crate) mod request_totals;
pub(crate) mod restored_day;
pub(crate) mod rows;
pub(crate) mod schema;
pub(crate) mod sign_in;
pub(crate) mod status;
pub(crate) mod tables;
pub(crate) mod webhooks;
