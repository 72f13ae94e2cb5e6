//! The current settings for the operator, with values and origins but without secrets.

use toml::Value;

use crate::admin::SettingView;
use scoregate_base::plans::Tier;

use super::{
    Config,
    file::ConfigValues,
    settings::{SETTINGS, setting_of},
    showable::showable,
};

impl Config {
    /// All settings: first the table of settings in its order, then the tiers and the other named tables.
    pub fn shown(&self) -> Vec<SettingView> {
        let written = &self.written;
        let rows = SETTINGS
            .iter()
            .map(|row| match written.values.get(row.path) {
                Some(value) => given(written, row.path, value),
                None => by_default(row.path.to_owned(), row.default_value().as_ref().map(json)),
            });
        let named = written
            .values
            .iter()
            .filter(|(path, _)| setting_of(path).is_none());
        let named = named.map(|(path, value)| given(written, path, value));
        let tiers = self
            .tiers
            .iter()
            .filter(|_| !written.is_set("tiers"))
            .flat_map(standard);
        rows.chain(tiers).chain(named).collect()
    }
}

fn given(written: &ConfigValues, path: &str, value: &Value) -> SettingView {
    let from = written.origin(path).to_string();
    SettingView {
        path: path.to_owned(),
        value: json(&showable(path, value)),
        from,
    }
}

fn by_default(path: String, value: Option<serde_json::Value>) -> SettingView {
    SettingView {
        path,
        value: value.unwrap_or_default(),
        from: "default".into(),
    }
}

/// The settings of a standard tier.
fn standard(tier: &Tier) -> [SettingView; 3] {
    let row = |field: &str, value| by_default(format!("tiers.{}.{field}", tier.name), Some(value));
    [
        row("minute", tier.limits.minute.into()),
        row("day", tier.limits.day.into()),
        row("paid", tier.rights.is_paid().into()),
    ]
}

fn json(value: &Value) -> serde_json::Value {
    match value {
        Value::String(text) => text.as_str().into(),
        Value::Integer(number) => (*number).into(),
        Value::Float(number) => (*number).into(),
        Value::Boolean(flag) => (*flag).into(),
        Value::Datetime(at) => at.to_string().into(),
        Value::Array(values) => values.iter().map(json).collect(),
        Value::Table(table) => table
            .iter()
            .map(|(name, value)| (name.clone(), json(value)))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{read_environment, read_text, resolve};

    use super::*;

    fn shown(written: &ConfigValues) -> Vec<SettingView> {
        resolve(written)
            .unwrap_or_else(|problems| panic!("{problems}"))
            .shown()
    }

    fn one<'s>(shown: &'s [SettingView], path: &str) -> (&'s serde_json::Value, &'s str) {
        let [found] = shown
            .iter()
            .filter(|row| row.path == path)
            .collect::<Vec<_>>()[..]
        else {
            panic!("{path} is not listed exactly once: {shown:#?}")
        };
        (&found.value, &found.from)
    }

    #[test]
    fn every_setting_is_shown_in_the_order_of_the_table_with_its_origin() {
        let mut written = read_text(
            "upstream.url = \"http://localhost:1\"\nguard.per_minute = 7\nlisten = \"127.0.0.1:1\"\n\
             data_dir = \"a\"\ncors.origins = [\"https://a.example\"]\n[freshness.alerts]\nttl = \"5m\"",
        )
        .unwrap();
        let variables = [
            ("SCOREGATE_LISTEN", "127.0.0.1:2"),
            ("SCOREGATE_DATA_DIR", "b"),
        ];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        written.overlay(read_environment(variables.into_iter()));
        let mut flags = ConfigValues::default();
        flags.set("data_dir", "c");
        written.overlay(flags);
        let shown = shown(&written);
        let paths: Vec<&str> = shown
            .iter()
            .map(|row| row.path.as_str())
            .take(SETTINGS.len())
            .collect();
        assert_eq!(
            paths,
            SETTINGS.iter().map(|row| row.path).collect::<Vec<_>>()
        );
        for (path, value, from) in [
            ("guard.per_minute", 7.into(), "file"),
            (
                "listen",
                "127.0.0.1:2".into(),
                "environment SCOREGATE_LISTEN",
            ),
            ("data_dir", "c".into(), "flag"),
            ("cors.origins", vec!["https://a.example"].into(), "file"),
            ("upstream.max_concurrent_requests", 2.into(), "default"),
            ("server.plain_http", false.into(), "default"),
            ("server.workers", serde_json::Value::Null, "default"),
            ("freshness.alerts.ttl", "5m".into(), "file"),
            ("tiers.pro.day", 10_000.into(), "default"),
            ("tiers.free.paid", false.into(), "default"),
        ] {
            assert_eq!(one(&shown, path), (&value, from), "{path}");
        }
    }

    #[test]
    fn configured_tiers_replace_the_standard_tiers() {
        let text = "upstream = \"built-in\"\n[tiers.gold]\nminute = 1\nday = 2\npaid = true";
        let shown = shown(&read_text(text).unwrap());
        let tiers: Vec<_> = shown
            .iter()
            .filter(|row| row.path.starts_with("tiers."))
            .collect();
        assert!(
            tiers.len() == 3 && tiers.iter().all(|row| row.from == "file"),
            "{tiers:?}"
        );
        assert_eq!(one(&shown, "tiers.gold.day"), (&2.into(), "file"));
    }

    #[test]
    fn neither_a_secret_nor_its_length_is_shown() {
        let of = |secret: &str| {
            let text = format!(
                "admin.token = \"{secret}\"\n[upstream]\nurl = \"http://localhost:1\"\ncredential = \"{secret}\"\n\
                 [mapping.incidents]\npath = \"/a?key={secret}&limit={{limit}}&{secret}&more={{limit}}{secret}\"\n\
                 unsupported = [\"period\"]"
            );
            serde_json::to_string(&shown(&read_text(&text).unwrap())).unwrap()
        };
        let [short, long] = [
            "canary-of-sixteen",
            "canary-of-more-than-sixteen-characters",
        ]
        .map(of);
        assert_eq!(short, long);
        assert!(!short.contains("canary"), "{short}");
        for hidden in [
            r#""path":"admin.token","value":"…""#,
            r#""path":"upstream.credential","value":"…""#,
        ] {
            assert!(short.contains(hidden), "{hidden}: {short}");
        }
        assert!(
            short.contains("/a?key=…&limit={limit}&…&more=…\""),
            "{short}"
        );
    }
}
