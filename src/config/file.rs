//! Raw settings: paths and values from a TOML file and the environment, before validation and without defaults.

use std::{collections::BTreeMap, fmt, path::Path};

use toml::Value;

use super::{
    ConfigProblem, ConfigProblems,
    settings::{IN_A_FILE, SETTINGS, ValueKind, variable},
    tables::is_one_value,
};

/// The given values by path. Later sources override earlier sources.
#[derive(Clone, Debug, Default)]
pub struct ConfigValues {
    pub(super) values: BTreeMap<String, Value>,
    /// Tables of the file that contain no values.
    pub(super) empty_tables: Vec<String>,
    /// Origins of the values that are not from the file.
    origins: BTreeMap<String, SettingOrigin>,
    /// Problems with the sources. They are reported together with problems with the values.
    pub(super) problems: Vec<ConfigProblem>,
    /// Whether the file could not be read. In this case it may contain the missing settings.
    pub(super) is_incomplete: bool,
}

/// The source of a setting.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SettingOrigin {
    #[default]
    File,
    /// The environment variable with this name.
    Environment(String),
    Flag,
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File => f.write_str("file"),
            Self::Environment(variable) => write!(f, "environment {variable}"),
            Self::Flag => f.write_str("flag"),
        }
    }
}

impl ConfigValues {
    /// Sets a value from a command line flag.
    pub fn set(&mut self, path: &str, value: impl Into<Value>) {
        self.put(path, value.into(), SettingOrigin::Flag);
    }

    pub(super) fn put(&mut self, path: &str, value: Value, origin: SettingOrigin) {
        self.values.insert(path.to_owned(), value);
        self.origins.insert(path.to_owned(), origin);
    }

    pub(super) fn origin(&self, path: &str) -> SettingOrigin {
        self.origins.get(path).cloned().unwrap_or_default()
    }

    /// The environment variable that set a value, if any.
    pub(super) fn variable(&self, path: &str) -> Option<&str> {
        match self.origins.get(path)? {
            SettingOrigin::Environment(variable) => Some(variable),
            SettingOrigin::File | SettingOrigin::Flag => None,
        }
    }

    /// Returns whether a value is set at this path or below it.
    pub fn is_set(&self, path: &str) -> bool {
        let below = format!("{path}.");
        self.values
            .keys()
            .any(|key| key == path || key.starts_with(&below))
    }

    /// Overrides these values with the values of `other`.
    pub fn overlay(&mut self, other: Self) {
        // `upstream` in the environment replaces all `upstream.*` settings in the file, and vice versa.
        if other.values.contains_key("upstream") {
            self.values.retain(|key, _| !key.starts_with("upstream."));
        } else if other.is_set("upstream") {
            self.values.remove("upstream");
        }
        // Likewise, a secret replaces the path of its file, and vice versa.
        for path in other.values.keys() {
            let counterpart = path
                .strip_suffix(IN_A_FILE)
                .map_or_else(|| format!("{path}{IN_A_FILE}"), str::to_owned);
            self.values.remove(&counterpart);
        }
        for (path, value) in other.values {
            let origin = other.origins.get(&path).cloned().unwrap_or_default();
            self.put(&path, value, origin);
        }
        self.problems.extend(other.problems);
    }
}

/// Reads a file.
pub fn read_file(path: &Path) -> ConfigValues {
    values_in(path).unwrap_or_else(|remedy| {
        let problem = ConfigProblem {
            path: path.display().to_string(),
            found: None,
            remedy,
        };
        ConfigValues {
            problems: vec![problem],
            is_incomplete: true,
            ..ConfigValues::default()
        }
    })
}

/// The values in a file, or the reason why it is unusable.
fn values_in(path: &Path) -> Result<ConfigValues, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("the file cannot be read: {error}"))?;
    let text = String::from_utf8(bytes).map_err(|_| "the file is not UTF-8 text")?;
    read_text(&text).map_err(|problem| {
        problem
            .0
            .into_iter()
            .map(|p| p.remedy)
            .collect::<Vec<_>>()
            .join("\n")
    })
}

