//! The paths of the side port. Any other path gets a 404 with the list of paths.
//!
//! Methods, and all other paths below these, are matched in `serve` and in `command`.

/// List of stored documents.
pub const CACHE: &str = "/v1/cache";
/// Purge of stored documents.
pub const PURGE: &str = "/v1/cache/purge";
/// Explanation of a request.
pub const EXPLAIN: &str = "/v1/explain";
/// Usage by application and address.
pub const USAGE: &str = "/v1/usage";
pub(super) const UPSTREAM: &str = "/v1/upstream";
pub(super) const SETTINGS: &str = "/v1/settings";
pub(super) const LOG: &str = "/v1/log";
/// Reload of the settings.
pub const RELOAD: &str = "/v1/reload";
/// Refresh of the built-in backend after an import.
pub const SCORING_REFRESH: &str = "/v1/scoring/refresh";

pub(super) const METRICS: &str = "/metrics";
pub(super) const ALIVE: &str = "/healthz";
pub(super) const READY: &str = "/readyz";

const PATHS: [&str; 16] = [
    METRICS,
    ALIVE,
    READY,
    "/v1/keys",
    "/v1/accounts",
    "/v1/nodes",
    "/v1/suspects",
    "/v1/status",
    CACHE,
    EXPLAIN,
    USAGE,
    UPSTREAM,
    SETTINGS,
    LOG,
    RELOAD,
    SCORING_REFRESH,
];

/// Whether usage is requested, of all applications or of one.
pub(super) fn is_usage(path: &str) -> bool {
    path.strip_prefix(USAGE)
        .is_some_and(|below| below.is_empty() || below.starts_with('/'))
}

/// All paths, as part of a sentence.
pub(super) fn list() -> String {
    let [first @ .., last] = PATHS.as_slice() else {
        return String::new();
    };
    format!("{} and {last}", first.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_names_every_path_once() {
        let list = list();
        for path in PATHS {
            assert_eq!(
                list.split([' ', ',']).filter(|word| *word == path).count(),
                1,
                "{path} in {list}"
            );
        }
    }
}
