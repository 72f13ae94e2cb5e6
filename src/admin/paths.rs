//! The routing table of the side port. Any other path is answered with 404 and the list of paths.
//!
//! Does not contain methods and subpaths; `serve` matches those.

/// List of stored documents.
pub const CACHE: &str = "/v1/cache";
/// Purge of stored documents.
pub const PURGE: &str = "/v1/cache/purge";
/// The gateways on the store.
pub const NODES: &str = "/v1/nodes";
/// Accounts of owners.
pub(super) const ACCOUNTS: &str = "/v1/accounts";
/// Messages of the status page.
pub(super) const STATUS: &str = "/v1/status";
/// Usage by application and address.
pub const USAGE: &str = "/v1/usage";
pub(super) const UPSTREAM: &str = "/v1/upstream";
pub(super) const SETTINGS: &str = "/v1/settings";
pub(super) const LOG: &str = "/v1/log";
/// Reload of the settings.
pub const RELOAD: &str = "/v1/reload";
/// Refresh of the built-in backend after an import.
pub const SCORING_REFRESH: &str = "/v1/scoring/refresh";

/// A handler of the side port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AdminPath {
    Metrics,
    Alive,
    Ready,
    /// Applications, keys, requests, accounts, the audit trail, the gateways and status messages.
    Applications,
    Documents,
    Usage,
    Upstream,
    Settings,
    Log,
    Reload,
    /// The built-in backend.
    Scoring,
}

const ROUTES: [(&str, AdminPath); 15] = [
    ("/metrics", AdminPath::Metrics),
    ("/healthz", AdminPath::Alive),
    ("/readyz", AdminPath::Ready),
    ("/v1/applications", AdminPath::Applications),
    ("/v1/audit", AdminPath::Applications),
    (NODES, AdminPath::Applications),
    (STATUS, AdminPath::Applications),
    (ACCOUNTS, AdminPath::Applications),
    (CACHE, AdminPath::Documents),
    (USAGE, AdminPath::Usage),
    (UPSTREAM, AdminPath::Upstream),
    (SETTINGS, AdminPath::Settings),
    (LOG, AdminPath::Log),
    (RELOAD, AdminPath::Reload),
    (SCORING_REFRESH, AdminPath::Scoring),
];

impl AdminPath {
    /// The handler of a path. Only paths below `/v1/` have subpaths.
    pub(super) fn of(path: &str) -> Option<Self> {
        let is_in = |root: &str| {
            path.strip_prefix(root)
                .is_some_and(|rest| rest.is_empty() || (root.starts_with("/v1/") && rest.starts_with('/')))
        };
        ROUTES.iter().find(|(root, _)| is_in(root)).map(|(_, handler)| *handler)
    }
}

/// All paths, as part of a sentence.
pub(super) fn list() -> String {
    let paths = ROUTES.map(|(path, _)| path);
    let [first @ .., last] = paths.as_slice() else { return String::new() };
    format!("{} and {last}", first.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_or_its_parent_selects_the_handler() {
        for (path, handler) in [
            ("/metrics", Some(AdminPath::Metrics)),
            ("/metrics/", None),
            ("/v1/applications/app_0123456789a", Some(AdminPath::Applications)),
            ("/v1/applicationsx", None),
            ("/v1/cache/purge", Some(AdminPath::Documents)),
            ("/v1/logs", None),
            ("/v1", None),
            ("", None),
        ] {
            assert_eq!(AdminPath::of(path), handler, "{path}");
        }
    }

    #[test]
    fn the_list_names_every_path_once() {
        let list = list();
        for (path, _) in ROUTES {
            assert_eq!(list.split([' ', ',']).filter(|word| *word == path).count(), 1, "{path} in {list}");
        }
    }
}
