//! Settings: as written by an operator (`file`), checked against THE table (`settings`), as used by the program
//! (`resolve`). All problems are reported at once, each with its path, the value found and the remedy.
//!
//! Only this module knows the file format. Each component defines its typed settings; they are filled in here.

mod admin;
mod config_reader;
mod cors;
mod deprecation;
mod file;
mod freshness;
mod mapping;
mod overload;
mod proxies;
mod reload;
mod renamed;
mod resolve;
mod sample;
mod secrets;
mod server;
mod settings;
mod shown;
mod tables;
mod tiers;
mod tls;
mod words;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use sha2::{Digest as _, Sha256};

use crate::address::Proxies;
use crate::documents::Retention;
use crate::gateway::{ConcurrencyConfig, CorsPolicy, Deprecation, LogSampling};
use crate::keys::Tier;
use crate::secret::Secret;
use crate::server::{CertificateFiles, ServerConfig};
use crate::telemetry::log::LogConfig;
use crate::upstream::{HttpConfig, ProtectionConfig};

pub use file::{ConfigValues, read_environment, read_file, read_text};
pub use resolve::resolve;
pub use sample::sample;
pub use secrets::read_secrets;
pub use server::side_port;
pub use settings::{SETTINGS, Setting, ValueKind};
pub use tls::{certificate_files, read_certificates};

/// The complete configuration of the program.
#[derive(Clone, Debug)]
pub struct Config {
    /// Address of the public port.
    pub listen: SocketAddr,
    /// Address of the side port.
    pub admin_listen: SocketAddr,
    /// Host names accepted by the side port.
    pub admin_hosts: Vec<String>,
    /// The token of the side port.
    pub admin_token: Option<Secret>,
    /// The data directory.
    pub data_dir: PathBuf,
    /// The name of the service.
    pub service: String,
    /// The attribution notice.
    pub license: String,
    /// The public base URL, for the documentation.
    pub base_url: Option<String>,
    /// CORS policy, if any.
    pub cors: Option<CorsPolicy>,
    /// Deprecation and sunset of the API.
    pub deprecation: Deprecation,
    /// Prefix of keys.
    pub key_prefix: String,
    /// Whether keys of other forms are accepted.
    pub accept_imported: bool,
    /// The tiers.
    pub tiers: Vec<Tier>,
    /// Refusals per minute and address.
    pub guard_per_minute: u32,
    /// The backend.
    pub upstream: UpstreamConfig,
    /// The archive of benchmark runs, whether the built-in backend is used or not.
    pub archive: PathBuf,
    /// Queue of the backend.
    pub protection: ProtectionConfig,
    /// Retention of documents.
    pub retention: Retention,
    /// Capacity of the cache.
    pub cache_bytes: u64,
    /// Capacity of the disk mirror.
    pub mirror_bytes: u64,
    /// Trusted proxies.
    pub proxies: Proxies,
    /// Settings of the public port.
    pub server: ServerConfig,
    /// The certificates of the public port; plain HTTP without any.
    pub certificates: Vec<CertificateFiles>,
    /// Number of worker threads.
    pub workers: Option<usize>,
    /// Concurrency limits.
    pub concurrency: ConcurrencyConfig,
    /// Whether the access log is enabled.
    pub access_log: bool,
    /// Sampling of the access log.
    pub sampling: LogSampling,
    /// The event log.
    pub log: LogConfig,
    /// All values as written.
    pub written: ConfigValues,
}

/// The backend.
#[derive(Clone, Debug)]
pub enum UpstreamConfig {
    /// The built-in one, which scores the runs of an archive.
    BuiltIn {
        /// The archive.
        archive: PathBuf,
    },
    /// The built-in one with simulated runs. Used by `demo` only; no setting selects it.
    Simulated {
        /// The seed.
        seed: u64,
    },
    /// A backend over the network.
    Http(HttpConfig),
}

impl UpstreamConfig {
    /// Identifies a backend by its address and mapping. Stored documents of another backend are not used.
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

/// A problem of the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    /// The setting's path, such as `upstream.timeout`.
    pub path: String,
    /// The value found; never a secret.
    pub found: Option<String>,
    /// The remedy.
    pub remedy: String,
}

/// All problems of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblems(pub Vec<ConfigProblem>);

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.found {
            Some(found) => write!(f, "{}: found {found}; {}", self.path, self.remedy),
            None => write!(f, "{}: {}", self.path, self.remedy),
        }
    }
}

impl fmt::Display for ConfigProblems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, problem) in self.0.iter().enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            write!(f, "{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigProblems {}
