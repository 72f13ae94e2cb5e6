//! Serializes times.

use serde::{Serialize as _, Serializer};

use scoregate_base::clock::Wall;

/// Serializes a time in the API's format.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands fields over by reference")]
pub(super) fn instant<S: Serializer>(at: &Wall, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&at.rfc3339())
}

/// Like [`instant`]. Fields without a value are omitted, so `None` does not occur.
#[expect(clippy::ref_option, reason = "serde hands fields over by reference")]
pub(super) fn maybe_instant<S: Serializer>(at: &Option<Wall>, serializer: S) -> Result<S::Ok, S::Error> {
    at.map(Wall::rfc3339).serialize(serializer)
}
