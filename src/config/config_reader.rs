//! Reads single settings and collects problems.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::Value;

use scoregate_base::routes::EndpointTable;
use scoregate_base::secret::{Secret, SecretSetting};

use super::file::ConfigValues;
use super::settings::{IN_A_FILE, Setting, ValueKind, setting_of};
use super::shown::showable;
use super::tables::{is_in_a_table, may_be_empty};
use super::words::{duration, nearest, size};
use super::{ConfigProblem, ConfigProblems};

/// Reads values one by one and collects problems. An invalid value is read as a harmless placeholder, which is never
/// used: any problem rejects the whole configuration.
pub(super) struct ConfigReader<'w> {
    written: &'w ConfigValues,
    problems: Vec<ConfigProblem>,
}

impl<'w> ConfigReader<'w> {
    pub(super) fn of(written: &'w ConfigValues) -> Self {
        Self {
            written,
            problems: written.problems.clone(),
        }
    }

    /// The given values, for sections with tables of their own.
    pub(super) fn written(&self) -> &'w ConfigValues {
        self.written
    }

    /// Returns the result if no problem was found.
    pub(super) fn done<T>(self, read: T) -> Result<T, ConfigProblems> {
        if self.problems.is_empty() {
            Ok(read)
        } else {
            Err(ConfigProblems(self.problems))
        }
    }

    pub(super) fn problem(&mut self, path: &str, found: Option<&Value>, remedy: impl Into<String>) {
        let found = found.map(|value| showable(path, value).to_string());
        let path = match self.written.variable(path) {
            Some(variable) => format!("{path} (from {variable})"),
            None => path.to_owned(),
        };
        self.problems.push(ConfigProblem {
            path,
            found,
            remedy: remedy.into(),
        });
    }

    /// Reports a problem with the given value, if there is one.
    pub(super) fn reject(&mut self, path: &str, remedy: impl Into<String>) {
        self.problem(path, self.maybe(path), remedy);
    }

    /// Reports more than the maximum number of items.
    pub(super) fn at_most(&mut self, path: &str, found: usize, most: usize, items: &str) {
        if found > most {
            self.problem(
                path,
                None,
                format!("found {found} {items}; the maximum is {most}"),
            );
        }
    }

    /// Reports those of the settings that are given, because another one is missing.
    pub(super) fn without_effect(&mut self, paths: &[&str], remedy: &str) {
        let written = self.written;
        for path in paths
            .iter()
            .filter(|path| written.values.contains_key(**path))
        {
            self.problem(path, None, remedy);
        }
    }

    /// The names of the tables in a table, in order.
    pub(super) fn names_in(&self, table: &str) -> Vec<&'w str> {
        let below = self
            .written
            .values
            .keys()
            .filter_map(|path| path.strip_prefix(table)?.strip_prefix('.'));
        let mut names: Vec<&str> = below.filter_map(|below| below.split('.').next()).collect();
        names.dedup();
        names
    }

    pub(super) fn unknown_paths(&mut self, endpoints: &EndpointTable) {
        for table in self
            .written
            .empty_tables
            .iter()
            .filter(|table| !may_be_empty(table, endpoints))
        {
            let remedy = match table.split_once('.') {
                Some(("endpoints" | "tiers" | "tls", _)) => {
                    "the table is empty: write its settings, or remove it"
                }
                Some(_) | None => {
                    "there is no such table; `scoregate check --sample` prints all settings"
                }
            };
            self.problem(table, None, remedy);
        }
        for path in self.written.values.keys() {
            if setting_of(path).is_some() || is_in_a_table(path, endpoints) {
                continue;
            }
            let remedy = match nearest(path) {
                Some(known) => format!("there is no such setting; did you mean `{known}`?"),
                None => "there is no such setting; `scoregate check --sample` prints all settings"
                    .into(),
            };
            // The value is not printed: it may be a secret under a misspelled path.
            self.problem(path, None, remedy);
        }
    }

    pub(super) fn maybe(&self, path: &str) -> Option<&'w Value> {
        self.written.values.get(path)
    }

    /// The given value or the default, converted by `read`.
    pub(super) fn value<T>(&mut self, path: &str, read: impl Fn(&Value) -> Option<T>) -> Option<T> {
        let setting: &Setting = setting_of(path)?;
        if let Some(value) = self.maybe(path) {
            return self.as_kind(path, setting.kind, read(value));
        }
        read(&setting.default_value()?)
    }

    /// Rejects a given value that could not be read as this kind.
    pub(super) fn as_kind<T>(&mut self, path: &str, kind: ValueKind, read: Option<T>) -> Option<T> {
        if read.is_none() {
            self.reject(path, kind.remedy());
        }
        read
    }

    pub(super) fn text(&mut self, path: &str) -> String {
        let text = self
            .value(path, |value| value.as_str().map(str::to_owned))
            .unwrap_or_default();
        let is_invalid = text.trim().is_empty() || text.chars().any(char::is_control);
        if is_invalid && self.maybe(path).is_some_and(Value::is_str) {
            self.reject(path, "write a non-empty string on one line");
        }
        text
    }

    /// A string that may be missing.
    pub(super) fn optional_text(&mut self, path: &str) -> Option<String> {
        self.maybe(path)?;
        Some(self.text(path))
    }

    /// Reads a list of strings; a value from the environment is split at commas.
    pub(super) fn texts(&mut self, path: &str) -> Vec<String> {
        let Some(value) = self.maybe(path) else {
            return Vec::new();
        };
        let of_the_environment = self.written.variable(path).is_some();
        let texts = match value {
            Value::Array(items) => items
                .iter()
                .map(|item| item.as_str().map(str::to_owned))
                .collect(),
            Value::String(text) if of_the_environment => {
                let parts = text.split(',').map(|part| part.trim().to_owned());
                Some(parts.filter(|part| !part.is_empty()).collect())
            }
            Value::String(_)
            | Value::Integer(_)
            | Value::Float(_)
            | Value::Boolean(_)
            | Value::Datetime(_)
            | Value::Table(_) => None,
        };
        self.as_kind(path, ValueKind::Texts, texts)
            .unwrap_or_default()
    }

    pub(super) fn address(&mut self, path: &str) -> SocketAddr {
        let fallback = SocketAddr::from(([127, 0, 0, 1], 0));
        self.value(path, |value| value.as_str()?.parse().ok())
            .unwrap_or(fallback)
    }

    pub(super) fn flag(&mut self, path: &str) -> bool {
        self.value(path, Value::as_bool).unwrap_or_default()
    }

    pub(super) fn number<T: TryFrom<u64> + From<u8>>(&mut self, path: &str) -> T {
        let bounds = setting_of(path).map(|setting| setting.kind);
        let within = |number: &u64| !matches!(bounds, Some(ValueKind::Number(least, most)) if *number < least || *number > most);
        let read = |value: &Value| {
            u64::try_from(value.as_integer()?)
                .ok()
                .filter(within)?
                .try_into()
                .ok()
        };
        self.value(path, read).unwrap_or(1.into())
    }

    pub(super) fn duration(&mut self, path: &str) -> Duration {
        self.value(path, |value| duration(value.as_str()?))
            .unwrap_or(Duration::from_secs(1))
    }

    pub(super) fn size(&mut self, path: &str) -> u64 {
        self.value(path, |value| size(value.as_str()?)).unwrap_or(1)
    }

    pub(super) fn word(&mut self, path: &str) -> String {
        let words = setting_of(path).map(|setting| setting.kind);
        let known =
            |text: &str| matches!(words, Some(ValueKind::Words(words)) if words.contains(&text));
        self.value(path, |value| {
            value.as_str().filter(|text| known(text)).map(str::to_owned)
        })
        .unwrap_or_default()
    }

    /// A secret. One in a file is read again; a later one must have this many characters.
    pub(super) fn secret(&mut self, path: &str, min_length: usize) -> Option<SecretSetting> {
        self.maybe(path)?;
        let secret = Secret::new(self.value(path, |value| value.as_str().map(str::to_owned))?);
        let file = self
            .maybe(&format!("{path}{IN_A_FILE}"))
            .and_then(Value::as_str);
        Some(match file {
            Some(file) => SecretSetting::in_file(path, Path::new(file), min_length, secret),
            None => SecretSetting::fixed(secret),
        })
    }

    /// A path that may be missing.
    pub(super) fn optional_path(&mut self, path: &str) -> Option<PathBuf> {
        let file = self
            .maybe(path)?
            .as_str()
            .filter(|file| !file.is_empty())
            .map(PathBuf::from);
        if file.is_none() {
            self.reject(path, "write a path in double quotes");
        }
        file
    }

    /// The certificate of a client and its private key, which are given together.
    pub(super) fn certificate_pair(
        &mut self,
        certificate: &str,
        key: &str,
    ) -> Option<(PathBuf, PathBuf)> {
        let pair = (self.optional_path(certificate), self.optional_path(key));
        match &pair {
            (Some(_), None) => {
                self.problem(
                    key,
                    None,
                    format!("write the path of the private key of {certificate}"),
                );
            }
            (None, Some(_)) => {
                self.problem(
                    certificate,
                    None,
                    format!("write the path of the certificate of {key}"),
                );
            }
            (None, None) | (Some(_), Some(_)) => {}
        }
        pair.0.zip(pair.1)
    }
}
