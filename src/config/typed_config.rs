//! Settings as typed values.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::documents::Retention;
use crate::gateway::{ConcurrencyConfig, CorsPolicy, Deprecation, LogSampling};
use crate::leaks::LeakConfig;
use crate::mail::{MailConfig, OperatorWebhook};
use crate::pages::SiteLinks;
use crate::server::{CertificateFiles, ServerConfig};
use crate::site::SiteConfig;
use crate::upstream::{HttpConfig, ProtectionConfig};
use scoregate_base::address::Proxies;
use scoregate_base::evidence::judgement::SuspectRules;
use scoregate_base::plans::Tier;
use scoregate_base::routes::EndpointTable;
use scoregate_base::secret::SecretSetting;
use scoregate_observe::telemetry::log::LogConfig;
use scoregate_observe::traces::TraceConfig;
use scoregate_store::DatabaseSettings;

use super::file::ConfigValues;

/// The complete, validated configuration.
#[derive(Clone, Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a setting of its own"
)]
pub struct Config {
    /// Address of the public port.
    pub listen: SocketAddr,
    /// Address of the side port.
    pub admin_listen: SocketAddr,
    /// Accepted host names of the side port.
    pub admin_hosts: Vec<String>,
    /// Bearer token of the side port.
    pub admin_token: Option<SecretSetting>,
    /// The data directory.
    pub data_dir: PathBuf,
    /// The database of the store; `None` for the file in the data directory.
    pub database: Option<DatabaseSettings>,
    /// Number of gateways on the database.
    pub gateways: NonZeroU32,
    /// Name of this gateway; `None` for the host name.
    pub node_name: Option<String>,
    /// The name of the service.
    pub service: String,
    /// The attribution notice.
    pub license: String,
    /// Public base URL of the service.
    pub base_url: Option<String>,
    /// Serve the status page.
    pub status_page: bool,
    /// The pages of accounts; `None` if nobody can sign up.
    pub site: Option<SiteConfig>,
    /// Contacts and links on the public pages.
    pub links: SiteLinks,
    /// The terms of use, one sentence each.
    pub terms: Vec<String>,
    /// CORS policy; `None` if no origin is allowed.
    pub cors: Option<CorsPolicy>,
    /// Deprecation and sunset of the API.
    pub deprecation: Deprecation,
    /// Prefix of API keys.
    pub key_prefix: String,
    /// Accept imported keys of other formats.
    pub accept_imported: bool,
    /// Refuse requests if changes of keys made elsewhere were last read longer ago.
    pub keys_max_age: Option<Duration>,
    /// The tiers.
    pub tiers: Vec<Tier>,
    /// Refused requests allowed per minute.
    pub guard_per_minute: u32,
    /// The backend.
    pub upstream: UpstreamConfig,
    /// Archive of benchmark runs, also set if the built-in backend is not used.
    pub archive: PathBuf,
    /// Limits on requests to the backend.
    pub protection: ProtectionConfig,
    /// The endpoints of the API.
    pub endpoints: EndpointTable,
    /// Retention of documents.
    pub retention: Retention,
    /// Maximum size of stored documents in memory.
    pub cache_bytes: u64,
    /// Maximum size of the disk mirror.
    pub cache_disk_bytes: u64,
    /// Trusted proxies.
    pub proxies: Proxies,
    /// Limits and timeouts of the public port.
    pub server: ServerConfig,
    /// Certificates of the public port; plain HTTP if empty.
    pub certificates: Vec<CertificateFiles>,
    /// Number of worker threads; `None` for one per core.
    pub workers: Option<usize>,
    /// Concurrency limits.
    pub concurrency: ConcurrencyConfig,
    /// Write the access log.
    pub access_log: bool,
    /// Sampling of the access log.
    pub sampling: LogSampling,
    /// Log format and level.
    pub log: LogConfig,
    /// Export of spans; `None` if it is off.
    pub traces: Option<TraceConfig>,
    /// Mail; `None` if it is off.
    pub mail: Option<MailConfig>,
    /// The receiver of leaked keys; `None` if it is off.
    pub leaks: Option<LeakConfig>,
    /// Whether language models may call the endpoints as tools.
    pub mcp: bool,
    /// The webhook of the operator.
    pub operator: Option<OperatorWebhook>,
    /// The rules for suspects.
    pub suspects: SuspectRules,
    /// The values as given.
    pub written: ConfigValues,
}

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

impl UpstreamConfig {
    /// Identifies the backend by its address and mapping: stored documents of another backend are not used.
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
}

impl Config {
    /// Identifies the backend and the forms of its documents. Documents that were stored under another identity are not used.
    pub fn backend_identity(&self) -> String {
        self.upstream.identity() + &self.retention.field_sets.fingerprint()
    }

    /// The address of the public port, if clients are on this machine. With trusted proxies they are not.
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
