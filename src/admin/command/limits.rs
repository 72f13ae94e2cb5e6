//! Limits of commands: the sizes of bodies, batches and pages.

const MAX_BODY_BYTES: usize = 65_536;
/// Maximum body size of a batch of keys.
const MAX_BATCH_BYTES: usize = 4 << 20;
/// Maximum number of keys in a batch. Quota leases of a running server wait while a batch is stored.
pub const MAX_BATCH: usize = 500;

/// Maximum body size of a request for this path.
pub fn max_body_bytes(path: &str) -> usize {
    if path == "/v1/keys/import" {
        MAX_BATCH_BYTES
    } else {
        MAX_BODY_BYTES
    }
}

/// Default maximum number of rows in a list.
pub const fn default_limit() -> usize {
    100
}
