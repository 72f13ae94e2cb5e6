//! Tests of the settings as a whole, and what the tests of single sections share.

use crate::upstream::HttpConfig;

use super::{Config, UpstreamConfig, read_environment, read_text, resolve};

mod maximums;
mod reports;

/// The configuration of a text, with the built-in backend.
pub(super) fn accepted(text: &str) -> Config {
    let written = read_text(&format!("upstream = \"built-in\"\n{text}")).unwrap();
    resolve(&written).unwrap_or_else(|problems| panic!("{text}: {problems}"))
}

/// The configuration of a text that is in the table of a backend over HTTP.
pub(super) fn backend(text: &str) -> HttpConfig {
    let written = read_text(&format!("[upstream]\n{text}")).unwrap();
    match resolve(&written) {
        Ok(Config {
            upstream: UpstreamConfig::Http(http),
            ..
        }) => *http,
        other => panic!("{text}: {other:?}"),
    }
}

/// The configuration with a variable of the environment.
pub(super) fn with_variable(name: &str, value: &str) -> Config {
    let mut written = read_text("upstream = \"built-in\"").unwrap();
    let variable = (name.to_owned(), value.to_owned());
    written.overlay(read_environment([variable].into_iter()));
    resolve(&written).unwrap_or_else(|problems| panic!("{value}: {problems}"))
}

/// The problems with a text, one a line. Without a problem it is empty.
fn problems(text: &str) -> String {
    match resolve(&read_text(text).unwrap()) {
        Ok(_) => String::new(),
        Err(problems) => problems.to_string(),
    }
}
