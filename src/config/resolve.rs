//! Converts the given values to a complete [`Config`], or reports all problems.

use std::path::PathBuf;

use crate::gateway::LogSampling;
use crate::upstream::ProtectionConfig;
use scoregate_observe::telemetry::log::{LEVELS, LogConfig, is_level};

use super::config_reader::ConfigReader;
use super::file::ConfigValues;
use super::{Config, ConfigProblems};

/// File name of the archive in the data directory.
const ARCHIVE: &str = "runs.db";

/// Validates the given values and converts them to a configuration.
pub fn resolve(written: &ConfigValues) -> Result<Config, ConfigProblems> {
    let mut reading = ConfigReader::of(written);
    reading.unknown_paths();
    let tiers = reading.tiers();
    let upstream = reading.upstream();
    let proxies = reading.proxies();
    let mut config = Config {
        listen: reading.address("listen"),
        admin_listen: reading.address("admin.listen"),
        admin_hosts: reading.admin_hosts(),
        admin_token: reading.token(),
        data_dir: PathBuf::from(reading.text("data_dir")),
        database: reading.database(),
        gateways: reading.gateways(),
        node_name: reading.node_name(),
        service: reading.text("service.name"),
        license: reading.text("service.license"),
        base_url: reading.base_url(),
        status_page: reading.flag("site.status_page"),
        site: None,
        links: reading.site(),
        terms: Vec::new(),
        cors: reading.cors(),
        deprecation: reading.deprecation(),
        key_prefix: reading.key_prefix(),
        accept_imported: reading.flag("keys.accept_imported"),
        keys_max_age: reading.keys_max_age(),
        tiers,
        guard_per_minute: u32::try_from(reading.number("guard.per_minute")).unwrap_or(u32::MAX),
        upstream,
        archive: reading.archive(),
        protection: reading.protection(),
        retention: reading.retention(),
        cache_bytes: reading.size("cache.max_bytes"),
        cache_disk_bytes: reading.size("cache.disk_max_bytes"),
        server: reading.server(&proxies.trusted),
        proxies,
        certificates: reading.certificates(),
        workers: reading.workers(),
        concurrency: reading.capacity(),
        log: reading.log(),
        access_log: reading.flag("log.access"),
        sampling: reading.sampling(),
        traces: reading.traces(),
        mail: reading.mail(),
        written: written.clone(),
    };
    config.terms = reading.terms(&config.service);
    config.site = reading.sign_up(&config);
    reading.no_plain_http_by_accident(config.listen, !config.certificates.is_empty());
    reading.done(config)
}

impl ConfigReader<'_> {
    fn key_prefix(&mut self) -> String {
        let prefix = self.text("keys.prefix");
        let fits = (1..=20).contains(&prefix.len())
            && prefix.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !fits {
            let value = self.maybe("keys.prefix");
            self.problem("keys.prefix", value, "write 1 to 20 letters, digits or underscores");
        }
        prefix
    }

    fn protection(&mut self) -> ProtectionConfig {
        let at_once = usize::try_from(self.number("upstream.max_concurrent_requests")).unwrap_or(usize::MAX);
        ProtectionConfig { max_concurrent: at_once, queue_timeout: self.duration("freshness.max_wait") }
    }

    fn workers(&mut self) -> Option<usize> {
        self.maybe("server.workers")?;
        usize::try_from(self.number("server.workers")).ok()
    }

    fn sampling(&mut self) -> LogSampling {
        LogSampling { slow: self.duration("log.slow_threshold"), one_in: self.number("log.sample_one_in") }
    }

    fn log(&mut self) -> LogConfig {
        let level = self.text("log.level");
        if !is_level(&level) {
            let value = self.maybe("log.level");
            self.problem("log.level", value, LEVELS);
        }
        LogConfig { json: self.word("log.format") == "json", level }
    }

    /// Path of the run archive; default: in the data directory.
    pub(super) fn archive(&mut self) -> PathBuf {
        if self.maybe("built_in.archive").is_some() {
            return PathBuf::from(self.text("built_in.archive"));
        }
        PathBuf::from(self.text("data_dir")).join(ARCHIVE)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::{UpstreamConfig, read_environment, read_text};
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
            let hit =
                |line: &&String| line.starts_with(path) && line.contains(value) && line.contains(remedy);
            assert!(found.iter().any(|line| hit(&line)), "{path} {value} {remedy} in {found:#?}");
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
        assert!(!found.iter().any(|line| line.contains("short")), "a secret was printed");
        assert_eq!(found.len(), 10, "{found:#?}");
    }

    #[test]
    fn a_configuration_without_an_upstream_is_rejected() {
        assert!(problems("").iter().any(|line| line.starts_with("upstream: ")));
        assert_eq!(problems("[upstream]\nurl = \"ftp://x\"").len(), 1);
        assert_eq!(problems("[upstream]\nurl = \"http://127.0.0.1:4000/api/v1\""), Vec::<String>::new());
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
        let pairs = pairs.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        written.overlay(read_environment(pairs).unwrap());
        let config = resolve(&written).unwrap();
        assert_eq!((config.listen.port(), config.guard_per_minute), (2, 7));
        assert!(matches!(config.upstream, UpstreamConfig::Http(_)));
        assert!(read_environment([("SCOREGATE_LISTN".to_owned(), String::new())].into_iter()).is_err());
    }
}
