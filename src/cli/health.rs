//! `scoregate health`: checks whether a server is ready, for supervisors that run a command and use its exit code.
//! Needs neither a shell nor curl.
//!
//! Reads a configuration file only if it is given on the command line, and takes only the address of the side port from it. A
//! file that is being edited must not make a healthy server fail the check. The reasons why a server is not ready are
//! in its log.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    path::PathBuf,
};

use clap::Args;
use tokio::net::{TcpStream, UnixStream};

use crate::{
    app::SOCKET,
    config::{ConfigProblems, read_environment, read_file, side_port},
};
use scoregate_base::clock::Clock;

use super::{
    command_error::{CommandError, CommandOutcome},
    control::{block_on, get},
    printer,
    serve::environment,
};

pub const AFTER_HELP: &str = "Examples:\n  scoregate health\n  scoregate health --admin 127.0.0.1:9465\n  \
scoregate health --config scoregate.toml\n  scoregate health --data-dir DIR\n\n\
Requests /readyz from the side port given by --admin or --config, or over the Unix socket in DIR. The exit code is 0\n\
if the server is ready, and 1 if it is not ready or does not respond within three seconds. Exit code 2 is not used,\n\
since some supervisors reserve it.";

#[derive(Debug, Args)]
pub struct HealthArgs {
    /// Address of the side port; loopback is used for the unspecified address.
    #[arg(
        long,
        value_name = "ADDR",
        env = "SCOREGATE_ADMIN_LISTEN",
        default_value = "127.0.0.1:9464"
    )]
    admin: SocketAddr,
    /// The server's configuration file, for the address of the side port. Overrides --admin.
    #[arg(long, value_name = "FILE", conflicts_with = "data_dir")]
    config: Option<PathBuf>,
    /// The server's data directory, for its Unix socket. Overrides --admin.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

/// The address that is probed.
enum HealthTarget {
    SidePort(SocketAddr),
    Socket(PathBuf),
}

impl fmt::Display for HealthTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SidePort(address) => write!(f, "the side port {address}"),
            Self::Socket(path) => write!(f, "the socket {}", path.display()),
        }
    }
}

impl HealthArgs {
    fn target(&self) -> Result<HealthTarget, ConfigProblems> {
        if let Some(directory) = &self.data_dir {
            return Ok(HealthTarget::Socket(directory.join(SOCKET)));
        }
        let Some(file) = &self.config else {
            return Ok(HealthTarget::SidePort(reachable(self.admin)));
        };
        let mut values = read_file(file);
        values.overlay(read_environment(environment()));
        Ok(HealthTarget::SidePort(reachable(side_port(&values)?)))
    }
}

pub fn run(args: &HealthArgs) -> CommandOutcome {
    let target = args.target()?;
    match block_on(probe(&target)) {
        Err(CommandError::Fault(error)) => Err(CommandError::Input(format!(
            "no response from {target}: {error:#}"
        ))),
        probed => Ok(printer::data(&probed?)?),
    }
}

/// Replaces the unspecified address with loopback.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(ip, listen.port())
}

/// Requests `/readyz`; returns the body if the server is ready.
async fn probe(target: &HealthTarget) -> CommandOutcome<String> {
    let clock = Clock::system();
    let ready = "/readyz".to_owned();
    let (status, body) = match target {
        HealthTarget::SidePort(address) => get(&clock, TcpStream::connect(address), ready).await?,
        HealthTarget::Socket(path) => get(&clock, UnixStream::connect(path), ready).await?,
    };
    if status.is_success() {
        Ok(body)
    } else {
        Err(CommandError::Input(body.trim_end().to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unspecified_address_becomes_loopback() {
        for (listen, expected) in [
            ("0.0.0.0:9464", "127.0.0.1:9464"),
            ("[::]:9464", "[::1]:9464"),
            ("192.0.2.1:1", "192.0.2.1:1"),
        ] {
            assert_eq!(reachable(listen.parse().unwrap()).to_string(), expected);
        }
    }
}
