//! Compares reloaded settings with the current settings. Some changes take effect immediately, the others at the next
//! start. `app` applies them.

use std::collections::BTreeSet;

use crate::admin::Reloaded;
use scoregate_base::plans::Tier;

use super::{
    Config, ConfigProblems,
    file::ConfigValues,
    resolve,
    settings::{IN_A_FILE, setting_of},
};

impl Config {
    /// Merges these settings into `before`. Settings that can take effect immediately are taken from `self`, other
    /// settings from `before`. Returns the merged settings, which must be valid, and the changes.
    pub fn in_place_of(self, before: &Self) -> Result<(Self, Reloaded), ConfigProblems> {
        let mut changed = Reloaded::default();
        let written = self.merged(before, &mut changed);
        let mut config = resolve(&written)?;
        config.keep_field_sets(before, &mut changed);
        // Stored documents contain the notice from startup, which may quote settings that have changed.
        config.license.clone_from(&before.license);
        Ok((config, changed))
    }

    /// The values in force after a reload.
    fn merged(&self, before: &Self, changed: &mut Reloaded) -> ConfigValues {
        let from = &before.written;
        let to = &self.written;
        let paths: BTreeSet<&String> = from.values.keys().chain(to.values.keys()).collect();
        let mut written = ConfigValues::default();
        // Switching TLS on or off changes the protocol of the port, which would break all clients.
        let tls_is_toggled = self.certificates.is_empty() != before.certificates.is_empty();
        for path in paths {
            let needs_restart = needs_restart(path) && !is_read_again(path, from, to)
                || (tls_is_toggled && path.starts_with("tls."));
            let (list, of) = if needs_restart {
                (&mut changed.at_next_start, from)
            } else {
                (&mut changed.at_once, to)
            };
            if from.values.get(path) != to.values.get(path) {
                list.push(path.clone());
            }
            if let Some(value) = of.values.get(path) {
                written.put(path, value.clone(), of.origin(path));
            }
        }
        written
    }

    /// Stored documents have forms for the field sets at startup. Until the next start, a tier with another field set
    /// gets the largest existing set that its new set contains.
    fn keep_field_sets(&mut self, before: &Self, changed: &mut Reloaded) {
        let sets = &before.retention.field_sets;
        let wanted = std::mem::replace(&mut self.retention.field_sets, sets.clone());
        for Tier { name, rights, .. } in &mut self.tiers {
            let fields = sets.largest_within(&wanted, rights.fields());
            if sets.seen(fields) != wanted.seen(rights.fields()) {
                let path = format!("tiers.{name}.fields");
                changed.at_once.retain(|known| *known != path);
                changed.at_next_start.push(path);
            }
            *rights = rights.with_fields(fields);
        }
    }
}

/// Whether the setting is a secret from a file that both configurations name. The running program reloads the file
/// itself.
fn is_read_again(path: &str, from: &ConfigValues, to: &ConfigValues) -> bool {
    let file = format!("{path}{IN_A_FILE}");
    from.values
        .get(&file)
        .is_some_and(|of| to.values.get(&file) == Some(of))
}

/// Returns whether a setting takes effect at the next start.
pub fn needs_restart(path: &str) -> bool {
    match setting_of(path) {
        Some(setting) => setting.needs_restart,
        // Changes in the named tables of tiers and certificates take effect immediately.
        None => !["tiers.", "tls."]
            .iter()
            .any(|table| path.starts_with(table)),
    }
}

#[cfg(test)]
mod tests {
    use crate::config::read_text;

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
    fn settings_of_named_tables_take_effect_at_once_or_at_the_next_start() {
        for path in [
            "mapping.models.path",
            "endpoints.x.path",
            "upstream.headers",
        ] {
            assert!(needs_restart(path), "{path}");
        }
        for path in ["tiers.pro.day", "tls.a.key", "server.shutdown_timeout"] {
            assert!(!needs_restart(path), "{path}");
        }
    }
}
