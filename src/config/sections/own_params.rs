//! Reads the tables in `parameters` of `[endpoints.NAME]`: parameters that define their own values.

use std::collections::BTreeSet;

use toml::Value;

use scoregate_base::routes::{MOST_OWN_PARAMS, OwnParam, Param};

use crate::config::table_reader::{TableReader, list};

const MOST_VALUES: usize = 64;
/// Maximum number of documents of an endpoint that differ only in these parameters.
const MOST_COMBINATIONS: usize = 1_024;

/// Names of credentials in lower case, without hyphens and underscores. With such a parameter, callers would send
/// credentials in URLs, which proxies and browsers record.
const CREDENTIALS: [&str; 19] = [
    "key",
    "apikey",
    "xapikey",
    "accesskey",
    "secretkey",
    "token",
    "apitoken",
    "accesstoken",
    "authtoken",
    "sessiontoken",
    "auth",
    "authorization",
    "bearer",
    "credential",
    "credentials",
    "secret",
    "clientsecret",
    "password",
    "passwd",
];

/// A parameter as it is written in the file.
pub struct OwnDefinition {
    name: String,
    values: Vec<String>,
    default: String,
    meaning: String,
}

/// Reads the table of a parameter.
pub fn read<'w>(
    table: &mut TableReader<'_, 'w>,
    number: usize,
    value: &'w Value,
) -> Option<OwnDefinition> {
    let remedy = "write \"period\", \"sortBy\", \"limit\", or a table with name, values, default and meaning";
    let settings = ["name", "values", "default", "meaning"];
    let mut table = table.item("parameters", number, value, &settings, remedy)?;
    let values = values(&mut table);
    let remedy = "write one of the values";
    let default = table.needed("default", remedy, |value| {
        value
            .as_str()
            .filter(|text| values.iter().any(|value| value == text))
    });
    Some(OwnDefinition {
        name: name(&mut table).to_owned(),
        default: default.unwrap_or_default().to_owned(),
        meaning: table.line("meaning", 300).to_owned(),
        values,
    })
}

fn name<'w>(table: &mut TableReader<'_, 'w>) -> &'w str {
    let remedy = "write a name: a letter, then up to 31 letters, digits or underscores";
    let name = table
        .needed("name", remedy, Value::as_str)
        .unwrap_or_default();
    let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name.len() <= 32
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !is_name {
        table.problem("name", remedy);
    }
    if Param::ALL.iter().any(|param| param.name() == name) {
        table.problem("name", "choose another name: this one is taken");
    }
    if is_credential(name) {
        table.problem("name", "choose another name: this one asks for a credential, and URLs are logged; keys are sent in headers");
    }
    name
}

fn values(table: &mut TableReader<'_, '_>) -> Vec<String> {
    let remedy = format!(
        "write 1 to {MOST_VALUES} different values of up to 64 letters, digits, \"-\", \".\", \"_\" or \"~\""
    );
    let values: Vec<String> = table
        .needed("values", remedy.as_str(), |value| {
            list(value, |one| Some(one.to_owned()))
        })
        .unwrap_or_default();
    let distinct = values.iter().collect::<BTreeSet<_>>().len();
    let fits = (1..=MOST_VALUES).contains(&values.len()) && distinct == values.len();
    if !fits || !values.iter().all(|value| is_value(value)) {
        table.problem("values", remedy);
    }
    values
}

fn is_value(value: &str) -> bool {
    (1..=64).contains(&value.len())
        && value
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte))
}

/// Reports problems that involve several of an endpoint's own parameters.
pub fn check_all(table: &mut TableReader<'_, '_>, all: &[OwnDefinition]) {
    for (number, one) in all.iter().enumerate() {
        if all.iter().take(number).any(|other| other.name == one.name) {
            let remedy = format!("remove a parameter: `{}` is described twice", one.name);
            table.problem("parameters", remedy);
        }
    }
    if all.len() > MOST_OWN_PARAMS {
        let remedy = format!(
            "an endpoint has at most {MOST_OWN_PARAMS} parameters that define their own values"
        );
        table.problem("parameters", remedy);
    }
    let combinations = all
        .iter()
        .map(|one| one.values.len())
        .fold(1, usize::saturating_mul);
    if combinations > MOST_COMBINATIONS {
        let remedy =
            format!("{combinations} combinations of values; the maximum is {MOST_COMBINATIONS}");
        table.problem("parameters", remedy);
    }
}

impl OwnDefinition {
    /// Keeps the parameter at this position for the lifetime of the process.
    pub fn kept(self, position: usize) -> Param {
        let meaning = format!("{} Default: `{}`.", self.meaning, self.default).leak();
        let words = self
            .values
            .into_iter()
            .map(|value| &*value.leak())
            .collect::<Vec<_>>()
            .leak();
        let name = self.name.leak();
        let default = self.default.leak();
        Param::Own(Box::leak(Box::new(OwnParam {
            name,
            meaning,
            words,
            default,
            position,
        })))
    }
}

fn is_credential(name: &str) -> bool {
    let plain = name.replace(['-', '_'], "").to_ascii_lowercase();
    CREDENTIALS.contains(&&*plain)
}

#[cfg(test)]
mod tests {
    use super::is_credential;

    #[test]
    fn names_of_credentials_are_found_in_any_spelling_and_other_names_are_not() {
        for name in [
            "key",
            "API_KEY",
            "apiKey",
            "api-key",
            "token",
            "Access_Token",
            "authorization",
            "secret",
            "password",
        ] {
            assert!(is_credential(name), "{name}");
        }
        for name in ["unit", "tokens", "keyboard", "sort_key"] {
            assert!(!is_credential(name), "{name}");
        }
    }
}
