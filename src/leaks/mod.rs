//! The receiver of leaked keys: a partner endpoint of GitHub's secret scanning.
//!
//! A report is a signed list of tokens. `LeakReceiver` answers it, `PublishedKeys` verifies it, and `scan_report`
//! parses it. `registry::leaked_keys` changes the keys.

mod leak_config;
mod leak_receiver;
mod published_keys;
mod report_slots;
mod scan_report;

pub use leak_config::{LeakConfig, SignerSource, follow_address};
pub use leak_receiver::LeakReceiver;
pub use published_keys::{BadPublishedKeys, PublishedKeys};
