//! Settings of the receiver of leaked keys.

use std::path::PathBuf;

use http::Uri;

use crate::accounts::LeakAction;

/// Settings of the receiver.
#[derive(Clone, Debug)]
pub struct LeakConfig {
    /// The list of the keys that sign reports.
    pub signers: SignerSource,
    /// What happens to the keys found.
    pub action: LeakAction,
}

/// Where the list of the keys that sign reports is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignerSource {
    /// In a file.
    File(PathBuf),
    /// At an address.
    Address(Uri),
}
