//! Reads `[upstream]`: the address of the backend, timeouts, and TLS towards it. Mappings are read in `mapping`.

use rustls::pki_types::ServerName;

use crate::clock::Clock;
use crate::upstream::{BackendClientFiles, BackendTls, BackendTlsSettings, HttpConfig, TlsVersion};

use super::config_reader::ConfigReader;
use super::{ConfigProblem, ConfigProblems, UpstreamConfig};

const URL: &str = "upstream.url";
const CERTIFICATE: &str = "upstream.client_certificate";
const KEY: &str = "upstream.client_key";
const SERVER_NAME: &str = "upstream.server_name";
const MIN_VERSION: &str = "upstream.min_tls_version";
/// Settings that have no effect without TLS.
const TLS: [&str; 5] = ["upstream.ca_file", CERTIFICATE, KEY, SERVER_NAME, MIN_VERSION];

impl ConfigReader<'_> {
    pub(super) fn upstream(&mut self) -> UpstreamConfig {
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
        if self.maybe(URL).is_none() {
            self.problem("upstream", None, "set a backend: write [upstream] with its url, or upstream = \"built-in\" for the built-in backend");
        }
        let http = HttpConfig {
            base: self.value(URL, |value| value.as_str().map(str::to_owned)).unwrap_or_default(),
            credential: self.secret("upstream.credential"),
            connect: self.duration("upstream.connect_timeout"),
            first_byte: self.duration("upstream.first_byte_timeout"),
            total: self.duration("upstream.timeout"),
            max_bytes: usize::try_from(self.size("upstream.max_body")).unwrap_or(usize::MAX),
            idle: self.duration("upstream.idle_timeout"),
            tls: self.backend_tls(),
            mapping,
        };
        if let Some(value) = self.maybe(URL) {
            match http.check() {
                Ok(()) => self.no_tls_settings_without_tls(&http.base),
                Err(error) => self.problem(URL, Some(value), error.to_string()),
            }
        }
        UpstreamConfig::Http(Box::new(http))
    }

    fn backend_tls(&mut self) -> BackendTlsSettings {
        let min_version = if self.word(MIN_VERSION) == "1.3" { TlsVersion::V13 } else { TlsVersion::V12 };
        BackendTlsSettings {
            ca_file: self.optional_path("upstream.ca_file"),
            client_certificate: self.backend_client_certificate(),
            server_name: self.server_name(),
            min_version,
        }
    }

    fn backend_client_certificate(&mut self) -> Option<BackendClientFiles> {
        match (self.optional_path(CERTIFICATE), self.optional_path(KEY)) {
            (None, None) => None,
            (Some(certificate), Some(key)) => Some(BackendClientFiles { certificate, key }),
            (Some(_), None) => {
                self.problem(KEY, None, format!("write the path of the private key of {CERTIFICATE}"));
                None
            }
            (None, Some(_)) => {
                self.problem(CERTIFICATE, None, format!("write the path of the certificate of {KEY}"));
                None
            }
        }
    }

    fn server_name(&mut self) -> Option<ServerName<'static>> {
        let value = self.maybe(SERVER_NAME)?;
        let name = ServerName::try_from(self.text(SERVER_NAME));
        if name.is_err() {
            self.problem(SERVER_NAME, Some(value), "write a host name or an IP address, without a port");
        }
        name.ok()
    }

    fn no_tls_settings_without_tls(&mut self, base: &str) {
        if base.get(..8).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://")) {
            return;
        }
        for path in TLS {
            if self.maybe(path).is_some() {
                self.problem(path, None, "this setting needs TLS: write https:// in upstream.url");
            }
        }
    }
}

impl UpstreamConfig {
    /// TLS towards a backend over the network.
    pub fn tls(&self) -> Option<&BackendTlsSettings> {
        match self {
            Self::Http(http) => Some(&http.tls),
            Self::BuiltIn { .. } | Self::Simulated { .. } => None,
        }
    }
}

/// Reads the TLS files of the backend, or reports the first unusable one.
pub fn read_backend_tls(settings: &BackendTlsSettings, clock: &Clock) -> Result<BackendTls, ConfigProblems> {
    settings.load(clock).map_err(|bad| {
        ConfigProblems(vec![ConfigProblem {
            path: bad.file.setting().into(),
            found: Some(bad.path.display().to_string()),
            remedy: bad.reason,
        }])
    })
}

#[cfg(test)]
mod tests {
    use super::super::{read_text, resolve};
    use super::*;

    fn read(text: &str) -> Result<HttpConfig, Vec<String>> {
        match resolve(&read_text(&format!("[upstream]\n{text}")).unwrap()) {
            Ok(config) => match config.upstream {
                UpstreamConfig::Http(http) => Ok(*http),
                UpstreamConfig::BuiltIn { .. } | UpstreamConfig::Simulated { .. } => panic!("{text}"),
            },
            Err(problems) => Err(problems.0.iter().map(ToString::to_string).collect()),
        }
    }

    #[test]
    fn tls_to_the_backend_has_public_authorities_and_version_1_2_by_default() {
        let tls = read("url = \"https://scores.example/api\"").unwrap().tls;
        assert_eq!(tls, BackendTlsSettings::default());
        assert_eq!((tls.min_version, tls.has_files()), (TlsVersion::V12, false));
        let text = "url = \"HTTPS://scores.example\"\nca_file = \"ca.pem\"\nclient_certificate = \"c.pem\"\n\
                    client_key = \"c.key\"\nserver_name = \"scores.internal\"\nmin_tls_version = \"1.3\"";
        let tls = read(text).unwrap().tls;
        assert_eq!(tls.server_name.unwrap().to_str(), "scores.internal");
        assert_eq!((tls.min_version, tls.ca_file), (TlsVersion::V13, Some("ca.pem".into())));
        assert_eq!(tls.client_certificate.unwrap().key.to_str(), Some("c.key"));
    }

    #[test]
    fn every_problem_of_tls_to_the_backend_is_reported_with_its_setting() {
        let https = "url = \"https://scores.example\"\n";
        for (text, path, remedy) in [
            (format!("{https}ca_file = 3"), "upstream.ca_file", "path"),
            (format!("{https}client_key = \"b\""), "upstream.client_certificate", "upstream.client_key"),
            (format!("{https}client_certificate = \"b\""), "upstream.client_key", "private key"),
            (format!("{https}server_name = \"a:443\""), "upstream.server_name", "without a port"),
            (format!("{https}min_tls_version = \"1.1\""), "upstream.min_tls_version", "1.2"),
            ("url = \"http://localhost\"\nca_file = \"ca.pem\"".into(), "upstream.ca_file", "https://"),
        ] {
            let found = read(&text).unwrap_err();
            assert_eq!(found.len(), 1, "{text}: {found:?}");
            assert!(found[0].starts_with(path) && found[0].contains(remedy), "{found:?}");
        }
    }
}
