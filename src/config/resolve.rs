//! Settings as used: from what was written to a complete [`Config`], or every problem at once.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use toml::Value;

use crate::gateway::Sampling;
use crate::keys::{Rights, Tier, TierLimits, standard_tiers};
use crate::secret::Secret;
use crate::telemetry::log::{LEVELS, LogConfig, is_level};
use crate::upstream::{HttpConfig, Protection};

use super::file::Written;
use super::freshness::is_life_path;
use super::mapping::is_mapping_path;
use super::settings::{Setting, ValueKind, setting_of};
use super::shown::showable;
use super::tls::is_certificate_path;
use super::words::{duration, nearest, size};
use super::{Config, Problem, Problems, UpstreamConfig};

/// The archive's name in the data directory.
const ARCHIVE: &str = "runs.db";

/// The most tiers: each is a label in the metrics.
const MOST_TIERS: usize = 8;

/// Makes the settings that the program uses.
pub fn resolve(written: &Written) -> Result<Config, Problems> {
    let mut reading = Reading::of(written);
    reading.unknown_paths();
    let tiers = reading.tiers();
    let upstream = reading.upstream();
    let proxies = reading.proxies();
    let config = Config {
        listen: reading.address("listen"),
        admin_listen: reading.address("admin.listen"),
        admin_hosts: reading.admin_hosts(),
        admin_token: reading.token(),
        data_dir: PathBuf::from(reading.text("data_dir")),
        service: reading.text("service.name"),
        license: reading.text("service.license"),
        base_url: reading.base_url(),
        cors: reading.cors(),
        retirement: reading.retirement(),
        key_prefix: reading.key_prefix(),
        accept_imported: reading.flag("keys.accept_imported"),
        tiers,
        guard_per_minute: u32::try_from(reading.number("guard.per_minute")).unwrap_or(u32::MAX),
        upstream,
        archive: reading.archive(),
        protection: reading.protection(),
        retention: reading.retention(),
        cache_bytes: reading.size("cache.max_bytes"),
        shelf_bytes: reading.size("cache.disk_max_bytes"),
        server: reading.server(&proxies.trusted),
        proxies,
        certificates: reading.certificates(),
        workers: reading
            .maybe("server.workers")
            .and_then(|_| usize::try_from(reading.number("server.workers")).ok()),
        capacity: reading.capacity(),
        log: reading.log(),
        tells_requests: reading.flag("log.requests"),
        sampling: Sampling { slow: reading.duration("log.slow"), one_in: reading.number("log.one_in") },
        written: written.clone(),
    };
    reading.no_plain_http_by_accident(config.listen, !config.certificates.is_empty());
    reading.done(config)
}

/// Reads one value after the other and collects what is wrong. A value that is wrong reads as something harmless: it
/// is never used, since any problem refuses the whole.
pub(super) struct Reading<'w> {
    pub(super) written: &'w Written,
    problems: Vec<Problem>,
}

impl<'w> Reading<'w> {
    pub(super) fn of(written: &'w Written) -> Self {
        Self { written, problems: Vec::new() }
    }

    /// What was read, unless something is wrong with it.
    pub(super) fn done<T>(self, read: T) -> Result<T, Problems> {
        if self.problems.is_empty() { Ok(read) } else { Err(Problems(self.problems)) }
    }

    pub(super) fn problem(&mut self, path: &str, found: Option<&Value>, remedy: impl Into<String>) {
        let found = found.map(|value| showable(path, value).to_string());
        let path = match self.written.variable(path) {
            Some(variable) => format!("{path} (from {variable})"),
            None => path.to_owned(),
        };
        self.problems.push(Problem { path, found, remedy: remedy.into() });
    }

    fn unknown_paths(&mut self) {
        for path in self.written.values.keys() {
            let is_in_a_table = is_tier_path(path)
                || is_life_path(path)
                || is_mapping_path(path)
                || is_certificate_path(path);
            if setting_of(path).is_some() || is_in_a_table {
                continue;
            }
            let remedy = match nearest(path) {
                Some(known) => format!("there is no such setting; did you mean `{known}`?"),
                None => "there is no such setting; `scoregate check --sample` prints all there are".into(),
            };
            // Not what stands there: it may be a secret whose path is misspelled.
            self.problem(path, None, remedy);
        }
    }

