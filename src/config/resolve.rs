//! Converts the given values to a complete [`Config`], or reports all problems.

use std::path::PathBuf;

use crate::documents::Retention;
use crate::gateway::LogSampling;
use crate::upstream::ProtectionConfig;
use scoregate_observe::telemetry::log::{LEVELS, LogConfig, is_level};

use super::config_reader::ConfigReader;
use super::file::ConfigValues;
use super::sections::{
    admin, cors, deprecation, endpoints, freshness, leaks, mail, operator, overload, proxies,
    server, sign_up, site, store, suspects, tiers, tls, traces, upstream,
};
use super::{Config, ConfigProblems};

/// Validates the given values and converts them to a configuration.
pub fn resolve(written: &ConfigValues) -> Result<Config, ConfigProblems> {
    if written.is_incomplete {
        return Err(ConfigProblems(written.problems.clone()));
    }
    let mut reading = ConfigReader::of(written);
    let endpoints = endpoints::read(&mut reading);
    reading.unknown_paths(&endpoints);
    let (tiers, field_sets) = tiers::read(&mut reading, &endpoints);
    let upstream = upstream::read(&mut reading, &endpoints);
    let proxies = proxies::read(&mut reading);
    let mut config = Config {
        listen: reading.address("listen"),
        admin_listen: reading.address("admin.listen"),
        admin_hosts: admin::hosts(&mut reading),
        admin_token: admin::token(&mut reading),
        data_dir: PathBuf::from(reading.text("data_dir")),
        database: store::database(&mut reading),
        gateways: store::gateways(&mut reading),
        node_name: store::node_name(&mut reading),
        service: reading.text("service.name"),
        license: reading.text("service.license"),
        base_url: site::base_url(&mut reading),
        status_page: reading.flag("site.status_page"),
        site: None,
        links: site::read(&mut reading),
        terms: Vec::new(),
        cors: cors::read(&mut reading),
        deprecation: deprecation::read(&mut reading),
        key_prefix: key_prefix(&mut reading),
        accept_imported: reading.flag("keys.accept_imported"),
        keys_max_age: store::keys_max_age(&mut reading),
        tiers,
        guard_per_minute: reading.number("guard.per_minute"),
        upstream,
        archive: upstream::archive(&mut reading),
        protection: protection(&mut reading),
        retention: Retention {
            field_sets,
            ..freshness::retention(&mut reading, &endpoints)
        },
        endpoints,
        cache_bytes: reading.size("cache.max_bytes"),
        cache_disk_bytes: reading.size("cache.disk_max_bytes"),
        server: server::read(&mut reading, &proxies.trusted),
        proxies,
        certificates: tls::certificates(&mut reading),
        workers: workers(&mut reading),
        concurrency: overload::capacity(&mut reading),
        log: log(&mut reading),
        access_log: reading.flag("log.access"),
        sampling: sampling(&mut reading),
        traces: traces::read(&mut reading),
        mail: mail::read(&mut reading),
        leaks: leaks::read(&mut reading),
        operator: operator::read(&mut reading),
        mcp: reading.flag("mcp.enabled"),
        suspects: suspects::read(&mut reading),
        written: written.clone(),
    };
    config.terms = sign_up::terms(&mut reading, &config.service);
    config.site = sign_up::read(&mut reading, &config);
    tls::no_plain_http_by_accident(&mut reading, config.listen, !config.certificates.is_empty());
    reading.done(config)
}

fn key_prefix(reading: &mut ConfigReader<'_>) -> String {
    let prefix = reading.text("keys.prefix");
    let fits = (1..=20).contains(&prefix.len())
        && prefix
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !fits {
        reading.reject(
            "keys.prefix",
            "write 1 to 20 letters, digits or underscores",
        );
    }
    prefix
}

fn protection(reading: &mut ConfigReader<'_>) -> ProtectionConfig {
    ProtectionConfig {
        max_concurrent: reading.number("upstream.max_concurrent_requests"),
        queue_timeout: reading.duration("freshness.max_wait"),
    }
}

fn workers(reading: &mut ConfigReader<'_>) -> Option<usize> {
    reading.maybe("server.workers")?;
    Some(reading.number("server.workers"))
}

fn sampling(reading: &mut ConfigReader<'_>) -> LogSampling {
    LogSampling {
        slow: reading.duration("log.slow_threshold"),
        one_in: reading.number("log.sample_one_in"),
    }
}

fn log(reading: &mut ConfigReader<'_>) -> LogConfig {
    let level = reading.text("log.level");
    if !is_level(&level) {
        reading.reject("log.level", LEVELS);
    }
    LogConfig {
        json: reading.word("log.format") == "json",
        level,
    }
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
