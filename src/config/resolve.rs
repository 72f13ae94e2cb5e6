//! Converts the given values to a complete [`Config`].

use super::{
    Config, ConfigProblems, config_reader::ConfigReader, file::ConfigValues, sections::tls, sign_up,
};

/// Validates the given values and converts them to a configuration, or reports all problems.
pub fn resolve(written: &ConfigValues) -> Result<Config, ConfigProblems> {
    if written.is_incomplete {
        return Err(ConfigProblems(written.problems.clone()));
    }
    let mut reading = ConfigReader::of(written);
    let mut config = Config::read(&mut reading);
    config.site = sign_up::read(&mut reading, &config);
    tls::no_plain_http_by_accident(&mut reading, config.listen, !config.certificates.is_empty());
    reading.done(config)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::config::tests::accepted;
    use crate::config::{UpstreamConfig, read_environment, read_text};

    #[test]
    fn every_default_is_valid() {
        let config = accepted("");
        assert_eq!(config.listen.port(), 8080);
        assert_eq!(config.tiers.len(), 5);
        assert_eq!(config.retention.cadence, Duration::from_hours(1));
    }

    #[test]
    fn the_environment_overrides_the_file() {
        let mut written = read_text("upstream = \"built-in\"\nlisten = \"127.0.0.1:1\"").unwrap();
        let pairs = [
            ("SCOREGATE_LISTEN", "127.0.0.1:2"),
            ("SCOREGATE_GUARD_PER_MINUTE", "7"),
            ("PATH", "/"),
            ("SCOREGATE_UPSTREAM_URL", "http://localhost:1/"),
        ];
        let pairs = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
        written.overlay(read_environment(pairs.into_iter()));
        let config = resolve(&written).unwrap();
        assert_eq!((config.listen.port(), config.guard_per_minute), (2, 7));
        assert!(matches!(config.upstream, UpstreamConfig::Http(_)));
    }
}
