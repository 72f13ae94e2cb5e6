//! Tables whose names are chosen in the file or are names of endpoints.

use scoregate_base::{limits::LimitSetting, routes::EndpointTable};

use super::settings::SETTINGS;

/// The named tables, each with its settings.
const NAMED_TABLES: [(&str, &[&str]); 4] = [
    (
        "tiers",
        &[
            "paid",
            "periods",
            "history",
            "incidents",
            "endpoints",
            "fields",
        ],
    ),
    ("tls", &["certificate", "key"]),
    ("endpoints", &ENDPOINT_SETTINGS),
    (
        "freshness",
        &["ttl", "stale_while_revalidate", "stale_if_error"],
    ),
];
/// Settings in a table of `endpoints`.
pub const ENDPOINT_SETTINGS: [&str; 5] = ["path", "summary", "parameters", "one", "fields"];
/// The table of headers for the backend, whose values may be secrets.
pub const UPSTREAM_HEADERS: &str = "upstream.headers";

/// Returns whether a path is a setting in a named table. `sections::mapping` checks the paths below `mapping`.
pub fn is_in_a_table(path: &str, endpoints: &EndpointTable) -> bool {
    if path == UPSTREAM_HEADERS || path.starts_with("mapping.") {
        return true;
    }
    let [table, name, setting] = path.split('.').collect::<Vec<_>>()[..] else {
        return false;
    };
    (NAMED_TABLES
        .iter()
        .any(|(named, settings)| *named == table && settings.contains(&setting))
        || (table == "tiers" && LimitSetting::parse(setting).is_some()))
        && (table != "freshness" || is_stored(name, endpoints))
}

/// Returns whether a table may be empty. All settings in an empty table have their defaults, or the table contains no
/// named tables yet.
pub fn may_be_empty(table: &str, endpoints: &EndpointTable) -> bool {
    if let Some(("mapping" | "freshness", name)) = table.split_once('.') {
        return is_stored(name, endpoints);
    }
    let below = format!("{table}.");
    table == "mapping"
        || NAMED_TABLES.iter().any(|(named, _)| *named == table)
        || SETTINGS.iter().any(|one| one.path.starts_with(&below))
}

fn is_stored(name: &str, endpoints: &EndpointTable) -> bool {
    endpoints.stored().any(|endpoint| endpoint.name == name)
}

/// Returns whether the table at a path is a single value, such as the fields of a mapping, or headers.
pub fn is_one_value(path: &str) -> bool {
    path == UPSTREAM_HEADERS
        || matches!(
            path.split('.').collect::<Vec<_>>().as_slice(),
            ["mapping", _, "fields"]
        )
}
