//! Settings of the leaked-key receiver, and the functions that read the public keys.

use std::{path::PathBuf, sync::Arc, time::Duration};

use http::Uri;

use crate::{registry::LeakAction, upstream::read_public_document};
use scoregate_base::clock::Clock;

use super::published_keys::PublishedKeys;

/// Intervals between fetches of a list, after a successful fetch and after a failure.
const FETCH_INTERVAL: Duration = Duration::from_hours(1);
const RETRY_INTERVAL: Duration = Duration::from_mins(5);

/// Settings of the receiver.
#[derive(Clone, Debug)]
pub struct LeakConfig {
    /// The list of public keys.
    pub signers: SignerSource,
    /// The change to leaked keys.
    pub action: LeakAction,
}

/// The location of the list of public keys that verify reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignerSource {
    /// A file.
    File(PathBuf),
    /// A URL.
    Address(Uri),
}

impl SignerSource {
    /// Reads the list into `keys` if the source is a file. Blocks.
    pub fn read_file(&self, keys: &PublishedKeys) -> Result<(), String> {
        let Self::File(path) = self else {
            return Ok(());
        };
        let list = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        keys.replace(&list)
            .map_err(|error| format!("{}: {error}", path.display()))
    }
}

/// Periodically fetches the list from a URL into `keys`. Requests never cause a fetch.
pub async fn follow_address(address: Uri, keys: Arc<PublishedKeys>, clock: Clock) {
    let mut failure = String::new();
    loop {
        let reason = fetch(&address, &keys, &clock)
            .await
            .err()
            .unwrap_or_default();
        if !reason.is_empty() && reason != failure {
            tracing::error!(
                reason,
                "leaks.public_keys cannot be read; the previous keys stay in use"
            );
        }
        let pause = if reason.is_empty() {
            FETCH_INTERVAL
        } else {
            RETRY_INTERVAL
        };
        failure = reason;
        clock.sleep(pause).await;
    }
}

async fn fetch(address: &Uri, keys: &PublishedKeys, clock: &Clock) -> Result<(), String> {
    let list = read_public_document(address, clock)
        .await
        .map_err(|reason| format!("{address}: {reason}"))?;
    keys.replace(&list)
        .map_err(|error| format!("{address}: {error}"))
}
