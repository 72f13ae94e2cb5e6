//! Reads `[upstream]`: the address of the backend, timeouts, and the TLS settings. `mapping` reads mappings.

use std::path::PathBuf;

use rustls::pki_types::ServerName;
use sha2::{Digest as _, Sha256};
use toml::Value;

use crate::upstream::{BackendClientFiles, BackendTls, BackendTlsSettings, HttpConfig, TlsVersion};
use scoregate_base::{clock::Clock, routes::EndpointTable};

use super::{mapping, upstream_headers};
use crate::config::{ConfigProblems, config_reader::ConfigReader};

/// File name of the archive in the data directory.
const ARCHIVE: &str = "runs.db";
const URL: &str = "upstream.url";
const URLS: &str = "upstream.urls";
/// Maximum number of addresses. Each has separate metrics.
const MAX_ADDRESSES: usize = 16;
const CERTIFICATE: &str = "upstream.client_certificate";
const KEY: &str = "upstream.client_key";
const SERVER_NAME: &str = "upstream.server_name";
const MIN_VERSION: &str = "upstream.min_tls_version";
/// Settings that have no effect without TLS.
const TLS: [&str; 5] = [
    "upstream.ca_file",
    CERTIFICATE,
    KEY,
    SERVER_NAME,
    MIN_VERSION,
];

/// The backend.
#[derive(Clone, Debug)]
pub enum UpstreamConfig {
    /// The built-in backend, which scores the runs of an archive.
    BuiltIn {
        /// The archive.
        archive: PathBuf,
    },
    /// The built-in backend with simulated runs. Used by the demo only; no setting selects it.
    Simulated {
        /// The seed.
        seed: u64,
    },
    /// A backend over HTTP.
    Http(Box<HttpConfig>),
}

pub(in crate::config) fn read(
    reading: &mut ConfigReader<'_>,
    endpoints: &EndpointTable,
) -> UpstreamConfig {
    let mapping = mapping::read(reading, endpoints);
    if reading.maybe("upstream").is_some() {
        if reading
            .written()
            .values
            .keys()
            .any(|path| path.starts_with("upstream."))
        {
            reading.reject(
                "upstream",
                "write either upstream = \"built-in\" or the table [upstream], not both",
            );
        }
        reading.optional::<String>("upstream");
        return UpstreamConfig::BuiltIn {
            archive: archive(reading),
        };
    }
    let addresses = addresses(reading);
    if addresses.is_empty() && [URL, URLS].iter().all(|path| reading.maybe(path).is_none()) {
        reading.problem("upstream", None, "set a backend: write [upstream] with its url, or upstream = \"built-in\" for the built-in backend");
    }
    let mut bases = addresses.iter().map(|(_, base)| base.clone());
    let credential = reading.secret("upstream.credential", 1);
    let credential_header = upstream_headers::of_credential(reading);
    let http = HttpConfig {
        base: bases.next().unwrap_or_default(),
        headers: upstream_headers::fixed(reading, credential.as_ref().map(|_| &credential_header)),
        credential,
        credential_header,
        connect: reading.get("upstream.connect_timeout"),
        first_byte: reading.get("upstream.first_byte_timeout"),
        total: reading.get("upstream.timeout"),
        max_bytes: usize::try_from(reading.get::<u64>("upstream.max_body")).unwrap_or(usize::MAX),
        idle: reading.get("upstream.idle_timeout"),
        tls: backend_tls(reading),
        mapping,
        more: bases.collect(),
    };
    check_addresses(reading, &http, &addresses);
    UpstreamConfig::Http(Box::new(http))
}

/// The given addresses, each with the setting that contains it.
fn addresses(reading: &mut ConfigReader<'_>) -> Vec<(&'static str, String)> {
    let one: Option<String> = reading.optional(URL);
    let several: Vec<String> = reading.get(URLS);
    if reading.maybe(URLS).is_some() {
        if reading.maybe(URL).is_some() {
            reading.reject(URLS, format!("write either {URL} or {URLS}, not both"));
        } else if several.is_empty() {
            reading.reject(URLS, "write at least one address");
        }
    }
    let one = one.into_iter().map(|base| (URL, base));
    one.chain(several.into_iter().map(|base| (URLS, base)))
        .collect()
}

fn check_addresses(reading: &mut ConfigReader<'_>, http: &HttpConfig, written: &[(&str, String)]) {
    let mut names = Vec::new();
    reading.at_most(URLS, written.len(), MAX_ADDRESSES, "addresses");
    for ((path, base), one) in written.iter().zip(http.each()) {
        let found = Some(Value::from(base.as_str()));
        if let Err(error) = one.check() {
            reading.problem(path, found.as_ref(), error.to_string());
            continue;
        }
        let name = one.name();
        if names.contains(&name) {
            reading.problem(path, found.as_ref(), "write each host and port once");
        }
        names.push(name);
    }
    let mut schemes = written.iter().filter_map(|(_, base)| base.get(..8));
    if !names.is_empty() && !schemes.any(|scheme| scheme.eq_ignore_ascii_case("https://")) {
        reading.without_effect(
            &TLS,
            "this setting needs TLS: write https:// in upstream.url",
        );
    }
}

