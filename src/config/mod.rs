//! Settings: as written by an operator (`file`), checked against THE table (`settings`), as used by the program
//! (`resolve`). Every problem is reported at once, with its path, the value found and what would do.
//!
//! The only place that knows the file format. Each component owns its typed settings; here they are filled in.

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

/// Everything the program is built from.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where the public port listens.
    pub listen: SocketAddr,
    /// Where the side port listens.
    pub admin_listen: SocketAddr,
    /// Host names under which the side port is asked.
    pub admin_hosts: Vec<String>,
    /// The token of the side port.
    pub admin_token: Option<Secret>,
    /// Where state is kept.
    pub data_dir: PathBuf,
    /// The name of the service.
    pub service: String,
    /// The attribution notice.
    pub license: String,
    /// The public base address, if it is known, for the documents.
    pub base_url: Option<String>,
    /// Which pages of other sites may read answers, if any.
    pub cors: Option<CorsPolicy>,
    /// What is said of the API's own end.
    pub retirement: Deprecation,
    /// What keys begin with.
    pub key_prefix: String,
    /// Whether keys of another form may be known.
    pub accept_imported: bool,
    /// The plans.
    pub tiers: Vec<Tier>,
    /// Refusals a minute.
    pub guard_per_minute: u32,
    /// The backend.
    pub upstream: UpstreamConfig,
    /// Where benchmark runs are kept, whether the built-in backend is asked or not.
    pub archive: PathBuf,
    /// How it is protected.
    pub protection: ProtectionConfig,
    /// How documents are kept.
    pub retention: Retention,
    /// Room for documents.
    pub cache_bytes: u64,
    /// Room for documents on disk.
    pub shelf_bytes: u64,
    /// Who is believed about his clients.
    pub proxies: Proxies,
    /// How the public port behaves.
    pub server: ServerConfig,
    /// The certificates of the public port; plain HTTP if there are none.
    pub certificates: Vec<CertificateFiles>,
    /// Threads that serve.
    pub workers: Option<usize>,
    /// How much runs at once.
    pub capacity: ConcurrencyConfig,
    /// Whether requests are told on standard output.
    pub tells_requests: bool,
    /// Which of them.
    pub sampling: LogSampling,
    /// The log.
    pub log: LogConfig,
    /// All of it as it was written.
    pub written: ConfigValues,
}

/// Which backend.
#[derive(Clone, Debug)]
pub enum UpstreamConfig {
    /// The one inside, which scores the runs of an archive.
    BuiltIn {
        /// The archive.
        archive: PathBuf,
    },
    /// The one inside, with simulated runs. No setting says so: only a demo invents its data.
    Simulated {
        /// The seed.
        seed: u64,
    },
    /// One over the network.
    Http(HttpConfig),
}

impl UpstreamConfig {
    /// What tells a backend from another, whose documents are of no use here: where it is, and how its answers are read.
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

/// Something wrong with the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    /// The setting's path, such as `upstream.timeout`.
    pub path: String,
    /// What was found; never a secret.
    pub found: Option<String>,
    /// What would do.
    pub remedy: String,
}

/// Everything wrong with the settings, at once.
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