/// Parses TOML.
pub fn read_text(text: &str) -> Result<ConfigValues, ConfigProblems> {
    let table: toml::Table = toml::from_str(text)
        .map_err(|error| ConfigProblems::one("(file)", None, malformed(text, &error)))?;
    let mut written = ConfigValues::default();
    flatten("", Value::Table(table), &mut written);
    Ok(written)
}

/// The error for invalid TOML. It does not quote the line, which may contain a secret.
fn malformed(text: &str, error: &toml::de::Error) -> String {
    let before = error
        .span()
        .and_then(|span| text.get(..span.start))
        .unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before
        .rsplit('\n')
        .next()
        .unwrap_or_default()
        .chars()
        .count()
        + 1;
    let location = format!("line {line}, character {column}");
    match error.message() {
        "duplicate key" => {
            format!("{location}: this setting or table is already in the file; keep one of the two")
        }
        message => {
            let message = message.replace('\n', ", ");
            format!(
                "{location}: not valid TOML ({message}); write `name = value`, with strings in double quotes"
            )
        }
    }
}

fn flatten(path: &str, value: Value, into: &mut ConfigValues) {
    match value {
        // The keys of this table are names of fields, which may contain dots.
        Value::Table(_) if is_one_value(path) => {
            into.values.insert(path.to_owned(), value);
        }
        Value::Table(table) => {
            if table.is_empty() && !path.is_empty() {
                into.empty_tables.push(path.to_owned());
            }
            for (name, value) in table {
                let below = if path.is_empty() {
                    name
                } else {
                    format!("{path}.{name}")
                };
                flatten(&below, value, into);
            }
        }
        other @ (Value::String(_)
        | Value::Integer(_)
        | Value::Float(_)
        | Value::Boolean(_)
        | Value::Datetime(_)
        | Value::Array(_)) => {
            into.values.insert(path.to_owned(), other);
        }
    }
}

/// Environment variables with the prefix `SCOREGATE_` that are not settings.
const NOT_SETTINGS: [&str; 3] = ["SCOREGATE_CONFIG", "SCOREGATE_FULL", "SCOREGATE_WRITE"];

/// Reads the environment: every variable with the prefix `SCOREGATE_` must be a setting.
pub fn read_environment(variables: impl Iterator<Item = (String, String)>) -> ConfigValues {
    let mut written = ConfigValues::default();
    for (name, text) in variables.filter(|(name, _)| name.starts_with("SCOREGATE_")) {
        if NOT_SETTINGS.contains(&name.as_str()) {
            continue;
        }
        let Some(setting) = SETTINGS
            .iter()
            .find(|setting| variable(setting.path) == name)
        else {
            written.problems.push(ConfigProblem {
                path: name,
                found: None,
                remedy: "no setting has this variable: unset it, or compare it with `scoregate check --sample`"
                    .into(),
            });
            continue;
        };
        written.put(
            setting.path,
            value_of(setting.kind, text),
            SettingOrigin::Environment(name),
        );
    }
    written
}

/// Converts the text of a variable. Lists are split at commas, and integers and booleans are parsed. Other text is a
/// string.
fn value_of(kind: ValueKind, text: String) -> Value {
    if [ValueKind::Networks, ValueKind::Texts].contains(&kind) {
        let entries = text.split(',').map(str::trim);
        // An empty entry in a list of networks is a mistake, as in `10.0.0.0/8,`. Other lists ignore empty entries.
        let is_empty = text.trim().is_empty();
        return entries
            .filter(|entry| !is_empty && (kind == ValueKind::Networks || !entry.is_empty()))
            .map(Value::from)
            .collect::<Vec<_>>()
            .into();
    }
    match text.parse::<i64>() {
        Ok(number) => Value::Integer(number),
        Err(_) => text
            .parse::<bool>()
            .map_or(Value::String(text), Value::Boolean),
    }
}