    pub(super) fn maybe(&self, path: &str) -> Option<&'w Value> {
        self.written.values.get(path)
    }

    /// What was written, else the default; understood by `read`.
    pub(super) fn value<T>(&mut self, path: &str, read: impl Fn(&Value) -> Option<T>) -> Option<T> {
        let setting: &Setting = setting_of(path)?;
        if let Some(value) = self.maybe(path) {
            let understood = read(value);
            if understood.is_none() {
                self.problem(path, Some(value), setting.kind.remedy());
            }
            return understood;
        }
        read(&setting.default_value()?)
    }

    pub(super) fn text(&mut self, path: &str) -> String {
        let text = self.value(path, |value| value.as_str().map(str::to_owned)).unwrap_or_default();
        let is_odd = text.trim().is_empty() || text.chars().any(char::is_control);
        if let Some(value) = self.maybe(path).filter(|value| is_odd && value.is_str()) {
            self.problem(path, Some(value), "write a text that is not empty, in one line");
        }
        text
    }

    pub(super) fn address(&mut self, path: &str) -> SocketAddr {
        let fallback = SocketAddr::from(([127, 0, 0, 1], 0));
        self.value(path, |value| value.as_str()?.parse().ok()).unwrap_or(fallback)
    }

    pub(super) fn flag(&mut self, path: &str) -> bool {
        self.value(path, Value::as_bool).unwrap_or_default()
    }

    pub(super) fn number(&mut self, path: &str) -> u64 {
        let bounds = setting_of(path).map(|setting| setting.kind);
        let within = |number: u64| !matches!(bounds, Some(ValueKind::Number(least, most)) if number < least || number > most);
        self.value(path, |value| u64::try_from(value.as_integer()?).ok().filter(|number| within(*number)))
            .unwrap_or(1)
    }

    pub(super) fn duration(&mut self, path: &str) -> Duration {
        self.value(path, |value| duration(value.as_str()?)).unwrap_or(Duration::from_secs(1))
    }

    fn size(&mut self, path: &str) -> u64 {
        self.value(path, |value| size(value.as_str()?)).unwrap_or(1)
    }

    pub(super) fn word(&mut self, path: &str) -> String {
        let words = setting_of(path).map(|setting| setting.kind);
        let known = |text: &str| matches!(words, Some(ValueKind::Words(words)) if words.contains(&text));
        self.value(path, |value| value.as_str().filter(|text| known(text)).map(str::to_owned))
            .unwrap_or_default()
    }

    pub(super) fn secret(&mut self, path: &str) -> Option<Secret> {
        self.maybe(path)?;
        self.value(path, |value| value.as_str().map(str::to_owned)).map(Secret::new)
    }

    fn base_url(&mut self) -> Option<String> {
        let value = self.maybe("service.base_url")?;
        let text = self.text("service.base_url");
        if !(text.starts_with("https://") || text.starts_with("http://")) {
            self.problem(
                "service.base_url",
                Some(value),
                "write an address that begins with https:// or http://",
            );
        }
        Some(text.trim_end_matches('/').to_owned())
    }

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

    fn protection(&mut self) -> Protection {
        let at_once = usize::try_from(self.number("upstream.at_once")).unwrap_or(usize::MAX);
        Protection { at_once, patience: self.duration("freshness.patience") }
    }

    fn log(&mut self) -> LogConfig {
        let level = self.text("log.level");
        if !is_level(&level) {
            let value = self.maybe("log.level");
            self.problem("log.level", value, LEVELS);
        }
        LogConfig { json: self.word("log.format") == "json", level }
    }

    fn upstream(&mut self) -> UpstreamConfig {
        let mapping = self.mapping();
        if let Some(value) = self.maybe("upstream") {
            if self.written.values.keys().any(|path| path.starts_with("upstream.")) {
                self.problem(
                    "upstream",
                    Some(value),
                    "write either upstream = \"built-in\" or the table [upstream], not both",
                );
            }
            self.word("upstream");
            return UpstreamConfig::BuiltIn { archive: self.archive() };
        }
        if self.maybe("upstream.url").is_none() {
            self.problem("upstream", None, "name a backend: write [upstream] with its url, or upstream = \"built-in\" for the one inside");
        }
        let http = HttpConfig {
            base: self.value("upstream.url", |value| value.as_str().map(str::to_owned)).unwrap_or_default(),
            credential: self.secret("upstream.credential"),
            connect: self.duration("upstream.connect_timeout"),
            first_byte: self.duration("upstream.first_byte_timeout"),
            total: self.duration("upstream.timeout"),
            most_bytes: usize::try_from(self.size("upstream.max_body")).unwrap_or(usize::MAX),
            idle: self.duration("upstream.idle"),
            mapping,
        };
        if let (Some(value), Err(error)) = (self.maybe("upstream.url"), http.check()) {
            self.problem("upstream.url", Some(value), error.to_string());
        }
        UpstreamConfig::Http(http)
    }

    /// Where the runs are kept: beside the rest of the state, unless it is said.
    fn archive(&mut self) -> PathBuf {
        if self.maybe("built_in.archive").is_some() {
            return PathBuf::from(self.text("built_in.archive"));
        }
        PathBuf::from(self.text("data_dir")).join(ARCHIVE)
    }

    fn tiers(&mut self) -> Vec<Tier> {
        let mut names: Vec<&str> = self.written.values.keys().filter_map(|path| tier_of(path)).collect();
        names.dedup();
        if names.is_empty() {
            return standard_tiers();
        }
        if names.len() > MOST_TIERS {
            self.problem(
                "tiers",
                None,
                format!("there are {} tiers; {MOST_TIERS} are the most", names.len()),
            );
        }
        names.into_iter().map(|name| self.tier(name)).collect()
    }

    fn tier(&mut self, name: &str) -> Tier {
        let well_formed = (1..=24).contains(&name.len())
            && name != "none"
            && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if !well_formed {
            self.problem(
                &format!("tiers.{name}"),
                None,
                "a tier's name is 1 to 24 lower-case letters, digits or underscores, and not `none`",
            );
        }
        let limits =
            TierLimits { minute: self.tier_limit(name, "minute"), day: self.tier_limit(name, "day") };
        let path = format!("tiers.{name}.paid");
        let paid = self.maybe(&path).and_then(Value::as_bool);
        if paid.is_none() {
            let value = self.maybe(&path);
            self.problem(&path, value, "write true or false: whether it sees `latest` and `latestScore`");
        }
        let rights = if paid == Some(true) { Rights::paid() } else { Rights::Free };
        Tier { name: name.to_owned(), rights, limits }
    }

    fn tier_limit(&mut self, tier: &str, which: &str) -> u32 {
        let path = format!("tiers.{tier}.{which}");
        let value = self.maybe(&path);
        let number = value.and_then(Value::as_integer).and_then(|number| u32::try_from(number).ok());
        let Some(number) = number.filter(|number| (1..=1_000_000_000).contains(number)) else {
            self.problem(&path, value, "write a whole number from 1 to 1000000000");
            return 1;
        };
        number
    }
}