fn backend_tls(reading: &mut ConfigReader<'_>) -> BackendTlsSettings {
    let min_version = if reading.get::<String>(MIN_VERSION) == "1.3" {
        TlsVersion::V13
    } else {
        TlsVersion::V12
    };
    let pair = reading.certificate_pair(CERTIFICATE, KEY);
    BackendTlsSettings {
        ca_file: reading.optional("upstream.ca_file"),
        client_certificate: pair.map(|(certificate, key)| BackendClientFiles { certificate, key }),
        server_name: server_name(reading),
        min_version,
    }
}

fn server_name(reading: &mut ConfigReader<'_>) -> Option<ServerName<'static>> {
    let name = ServerName::try_from(reading.optional::<String>(SERVER_NAME)?);
    if name.is_err() {
        reading.reject(
            SERVER_NAME,
            "write a host name or an IP address, without a port",
        );
    }
    name.ok()
}

/// Path of the run archive. Default: a file in the data directory.
pub(in crate::config) fn archive(reading: &mut ConfigReader<'_>) -> PathBuf {
    let own = reading.optional("built_in.archive");
    own.unwrap_or_else(|| reading.get::<PathBuf>("data_dir").join(ARCHIVE))
}

impl UpstreamConfig {
    /// Identifies the backend by its address and mapping. Stored documents of another backend are not used.
    pub fn identity(&self) -> String {
        match self {
            Self::BuiltIn { archive } => format!("built-in {}", archive.display()),
            Self::Simulated { seed } => format!("simulated {seed}"),
            Self::Http(http) => {
                let mapping: [u8; 32] = Sha256::digest(format!("{:?}", http.mapping)).into();
                let [a, b, c, d, ..] = mapping;
                format!("{} {:08x}", http.base, u32::from_be_bytes([a, b, c, d]))
            }
        }
    }

    /// The names of the backend's addresses.
    pub fn addresses(&self) -> Vec<String> {
        match self {
            Self::Http(http) => http.each().map(|one| one.name().to_string()).collect(),
            Self::BuiltIn { .. } | Self::Simulated { .. } => vec!["built-in".into()],
        }
    }

    /// The TLS settings of a backend over the network.
    pub fn tls(&self) -> Option<&BackendTlsSettings> {
        match self {
            Self::Http(http) => Some(&http.tls),
            Self::BuiltIn { .. } | Self::Simulated { .. } => None,
        }
    }
}

/// Reads the TLS files for the backend, or reports the first unusable file.
pub fn read_backend_tls(
    settings: &BackendTlsSettings,
    clock: &Clock,
) -> Result<BackendTls, ConfigProblems> {
    settings.load(clock).map_err(|bad| {
        ConfigProblems::one(
            bad.file.setting(),
            Some(bad.path.display().to_string()),
            bad.reason,
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::tests::backend;

    #[test]
    fn tls_to_the_backend_has_public_authorities_and_version_1_2_by_default() {
        let tls = backend("url = \"https://scores.example/api\"").tls;
        assert_eq!(tls, BackendTlsSettings::default());
        assert_eq!((tls.min_version, tls.has_files()), (TlsVersion::V12, false));
        let text = "url = \"HTTPS://scores.example\"\nca_file = \"ca.pem\"\nclient_certificate = \"c.pem\"\n\
                    client_key = \"c.key\"\nserver_name = \"scores.internal\"\nmin_tls_version = \"1.3\"";
        let tls = backend(text).tls;
        assert_eq!(tls.server_name.unwrap().to_str(), "scores.internal");
        assert_eq!(
            (tls.min_version, tls.ca_file),
            (TlsVersion::V13, Some("ca.pem".into()))
        );
        assert_eq!(tls.client_certificate.unwrap().key.to_str(), Some("c.key"));
    }

    #[test]
    fn several_addresses_are_read_in_order() {
        let http = backend("urls = [\"http://a:1/api\", \"https://b/api\", \"http://[::1]:3\"]");
        let names: Vec<_> = http.each().map(|one| one.name().to_string()).collect();
        assert_eq!(names, ["a:1", "b:443", "[::1]:3"]);
        assert_eq!(http.base, "http://a:1/api");
        assert_eq!(backend("urls = [\"http://a\"]").each().count(), 1);
    }
}
