//! Paths of settings in named tables: tiers, certificates, mappings, freshness of endpoints.

use crate::routes::ENDPOINTS;

/// Returns whether a path is a setting in a named table.
pub(super) fn is_in_a_table(path: &str) -> bool {
    // Paths below `mapping` are checked in `config::mapping`.
    path.starts_with("mapping.") || is_in_a_named_table(path)
}

/// Returns whether the table at a path is one value: the fields of a mapping.
pub(super) fn is_one_value(path: &str) -> bool {
    matches!(path.split('.').collect::<Vec<_>>().as_slice(), ["mapping", _, "fields"])
}

fn is_in_a_named_table(path: &str) -> bool {
    let parts: Vec<&str> = path.split('.').collect();
    match parts.as_slice() {
        ["tiers", _, "minute" | "day" | "paid"] | ["tls", _, "certificate" | "key"] => true,
        ["freshness", name, "ttl" | "stale_while_revalidate" | "stale_if_error"] => {
            ENDPOINTS.iter().any(|endpoint| endpoint.stored && endpoint.name == *name)
        }
        _ => false,
    }
}
