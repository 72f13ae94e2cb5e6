//! Facts about the service that are stated in responses.

use http::HeaderValue;

use scoregate_base::plans::Tier;

use super::response::remedy_links::RemedyLinks;

/// Facts about the service that are stated in responses.
#[derive(Clone, Debug)]
pub struct ServiceNotice {
    /// The attribution notice.
    pub license: String,
    /// The value of `WWW-Authenticate`, with the realm.
    pub challenge: HeaderValue,
    /// The addresses that refusals mention.
    pub links: RemedyLinks,
    /// The tiers, which refusals mention.
    pub tiers: Vec<Tier>,
    /// Seconds between refreshes of the data.
    pub cadence_seconds: u64,
}
