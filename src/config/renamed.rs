//! Former names of settings: an old file is rejected with the new name in the error.

use super::settings::variable;

/// Old and new paths. `*` is the name of an endpoint.
const RENAMED: [(&str, &str); 26] = [
    ("upstream.at_once", "upstream.max_concurrent_requests"),
    ("upstream.idle", "upstream.idle_timeout"),
    ("freshness.refresh", "freshness.refresh_interval"),
    (
        "freshness.while_revalidate",
        "freshness.stale_while_revalidate",
    ),
    ("freshness.if_error", "freshness.stale_if_error"),
    (
        "freshness.while_refreshed",
        "freshness.stale_while_revalidate",
    ),
    ("freshness.on_error", "freshness.stale_if_error"),
    ("freshness.probing", "freshness.probe"),
    ("freshness.patience", "freshness.max_wait"),
    (
        "freshness.*.while_revalidate",
        "freshness.*.stale_while_revalidate",
    ),
    ("freshness.*.if_error", "freshness.*.stale_if_error"),
    (
        "freshness.*.while_refreshed",
        "freshness.*.stale_while_revalidate",
    ),
    ("freshness.*.on_error", "freshness.*.stale_if_error"),
    ("server.max_age", "server.max_connection_age"),
    ("server.grace", "server.shutdown_timeout"),
    ("proxies.protocol", "proxies.proxy_protocol"),
    ("overload.at_once", "overload.cached_slots"),
    ("overload.waiting", "overload.waiting_slots"),
    ("overload.queue", "overload.queue_length"),
    ("overload.patience", "overload.queue_timeout"),
    ("log.requests", "log.access"),
    ("log.slow", "log.slow_threshold"),
    ("log.one_in", "log.sample_one_in"),
    ("mapping.*.is", "mapping.*.shape"),
    ("mapping.*.without", "mapping.*.unsupported"),
    ("mapping.*.instant", "mapping.*.timestamp"),
];

/// The current path of a setting that was renamed.
pub(super) fn new_path(path: &str) -> Option<String> {
    RENAMED
        .iter()
        .find_map(|(old, new)| match old.split_once('*') {
            None => (*old == path).then(|| (*new).to_owned()),
            Some((table, field)) => {
                let name = path.strip_prefix(table)?.strip_suffix(field)?;
                (!name.contains('.')).then(|| new.replace('*', name))
            }
        })
}

/// The current environment variable of a setting that was renamed.
pub(super) fn new_variable(name: &str) -> Option<String> {
    RENAMED
        .iter()
        .find(|(old, _)| variable(old) == name)
        .map(|(_, new)| variable(new))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::settings::setting_of;
    use scoregate_base::routes::EndpointTable;

    use crate::config::tables::is_in_a_table;

    #[test]
    fn every_new_path_is_a_setting_and_no_old_path_is() {
        for (old, new) in RENAMED {
            let old = old.replace('*', "models");
            let new = new.replace('*', "models");
            assert!(
                setting_of(&new).is_some() || is_in_a_table(&new, &EndpointTable::default()),
                "{new}"
            );
            assert!(setting_of(&old).is_none(), "{old}");
            assert_eq!(new_path(&old), Some(new));
        }
        assert_eq!(
            new_variable("SCOREGATE_SERVER_GRACE").unwrap(),
            "SCOREGATE_SERVER_SHUTDOWN_TIMEOUT"
        );
        assert_eq!(new_path("server.listen"), None);
        assert_eq!(new_path("mapping.a.b.is"), None);
    }
}
