//! Paths of settings in named tables: tiers, certificates, endpoints, mappings, freshness of endpoints.

use scoregate_base::routes::EndpointTable;

use super::settings::SETTINGS;

/// Settings in a table of `tiers`.
const TIER_SETTINGS: [&str; 12] = [
    "minute",
    "day",
    "month",
    "month_anchor",
    "owner_day",
    "owner_month",
    "paid",
    "periods",
    "history",
    "incidents",
    "endpoints",
    "fields",
];
/// Settings in a table of `endpoints`.
pub(super) const ENDPOINT_SETTINGS: [&str; 5] = ["path", "summary", "parameters", "one", "fields"];
/// The table of headers for the backend, whose values may be secrets.
pub(super) const UPSTREAM_HEADERS: &str = "upstream.headers";

/// Returns whether a path is a setting in a named table.
pub(super) fn is_in_a_table(path: &str, endpoints: &EndpointTable) -> bool {
    // Paths below `mapping` are checked in `config::mapping`.
    path == UPSTREAM_HEADERS || path.starts_with("mapping.") || is_in_a_named_table(path, endpoints)
}

/// Returns whether an empty table is allowed: all its settings have their defaults, or it names nothing yet.
pub(super) fn may_be_empty(table: &str, endpoints: &EndpointTable) -> bool {
    let names_an_endpoint = |parent: &str| {
        table
            .strip_prefix(parent)
            .is_some_and(|name| endpoints.stored().any(|one| one.name == name))
    };
    let has_settings = || {
        SETTINGS.iter().any(|one| {
            one.path
                .strip_prefix(table)
                .is_some_and(|rest| rest.starts_with('.'))
        })
    };
    ["endpoints", "tiers", "tls", "mapping"].contains(&table)
        || ["mapping.", "freshness."]
            .into_iter()
            .any(names_an_endpoint)
        || has_settings()
}

/// Returns whether the table at a path is one value: the fields of a mapping, or headers.
pub(super) fn is_one_value(path: &str) -> bool {
    path == UPSTREAM_HEADERS
        || matches!(
            path.split('.').collect::<Vec<_>>().as_slice(),
            ["mapping", _, "fields"]
        )
}

fn is_in_a_named_table(path: &str, endpoints: &EndpointTable) -> bool {
    let parts: Vec<&str> = path.split('.').collect();
    match parts.as_slice() {
        ["tiers", _, setting] => TIER_SETTINGS.contains(setting),
        ["tls", _, "certificate" | "key"] => true,
        ["endpoints", _, setting] => ENDPOINT_SETTINGS.contains(setting),
        [
            "freshness",
            name,
            "ttl" | "stale_while_revalidate" | "stale_if_error",
        ] => endpoints.stored().any(|endpoint| endpoint.name == *name),
        _ => false,
    }
}
