//! The configuration: each field with the setting or section from which it is read.

use std::{net::SocketAddr, num::NonZeroU32, path::PathBuf, time::Duration};

use crate::{
    documents::Retention,
    gateway::{ConcurrencyConfig, CorsPolicy, Deprecation, LogSampling},
    leaks::LeakConfig,
    mail::{MailConfig, OperatorWebhook},
    pages::SiteLinks,
    server::{CertificateFiles, ServerConfig},
    site::SiteConfig,
    upstream::ProtectionConfig,
};
use scoregate_base::{
    address::Proxies, evidence::judgement::SuspectRules, plans::Tier, routes::EndpointTable,
    secret::SecretSetting,
};
use scoregate_observe::{
    telemetry::log::{LEVELS, LogConfig, is_level},
    traces::TraceConfig,
};
use scoregate_store::DatabaseSettings;

use super::{
    config_reader::ConfigReader,
    file::ConfigValues,
    sections::{
        admin, cors, deprecation, endpoints, freshness, leaks, mail, operator, overload, proxies,
        server, site, store, suspects, tiers, tls, traces,
        upstream::{self, UpstreamConfig},
    },
};

/// Declares the configuration. Fields are read in this order, so a field's expression can use the fields before it.
macro_rules! config {
    (|$reading:ident| { $($first:tt)* } $($(#[$about:meta])* $field:ident: $type:ty = $read:expr,)+) => {
        /// The complete, validated configuration.
        #[derive(Clone, Debug)]
        pub struct Config {
            $($(#[$about])* pub $field: $type,)+
            /// The settings of the account pages, which depend on other settings. `None` if people cannot sign up.
            pub site: Option<SiteConfig>,
            /// The values as given.
            pub written: ConfigValues,
        }

        impl Config {
            /// Reads all settings except the settings of the account pages.
            pub(super) fn read($reading: &mut ConfigReader<'_>) -> Self {
                $($first)*
                $(let $field: $type = $read;)+
                Self {
                    $($field,)+
                    site: None,
                    written: $reading.written().clone(),
                }
            }
        }
    };
}

config! {
    |reading|
    {
        let endpoints = endpoints::read(reading);
        reading.unknown_paths(&endpoints);
        let (tiers, field_sets) = tiers::read(reading, &endpoints);
    }
    /// The endpoints of the API.
    endpoints: EndpointTable = endpoints,
    /// The tiers.
    tiers: Vec<Tier> = tiers,
    /// The backend.
    upstream: UpstreamConfig = upstream::read(reading, &endpoints),
    /// Trusted proxies.
    proxies: Proxies = proxies::read(reading),
    /// Address of the public port.
    listen: SocketAddr = server::address(reading, "listen"),
    /// Address of the side port.
    admin_listen: SocketAddr = server::address(reading, "admin.listen"),
    /// Accepted host names of the side port.
    admin_hosts: Vec<String> = admin::hosts(reading),
    /// Bearer token of the side port.
    admin_token: Option<SecretSetting> = admin::token(reading),
    /// The data directory.
    data_dir: PathBuf = reading.get("data_dir"),
    /// The database of the store. `None` for the file in the data directory.
    database: Option<DatabaseSettings> = store::database(reading),
    /// Number of gateways on the database.
    gateways: NonZeroU32 = store::gateways(reading),
    /// Name of this gateway. `None` for the host name.
    node_name: Option<String> = store::node_name(reading),
    /// The name of the service.
    service: String = reading.get("service.name"),
    /// The attribution notice.
    license: String = site::license(reading),
    /// Public base URL of the service.
    base_url: Option<String> = site::base_url(reading),
    /// Whether the status page is served.
    status_page: bool = reading.get("site.status_page"),
    /// Contacts and links on the public pages.
    links: SiteLinks = site::read(reading, &tiers),
    /// The terms of use, one sentence each.
    terms: Vec<String> = site::terms(reading, &service),
    /// CORS policy. `None` if no origin is allowed.
    cors: Option<CorsPolicy> = cors::read(reading),
    /// Deprecation and sunset of the API.
    deprecation: Deprecation = deprecation::read(reading),
    /// Prefix of API keys.
    key_prefix: String = key_prefix(reading),
    /// Whether imported keys of other formats are accepted.
    accept_imported: bool = reading.get("keys.accept_imported"),
    /// Maximum time since key changes made elsewhere were last read. After that, requests are refused.
    keys_max_age: Option<Duration> = store::keys_max_age(reading),
    /// Refused requests allowed per minute.
    guard_per_minute: u32 = reading.get("guard.per_minute"),
    /// Archive of benchmark runs. It is set even if the built-in backend is not used.
    archive: PathBuf = upstream::archive(reading),
    /// Limits on requests to the backend.
    protection: ProtectionConfig = protection(reading),
    /// Retention of documents.
    retention: Retention = Retention { field_sets, ..freshness::retention(reading, &endpoints) },
    /// Maximum size of stored documents in memory.
    cache_bytes: u64 = reading.get("cache.max_bytes"),
    /// Maximum size of the disk mirror.
    cache_disk_bytes: u64 = reading.get("cache.disk_max_bytes"),
    /// Limits and timeouts of the public port.
    server: ServerConfig = server::read(reading, &proxies.trusted),
    /// Certificates of the public port. If empty, the port uses plain HTTP.
    certificates: Vec<CertificateFiles> = tls::certificates(reading),
    /// Number of worker threads. `None` for one per core.
    workers: Option<usize> = reading.optional("server.workers"),
    /// Concurrency limits.
    concurrency: ConcurrencyConfig = overload::capacity(reading),
    /// Log format and level.
    log: LogConfig = log(reading),
    /// Whether the access log is written.
    access_log: bool = reading.get("log.access"),
    /// Sampling of the access log.
    sampling: LogSampling = sampling(reading),
    /// Span export. `None` if it is disabled.
    traces: Option<TraceConfig> = traces::read(reading),
    /// Mail settings. `None` if mail is disabled.
    mail: Option<MailConfig> = mail::read(reading),
    /// The receiver of leak reports. `None` if it is disabled.
    leaks: Option<LeakConfig> = leaks::read(reading),
    /// The webhook of the operator.
    operator: Option<OperatorWebhook> = operator::read(reading),
    /// Whether language models may call the endpoints as tools.
    mcp: bool = reading.get("mcp.enabled"),
    /// Content of the page that the MCP registry reads to verify the domain.
    registry_auth: Option<String> = reading.optional("mcp.registry_auth"),
    /// The rules for suspects.
    suspects: SuspectRules = suspects::read(reading),
}

impl Config {
    /// Identifies the backend and the forms of its documents. Documents stored under another identity are not used.
    pub fn backend_identity(&self) -> String {
        self.upstream.identity() + &self.retention.field_sets.fingerprint()
    }

    /// The address of the public port, if clients are on this machine. If proxies are trusted, clients are elsewhere.
    pub fn local_url(&self) -> Option<String> {
        let is_local = self.listen.ip().is_loopback() && self.proxies.trusted.is_empty();
        let scheme = if self.certificates.is_empty() {
            "http"
        } else {
            "https"
        };
        is_local.then(|| format!("{scheme}://{}", self.listen))
    }
}

fn key_prefix(reading: &mut ConfigReader<'_>) -> String {
    let prefix: String = reading.get("keys.prefix");
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
        max_concurrent: reading.get("upstream.max_concurrent_requests"),
        queue_timeout: reading.get("freshness.max_wait"),
    }
}

fn sampling(reading: &mut ConfigReader<'_>) -> LogSampling {
    LogSampling {
        slow: reading.get("log.slow_threshold"),
        one_in: reading.get("log.sample_one_in"),
    }
}

fn log(reading: &mut ConfigReader<'_>) -> LogConfig {
    let level: String = reading.get("log.level");
    if !is_level(&level) {
        reading.reject("log.level", LEVELS);
    }
    LogConfig {
        json: reading.get::<String>("log.format") == "json",
        level,
    }
}
