//! Current settings for the operator: each with its value and origin, without secrets.

use toml::Value;

use crate::admin::SettingView;
use scoregate_base::plans::Tier;

use super::Config;
use super::file::ConfigValues;
use super::settings::{SETTINGS, ValueKind, setting_of};
use super::tables::UPSTREAM_HEADERS;

/// Placeholder for a secret, independent of its length.
const HIDDEN: &str = "…";

impl Config {
    /// All settings: those of the table in its order, then the tiers and the other named tables.
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

/// A value without secrets. Besides secret settings, the backend URL can contain a password, and a mapped path a fixed
/// parameter with a credential.
pub(super) fn showable(path: &str, value: &Value) -> Value {
    let is_secret = setting_of(path).is_some_and(|setting| setting.kind == ValueKind::Secret);
    if is_secret {
        return HIDDEN.into();
    }
    if path == UPSTREAM_HEADERS
        && let Value::Table(headers) = value
    {
        return Value::Table(
            headers
                .keys()
                .map(|name| (name.clone(), HIDDEN.into()))
                .collect(),
        );
    }
    let is_mapped = path.starts_with("mapping.") && path.rsplit('.').next() == Some("path");
    if matches!(path, "upstream.urls" | "upstream.standby_urls")
        && let Value::Array(urls) = value
    {
        return urls
            .iter()
            .map(|url| showable("upstream.url", url))
            .collect::<Vec<_>>()
            .into();
    }
    match value.as_str() {
        Some(text)
            if ["upstream.url", "upstream.urls", "upstream.standby_urls"].contains(&path) =>
        {
            text.split(',')
                .map(without_password)
                .collect::<Vec<_>>()
                .join(",")
                .into()
        }
        Some(text) if path == "store.url" || path == "store.listen_url" => {
            without_fixed_values(&without_password(text)).into()
        }
        Some(text) if is_mapped => without_fixed_values(text).into(),
        Some(_) | None => value.clone(),
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

/// `http://user:password@host/` as `http://…@host/`.
fn without_password(address: &str) -> String {
    let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    match authority.rsplit_once('@') {
        Some((user, _)) => {
            let host = rest.strip_prefix(user).unwrap_or_default();
            let scheme = if scheme.is_empty() {
                String::new()
            } else {
                format!("{scheme}://")
            };
            format!("{scheme}{HIDDEN}{host}")
        }
        None => address.to_owned(),
    }
}

/// `/scores?token=1234&period={period}` as `/scores?token=…&period={period}`.
fn without_fixed_values(template: &str) -> String {
    let Some((path, query)) = template.split_once('?') else {
        return template.to_owned();
    };
    let is_filled_in =
        |value: &str| value.starts_with('{') && value.find('}') == Some(value.len() - 1);
    let pairs = query.split('&').map(|pair| match pair.split_once('=') {
        Some((_, value)) if is_filled_in(value) => pair.to_owned(),
        Some((name, _)) => format!("{name}={HIDDEN}"),
        None => HIDDEN.to_owned(),
    });
    format!("{path}?{}", pairs.collect::<Vec<_>>().join("&"))
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
            panic!("{path} is not there once: {shown:#?}")
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

    #[test]
    fn a_password_in_the_backend_s_url_is_rejected_and_not_printed() {
        for (address, shown) in [
            (
                "http://user:canary@localhost:1/api",
                "http://…@localhost:1/api",
            ),
            ("https://canary@localhost", "https://…@localhost"),
            ("user:canary@localhost", "…@localhost"),
            ("http://localhost/a@b", "http://localhost/a@b"),
        ] {
            assert_eq!(
                showable("upstream.url", &address.into()),
                Value::from(shown)
            );
        }
        let written = read_text("[upstream]\nurl = \"http://user:canary@localhost:1\"").unwrap();
        let refused = resolve(&written).unwrap_err().to_string();
        assert!(
            refused.contains("upstream.credential") && !refused.contains("canary"),
            "{refused}"
        );
    }
}