fn tier_of(path: &str) -> Option<&str> {
    path.strip_prefix("tiers.")?.split('.').next()
}

fn is_tier_path(path: &str) -> bool {
    let parts: Vec<&str> = path.split('.').collect();
    matches!(parts.as_slice(), ["tiers", _, "minute" | "day" | "paid"])
}

#[cfg(test)]
mod tests {
    use super::super::{read_environment, read_text};
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        match resolve(&read_text(text).unwrap()) {
            Ok(_) => Vec::new(),
            Err(problems) => problems.0.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn every_default_is_understood() {
        let config = resolve(&read_text("upstream = \"built-in\"").unwrap()).unwrap();
        assert_eq!(config.listen.port(), 8080);
        assert_eq!(config.tiers.len(), 5);
        assert_eq!(config.retention.cadence, Duration::from_hours(1));
    }

    #[test]
    fn every_problem_is_reported_at_once_with_path_value_and_remedy() {
        let found = problems(
            "listen = 8080\nadmin.tokn = \"short of a letter\"\nlog.format = \"xml\"\nupstrem = \"built-in\"\nfreshness.refresh = \"soon\"\n\
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
        expect("freshness.refresh", "soon", "10s");
        expect("admin.token", "", "at least 16");
        expect("admin.tokn", "", "did you mean `admin.token`");
        expect("guard.per_minute", "0", "from 1");
        expect("tiers.gold.minute", "-1", "whole number");
        expect("tiers.gold.day", "", "whole number");
        expect("upstream:", "", "built-in");
        assert!(!found.iter().any(|line| line.contains("short")), "a secret was printed");
        assert_eq!(found.len(), 10, "{found:#?}");
    }

    #[test]
    fn without_an_upstream_there_is_no_configuration() {
        assert!(problems("").iter().any(|line| line.starts_with("upstream: ")));
        assert_eq!(problems("[upstream]\nurl = \"ftp://x\"").len(), 1);
        assert_eq!(problems("[upstream]\nurl = \"http://127.0.0.1:4000/api/v1\""), Vec::<String>::new());
        assert_eq!(problems("upstream = \"elsewhere\"").len(), 1);
    }

    #[test]
    fn the_environment_wins_over_the_file_and_unknown_variables_are_refused() {
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
