//! THE table of the side port: which path belongs to which part of it. What is not in it is not there, and whoever asks for
//! that is told what is.
//!
//! Not for: the methods of a path, nor what stands below one; each part knows its own.

/// The stored documents.
pub const CACHE: &str = "/v1/cache";
/// The purge of them.
pub const PURGE: &str = "/v1/cache/purge";
/// Who asks how much.
pub const USAGE: &str = "/v1/usage";
/// How it stands with the backend.
pub(super) const UPSTREAM: &str = "/v1/upstream";
/// The settings in force.
pub(super) const SETTINGS: &str = "/v1/settings";
/// How much the log says.
pub(super) const LOG: &str = "/v1/log";
/// The settings are to be read again.
pub const RELOAD: &str = "/v1/reload";
/// The built-in backend takes up runs that were imported.
pub const SCORING_REFRESH: &str = "/v1/scoring/refresh";

/// A part of the side port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AdminPath {
    /// For Prometheus.
    Metrics,
    /// Whether the process lives.
    Alive,
    /// Whether requests are answered.
    Ready,
    /// Applications, their keys, and who changed what.
    Applications,
    /// What is stored.
    Documents,
    /// Who asks how much.
    Usage,
    /// How it stands with the backend.
    Upstream,
    /// The settings in force.
    Settings,
    /// How much the log says.
    Log,
    /// The settings are to be read again.
    Reload,
    /// The built-in backend.
    Scoring,
}

const PARTS: [(&str, AdminPath); 12] = [
    ("/metrics", AdminPath::Metrics),
    ("/healthz", AdminPath::Alive),
    ("/readyz", AdminPath::Ready),
    ("/v1/applications", AdminPath::Applications),
    ("/v1/audit", AdminPath::Applications),
    (CACHE, AdminPath::Documents),
    (USAGE, AdminPath::Usage),
    (UPSTREAM, AdminPath::Upstream),
    (SETTINGS, AdminPath::Settings),
    (LOG, AdminPath::Log),
    (RELOAD, AdminPath::Reload),
    (SCORING_REFRESH, AdminPath::Scoring),
];

impl AdminPath {
    /// The part that a path belongs to. Nothing stands below the paths that are open to all.
    pub(super) fn of(path: &str) -> Option<Self> {
        let is_in = |root: &str| {
            path.strip_prefix(root)
                .is_some_and(|rest| rest.is_empty() || (root.starts_with("/v1/") && rest.starts_with('/')))
        };
        PARTS.iter().find(|(root, _)| is_in(root)).map(|(_, part)| *part)
    }
}

/// What there is, in words.
pub(super) fn all() -> String {
    let paths = PARTS.map(|(path, _)| path);
    let [first @ .., last] = paths.as_slice() else { return String::new() };
    format!("{} and {last}", first.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_belongs_to_a_part_whole_or_by_what_it_stands_below() {
        for (path, part) in [
            ("/metrics", Some(AdminPath::Metrics)),
            ("/metrics/", None),
            ("/v1/applications/app_0123456789a", Some(AdminPath::Applications)),
            ("/v1/applicationsx", None),
            ("/v1/cache/purge", Some(AdminPath::Documents)),
            ("/v1/logs", None),
            ("/v1", None),
            ("", None),
        ] {
            assert_eq!(AdminPath::of(path), part, "{path}");
        }
    }

    #[test]
    fn all_names_every_path_once() {
        let all = all();
        for (path, _) in PARTS {
            assert_eq!(all.split([' ', ',']).filter(|word| *word == path).count(), 1, "{path} in {all}");
        }
    }
}
