//! Reads the tables in `parameters` of `[endpoints.NAME]`: parameters with values of their own.

use serde::Deserialize;
use toml::Value;

use scoregate_base::routes::{MOST_OWN_PARAMS, OwnParam, Param};

const MOST_VALUES: usize = 64;
/// Maximum number of documents of an endpoint that differ in these parameters only.
const MOST_COMBINATIONS: usize = 1_024;

/// Names of credentials in lower case, without hyphens and underscores. Callers would send theirs in URLs, which proxies and
/// browsers record.
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

/// A parameter as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OwnDefinition {
    name: String,
    values: Vec<String>,
    default: String,
    meaning: String,
}

/// Reads the table of a parameter.
pub(super) fn read(value: &Value) -> Result<OwnDefinition, String> {
    value.clone().try_into().map_err(|error: toml::de::Error| {
        let problem = error.message().trim_end().to_owned();
        format!(
            "write \"period\", \"sortBy\", \"limit\", or a table with name, values, default and meaning: {problem}"
        )
    })
}

/// The problems with the own parameters of an endpoint.
pub(super) fn problems(all: &[OwnDefinition]) -> Vec<String> {
    let mut problems: Vec<String> = all.iter().flat_map(OwnDefinition::problems).collect();
    for (number, one) in all.iter().enumerate() {
        if all.iter().take(number).any(|other| other.name == one.name) {
            problems.push(format!(
                "remove a parameter: `{}` is described twice",
                one.name
            ));
        }
    }
    if all.len() > MOST_OWN_PARAMS {
        problems.push(format!(
            "an endpoint has at most {MOST_OWN_PARAMS} parameters with own values"
        ));
    }
    let combinations = all
        .iter()
        .map(|one| one.values.len())
        .fold(1, usize::saturating_mul);
    if combinations > MOST_COMBINATIONS {
        problems.push(format!(
            "{combinations} combinations of values; the maximum is {MOST_COMBINATIONS}"
        ));
    }
    problems
}

impl OwnDefinition {
    fn problems(&self) -> Vec<String> {
        let Self {
            name,
            values,
            default,
            meaning,
        } = self;
        let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.len() <= 32
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let is_value = |value: &String| {
            (1..=64).contains(&value.len())
                && value
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte))
        };
        let is_distinct = values
            .iter()
            .enumerate()
            .all(|(at, value)| !values.iter().take(at).any(|other| other == value));
        let has_values =
            (1..=MOST_VALUES).contains(&values.len()) && is_distinct && values.iter().all(is_value);
        let is_line = !meaning.trim().is_empty()
            && meaning.len() <= 300
            && !meaning.contains(char::is_control);
        let rules = [
            (
                is_name,
                "a name is a letter, then up to 31 letters, digits or underscores".to_owned(),
            ),
            (
                Param::ALL.iter().all(|param| param.name() != name),
                "choose another name: this one is taken".into(),
            ),
            (
                !is_credential(name),
                "choose another name: this one asks for a credential, and URLs are logged; keys are sent in headers".into(),
            ),
            (
                has_values,
                format!(
                    "write 1 to {MOST_VALUES} different values of up to 64 letters, digits, \"-\", \".\", \"_\" or \"~\""
                ),
            ),
            (
                values.contains(default),
                "the default is one of the values".into(),
            ),
            (
                is_line,
                "write the meaning as one line of at most 300 bytes".into(),
            ),
        ];
        let broken = rules.into_iter().filter(|(is_kept, _)| !is_kept);
        broken
            .map(|(_, rule)| format!("parameter `{}`: {rule}", name.escape_debug()))
            .collect()
    }

    /// The parameter at this position for the life of the process.
    pub(super) fn kept(self, position: usize) -> Param {
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
