//! Reads individual settings and collects problems.

use std::path::{Path, PathBuf};

use toml::Value;

use scoregate_base::{
    routes::EndpointTable,
    secret::{Secret, SecretSetting},
};

use super::{
    ConfigProblem, ConfigProblems,
    file::ConfigValues,
    setting_value::SettingValue,
    settings::{IN_A_FILE, Setting, setting_of},
    showable::showable,
    tables::{is_in_a_table, may_be_empty},
    words::nearest,
};

/// Reads values one by one and collects problems. An invalid value is read as a harmless placeholder. The placeholder
/// is never used, because any problem rejects the whole configuration.
pub struct ConfigReader<'w> {
    written: &'w ConfigValues,
    problems: Vec<ConfigProblem>,
}

impl<'w> ConfigReader<'w> {
    pub fn of(written: &'w ConfigValues) -> Self {
        Self {
            written,
            problems: written.problems.clone(),
        }
    }

    /// The given values, for sections that read separate tables.
    pub fn written(&self) -> &'w ConfigValues {
        self.written
    }

    /// Returns the result if no problem was found.
    pub fn done<T>(self, read: T) -> Result<T, ConfigProblems> {
        if self.problems.is_empty() {
            Ok(read)
        } else {
            Err(ConfigProblems(self.problems))
        }
    }

    pub fn problem(&mut self, path: &str, found: Option<&Value>, remedy: impl Into<String>) {
        let found = found.map(|value| showable(path, value).to_string());
        let path = match self.written.variable(path) {
            Some(variable) => format!("{path} (from {variable})"),
            None => path.to_owned(),
        };
        let problem = ConfigProblem {
            path,
            found,
            remedy: remedy.into(),
        };
        // Some settings are read more than once.
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// The number of problems so far.
    pub fn problem_count(&self) -> usize {
        self.problems.len()
    }

    /// Reports a problem, with the given value if there is one.
    pub fn reject(&mut self, path: &str, remedy: impl Into<String>) {
        self.problem(path, self.maybe(path), remedy);
    }

    /// Reports a problem if there are more items than allowed.
    pub fn at_most(&mut self, path: &str, found: usize, most: usize, items: &str) {
        if found > most {
            self.problem(
                path,
                None,
                format!("found {found} {items}; the maximum is {most}"),
            );
        }
    }

    /// Reports settings that have no effect because a setting that they require is missing.
    pub fn without_effect(&mut self, paths: &[&str], remedy: &str) {
        let written = self.written;
        for path in paths
            .iter()
            .filter(|path| written.values.contains_key(**path))
        {
            self.problem(path, None, remedy);
        }
    }

    /// The names of a table's subtables, in order.
    pub fn names_in(&self, table: &str) -> Vec<&'w str> {
        let below = self
            .written
            .values
            .keys()
            .filter_map(|path| path.strip_prefix(table)?.strip_prefix('.'));
        let mut names: Vec<&str> = below.filter_map(|below| below.split('.').next()).collect();
        names.dedup();
        names
    }

    pub fn unknown_paths(&mut self, endpoints: &EndpointTable) {
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
            // The value is not printed, because it may be a secret under a misspelled path.
            self.problem(path, None, remedy);
        }
    }

    pub fn maybe(&self, path: &str) -> Option<&'w Value> {
        self.written.values.get(path)
    }

    /// A setting, or its default. If the setting is invalid, a placeholder.
    pub fn get<T: SettingValue + Default>(&mut self, path: &str) -> T {
        self.optional(path).unwrap_or_default()
    }

    /// A setting, or its default. `None` if there is no default, or if the setting is invalid.
    pub fn optional<T: SettingValue>(&mut self, path: &str) -> Option<T> {
        let Setting { kind, .. } = setting_of(path)?;
        let Some(value) = self.maybe(path) else {
            return T::read(&setting_of(path)?.default_value()?, *kind);
        };
        let read = T::read(value, *kind);
        if read.is_none() {
            self.reject(path, kind.remedy_for(value));
        }
        read
    }

    /// A secret. If the secret is in a file, the file is reloaded, and each later secret in it must have at least
    /// `min_length` characters.
    pub fn secret(&mut self, path: &str, min_length: usize) -> Option<SecretSetting> {
        self.maybe(path)?;
        let secret = Secret::new(self.optional(path)?);
        let file = self
            .maybe(&format!("{path}{IN_A_FILE}"))
            .and_then(Value::as_str);
        Some(match file {
            Some(file) => SecretSetting::in_file(path, Path::new(file), min_length, secret),
            None => SecretSetting::fixed(secret),
        })
    }

    /// The client certificate and its private key, which must be given together.
    pub fn certificate_pair(&mut self, certificate: &str, key: &str) -> Option<(PathBuf, PathBuf)> {
        let certificate_file = self.optional(certificate);
        let key_file = self.optional(key);
        if certificate_file.is_some() && key_file.is_none() {
            let remedy = format!("write the path of the private key of {certificate}");
            self.problem(key, None, remedy);
        } else if key_file.is_some() && certificate_file.is_none() {
            let remedy = format!("write the path of the certificate of {key}");
            self.problem(certificate, None, remedy);
        }
        certificate_file.zip(key_file)
    }
}
