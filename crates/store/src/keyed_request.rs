//! An operator's request that is performed only once. The statements are in `sql::idempotency`.

use scoregate_base::clock::Wall;

/// A request with an idempotency key, as stored for four days.
#[derive(Clone, Debug)]
pub struct KeyedRequest {
    /// SHA-256 of the key.
    pub digest: String,
    /// SHA-256 of the request.
    pub content: String,
    /// A random value.
    pub salt: String,
    /// When the request was first sent.
    pub at: Wall,
    /// The reply, once the request is performed.
    pub reply: Option<String>,
}
