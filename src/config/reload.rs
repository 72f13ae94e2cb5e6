//! Compares reloaded settings with the current ones: some take effect immediately, the others at the next start.
//! Does not apply them; see `app`.

use crate::admin::Reloaded;
use scoregate_base::plans::Tier;

use super::file::ConfigValues;
use super::settings::IN_A_FILE;
use super::{Config, ConfigProblems, resolve};

/// Settings and tables that are used only at the start: ports, threads, the store, the backend and its stored documents.
pub(super) static AT_NEXT_START: &[&str] = &[
    "admin.listen",
    "built_in",
    "cache",
    "data_dir",
    "endpoints",
    "freshness",
    "keys",
    "leaks",
    "listen",
    "log.format",
    "log.access",
    "mail",
    "mapping",
    "mcp",
    "operator",
    "server.workers",
    "service.license",
    "site.sign_up",
    "site.status_page",
    "site.webhooks",
    "store",
    "suspects",
    "traces",
    "upstream",
];

impl Config {
    /// Merges these settings into `before`: those that can take effect immediately are from here, the others from `before`.
    /// Returns the changes. The merged settings must be valid.
    pub fn in_place_of(self, before: &Self) -> Result<(Self, Reloaded), ConfigProblems> {
        let from = &before.written;
        let to = &self.written;
        let mut paths: Vec<&String> = from.values.keys().chain(to.values.keys()).collect();
        paths.sort_unstable();
        paths.dedup();
        let mut changed = Reloaded::default();
        let mut written = ConfigValues::default();
        // Switching TLS on or off changes the protocol of the port, which breaks all its clients.
        let tls_is_toggled = self.certificates.is_empty() != before.certificates.is_empty();
        for path in paths {
            let old = from.values.get(path);
            let new = to.values.get(path);
            let needs_restart = needs_restart(path) && !is_read_again(path, from, to)
                || (tls_is_toggled && path.starts_with("tls."));
            if old != new {
                let list = if needs_restart {
                    &mut changed.at_next_start
                } else {
                    &mut changed.at_once
                };
                list.push(path.clone());
            }
            let (value, of) = if needs_restart {
                (old, from)
            } else {
                (new, to)
            };
            if let Some(value) = value {
                written.put(path, value.clone(), of.origin(path));
            }
        }
        let mut config = resolve(&written)?;
        // Stored documents have forms for the sets of fields at the start. Until the next start a tier with another set
        // has the largest of those within it.
        let sets = before.retention.field_sets.clone();
        let wanted = std::mem::replace(&mut config.retention.field_sets, sets.clone());
        for Tier { name, rights, .. } in &mut config.tiers {
            let fields = sets.largest_within(&wanted, rights.fields());
            if sets.seen(fields) != wanted.seen(rights.fields()) {
                let path = format!("tiers.{name}.fields");
                changed.at_once.retain(|known| *known != path);
                changed.at_next_start.push(path);
            }
            *rights = rights.with_fields(fields);
        }
        Ok((config, changed))
    }
}

/// Whether the setting is a secret in a file that both settings name: the running program reads it itself.
fn is_read_again(path: &str, from: &ConfigValues, to: &ConfigValues) -> bool {
    let file = format!("{path}{IN_A_FILE}");
    from.values
        .get(&file)
        .is_some_and(|of| to.values.get(&file) == Some(of))
}

/// Returns whether a setting takes effect at the next start.
pub(super) fn needs_restart(path: &str) -> bool {
    let is_or_is_in = |of: &&str| {
        path.strip_prefix(*of)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    AT_NEXT_START.iter().any(is_or_is_in)
}

#[cfg(test)]
mod tests {
    use crate::config::{SETTINGS, read_text};

    use super::*;

    fn config(text: &str) -> Config {
        resolve(&read_text(&format!("upstream = \"built-in\"\n{text}")).unwrap()).unwrap()
    }

    #[test]
    fn changes_apply_at_once_or_are_reported_as_pending() {
        let before = config("guard.per_minute = 7\nlisten = \"127.0.0.1:1\"\ndata_dir = \"a\"");
        let wanted =
            config("guard.per_minute = 8\nlisten = \"127.0.0.1:2\"\ncache.max_bytes = \"1MiB\"");
        let (config, changed) = wanted.in_place_of(&before).unwrap();
        assert_eq!(changed.at_once, ["guard.per_minute"]);
        assert_eq!(
            changed.at_next_start,
            ["cache.max_bytes", "data_dir", "listen"]
        );
        assert_eq!((config.guard_per_minute, config.listen.port()), (8, 1));
        assert_eq!(
            (config.data_dir.to_str(), config.cache_bytes),
            (Some("a"), before.cache_bytes)
        );
    }

    #[test]
    fn a_secret_applies_at_once_if_it_is_in_the_same_file() {
        let reloaded = |before: &str, after: &str| {
            let store = "store.url = \"postgresql://g@localhost\"\nstore.password";
            let [before, after] = [before, after].map(|rest| config(&format!("{store} = {rest}")));
            after.in_place_of(&before).unwrap().1
        };
        let in_file = |file: &str| format!("\"{file}\"\nstore.password_file = \"{file}\"");
        let first = in_file("a");
        let second = "\"b\"\nstore.password_file = \"a\"";
        assert_eq!(reloaded(&first, second).at_once, ["store.password"]);
        let moved = reloaded(&first, &in_file("b"));
        assert_eq!(
            moved.at_next_start,
            ["store.password", "store.password_file"]
        );
        assert_eq!(reloaded("\"a\"", "\"b\"").at_next_start, ["store.password"]);
    }

    #[test]
    fn equal_settings_report_no_change() {
        let (_, changed) = config("[tiers.a]\nminute = 1\nday = 1\npaid = true")
            .in_place_of(&config("[tiers.a]\nminute = 1\nday = 1\npaid = true"))
            .unwrap();
        assert_eq!(changed, Reloaded::default());
    }

    #[test]
    fn every_entry_of_the_next_start_list_is_a_setting() {
        for path in AT_NEXT_START {
            let known = SETTINGS
                .iter()
                .any(|setting| needs_restart(setting.path) && setting.path.starts_with(path));
            assert!(known || ["mapping", "endpoints"].contains(path), "{path}");
        }
        assert!(!needs_restart("upstreams.x") && !needs_restart("server.shutdown_timeout"));
    }
}
