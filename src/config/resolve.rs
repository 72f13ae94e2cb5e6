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

    use crate::config::{UpstreamConfig, read_environment, read_text};

    use super::*;

    fn problems(text: &str) -> Vec<String> {
        match resolve(&read_text(text).unwrap()) {
            Ok(_) => Vec::new(),
            Err(problems) => problems.0.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn every_default_is_valid() {
        let config = resolve(&read_text("upstream = \"built-in\"").unwrap()).unwrap();
        assert_eq!(config.listen.port(), 8080);
        assert_eq!(config.tiers.len(), 5);
        assert_eq!(config.retention.cadence, Duration::from_hours(1));
    }

    #[test]
    fn every_problem_is_reported_at_once_with_path_value_and_remedy() {
        let found = problems(
            "listen = 8080\nadmin.tokn = \"short of a letter\"\nlog.format = \"xml\"\nupstrem = \"built-in\"\nfreshness.refresh_interval = \"soon\"\n\
             admin.token = \"short\"\nguard.per_minute = 0\n[tiers.gold]\nminute = -1\npaid = true\n",
        );
        let expect = |path: &str, value: &str, remedy: &str| {
            let hit = |line: &&String| {
                line.starts_with(path) && line.contains(value) && line.contains(remedy)
            };
            assert!(
                found.iter().any(|line| hit(&line)),
                "{path} {value} {remedy} in {found:#?}"
            );
        };
        expect("listen", "8080", "127.0.0.1:8080");
        expect("log.format", "xml", "json");
        expect("upstrem", "", "did you mean `upstream`");
        expect("freshness.refresh_interval", "soon", "10s");
        expect("admin.token", "", "at least 16");
        expect("admin.tokn", "", "did you mean `admin.token`");
        expect("guard.per_minute", "0", "from 1");
        expect("tiers.gold.minute", "-1", "an integer from");
        expect("tiers.gold.day", "", "an integer from");
        expect("upstream:", "", "built-in");
        assert!(
            !found.iter().any(|line| line.contains("short")),
            "a secret was printed"
        );
        assert_eq!(found.len(), 10, "{found:#?}");
    }

    #[test]
    fn a_month_is_a_number_of_requests_with_a_day_on_which_it_begins() {
        let found = |setting: &str| {
            problems(&format!(
                "upstream = \"built-in\"\n[tiers.gold]\nminute = 1\nday = 2\npaid = true\n{setting}"
            ))
        };
        assert_eq!(found("month = 3\nmonth_anchor = 31"), Vec::<String>::new());
        for (setting, path, remedy) in [
            ("month = 0", "tiers.gold.month:", "an integer from 1"),
            (
                "month = 3\nmonth_anchor = 32",
                "tiers.gold.month_anchor:",
                "1 to 31",
            ),
            (
                "month_anchor = 15",
                "tiers.gold.month_anchor:",
                "set month or owner_month too",
            ),
        ] {
            let lines = found(setting);
            let is_named = lines
                .iter()
                .any(|line| line.starts_with(path) && line.contains(remedy));
            assert!(is_named && lines.len() == 1, "{setting}: {lines:#?}");
        }
    }

    #[test]
    fn a_configuration_without_an_upstream_is_rejected() {
        assert!(
            problems("")
                .iter()
                .any(|line| line.starts_with("upstream: "))
        );
        assert_eq!(problems("[upstream]\nurl = \"ftp://x\"").len(), 1);
        assert_eq!(
            problems("[upstream]\nurl = \"http://127.0.0.1:4000/api/v1\""),
            Vec::<String>::new()
        );
        assert_eq!(problems("upstream = \"elsewhere\"").len(), 1);
    }

    #[test]
    fn the_environment_overrides_the_file_and_unknown_variables_are_rejected() {
        let mut written = read_text("upstream = \"built-in\"\nlisten = \"127.0.0.1:1\"").unwrap();
        let pairs = [
            ("SCOREGATE_LISTEN", "127.0.0.1:2"),
            ("SCOREGATE_GUARD_PER_MINUTE", "7"),
            ("PATH", "/"),
            ("SCOREGATE_UPSTREAM_URL", "http://localhost:1/"),
        ];
        let pairs = pairs
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        written.overlay(read_environment(pairs));
        let config = resolve(&written).unwrap();
        assert_eq!((config.listen.port(), config.guard_per_minute), (2, 7));
        assert!(matches!(config.upstream, UpstreamConfig::Http(_)));
        let unknown = read_environment([("SCOREGATE_LISTN".to_owned(), String::new())].into_iter());
        written.overlay(unknown);
        assert!(
            resolve(&written)
                .unwrap_err()
                .to_string()
                .contains("SCOREGATE_LISTN")
        );
    }
}
