//! The gateway as a contestant: the real program with only the settings that the job needs.

use std::{
    net::SocketAddr,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use crate::{
    contestants::Contestant,
    job::{DAY, Keys, MINUTE},
    machine::Cores,
    process::{Process, address_after},
    transport::{CERTIFICATE, HOST, KEY, ServerCertificate},
};

/// How the program is started.
#[derive(Clone, Copy)]
pub struct GatewayUnderTest {
    /// Its name in the table.
    pub name: &'static str,
    /// Number of workers.
    pub workers: usize,
    /// Whether it may use two cores.
    pub has_two_cores: bool,
    /// Whether the access log is enabled, as it is by default: one line in a hundred.
    pub has_access_log: bool,
    /// Another build of the program.
    pub build: Option<&'static Path>,
    /// Additional settings.
    pub settings: &'static str,
    /// The backend's certificate, if that serves TLS.
    pub backend_certificate: Option<&'static ServerCertificate>,
    /// Its certificate, if it serves TLS.
    pub certificate: Option<&'static ServerCertificate>,
}

/// As compared with others.
pub const PLAIN: GatewayUnderTest = GatewayUnderTest {
    name: "scoregate",
    workers: 1,
    has_two_cores: false,
    has_access_log: true,
    build: None,
    settings: "",
    backend_certificate: None,
    certificate: None,
};
/// With space for the maximum number of documents, and without the disk mirror.
pub const LARGE_CACHE: &str =
    "cache.max_bytes = \"8GiB\"\ncache.disk_max_bytes = \"1MiB\"\nupstream.max_body = \"64MiB\"\n";

/// Starts it.
pub fn start(
    gateway: GatewayUnderTest,
    cores: &Cores,
    keys: &Keys,
    backend: SocketAddr,
) -> Contestant {
    started(gateway, cores, keys, backend).0
}

/// Starts it; also returns the address of its side port, and the time from the command until it serves.
pub fn started(
    gateway: GatewayUnderTest,
    cores: &Cores,
    keys: &Keys,
    backend: SocketAddr,
) -> (Contestant, SocketAddr, Duration) {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("scoregate.toml");
    std::fs::create_dir(directory.path().join("data")).unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    if let Some(certificate) = gateway.certificate.or(gateway.backend_certificate) {
        certificate.write(directory.path());
    }
    let tls = gateway.certificate.map_or(String::new(), |_| {
        format!(
            "[tls.default]\ncertificate = \"{}\"\nkey = \"{}\"\n",
            path(CERTIFICATE),
            path(KEY)
        )
    });
    let upstream = gateway
        .backend_certificate
        .map_or(format!("http://{backend}/"), |_| {
            format!(
                "https://{backend}/\"\nupstream.server_name = \"{HOST}\"\nupstream.ca_file = \"{}",
                path(CERTIFICATE)
            )
        });
    // Unlimited refusals, or the guard would close the connections.
    let settings = format!(
        "listen = \"127.0.0.1:0\"\nadmin.listen = \"127.0.0.1:0\"\ndata_dir = \"{}\"\nguard.per_minute = 100000000\n\
         server.workers = {}\nupstream.url = \"{upstream}\"\nlog.access = {}\n{}\
         {tls}[tiers.load]\nminute = {MINUTE}\nday = {DAY}\npaid = true\n[tiers.spent]\nminute = 1\nday = {DAY}\npaid = true\n",
        directory.path().join("data").display(),
        gateway.workers,
        gateway.has_access_log,
        gateway.settings,
    );
    std::fs::write(&file, settings).unwrap();
    let binary = gateway
        .build
        .unwrap_or(Path::new(env!("CARGO_BIN_EXE_scoregate")));
    let lines = directory.path().join("keys.csv");
    std::fs::write(&lines, keys.csv()).unwrap();
    let arguments = [
        "keys",
        "import",
        &path("keys.csv"),
        "--config",
        &path("scoregate.toml"),
    ];
    let imported = Command::new(binary).args(arguments).output().unwrap();
    assert!(
        imported.status.success(),
        "{}",
        String::from_utf8_lossy(&imported.stderr)
    );
    let mut command = if gateway.has_two_cores {
        cores.two(binary)
    } else {
        cores.one(binary)
    };
    command.arg("serve").arg("--config").arg(&file);
    let started_at = Instant::now();
    let (process, said) = Process::that_says(command, directory, "public=");
    let address = address_after("public=", &said);
    let side = address_after("side=", &said);
    (
        Contestant {
            name: gateway.name,
            address,
            process,
            knows_keys: true,
            counts_down: true,
            limitations: "",
        },
        side,
        started_at.elapsed(),
    )
}
