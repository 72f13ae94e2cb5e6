//! Tests of the settings as a whole, and functions that the tests of sections share.

use crate::upstream::HttpConfig;

use super::{Config, UpstreamConfig, read_environment, read_text, resolve};

mod maximums;
mod reports;

/// Parses a configuration, with the built-in backend.
pub fn accepted(text: &str) -> Config {
    let written = read_text(&format!("upstream = \"built-in\"\n{text}")).unwrap();
    resolve(&written).unwrap_or_else(|problems| panic!("{text}: {problems}"))
}

/// Parses a backend from the contents of the table `[upstream]`.
pub fn backend(text: &str) -> HttpConfig {
    let written = read_text(&format!("[upstream]\n{text}")).unwrap();
    match resolve(&written) {
        Ok(Config {
            upstream: UpstreamConfig::Http(http),
            ..
        }) => *http,
        other => panic!("{text}: {other:?}"),
    }
}

/// The configuration with an environment variable.
pub fn with_variable(name: &str, value: &str) -> Config {
    let mut written = read_text("upstream = \"built-in\"").unwrap();
    let variable = (name.to_owned(), value.to_owned());
    written.overlay(read_environment([variable].into_iter()));
    resolve(&written).unwrap_or_else(|problems| panic!("{value}: {problems}"))
}

/// The problems in a configuration, one per line. Empty if there are no problems.
fn problems(text: &str) -> String {
    match resolve(&read_text(text).unwrap()) {
        Ok(_) => String::new(),
        Err(problems) => problems.to_string(),
    }
}
