//! `scoregate health`: whether a server is ready, for supervisors that run a command and look at its exit code, where
//! there may be no shell and no curl.
//!
//! Reads a configuration file only if it is named on the command line, and of it only where the side port listens: a file
//! that is being edited must not make a healthy server look ill. Not for: what is wrong with a server that is not ready,
//! which its log says.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use http::Method;
use tokio::net::{TcpStream, UnixStream};

use crate::app::SOCKET;
use crate::clock::Clock;
use crate::config::{ConfigProblems, read_environment, read_file, side_port};

use super::control::{CommandError, converse, wait_for};
use super::exit::Exit;
use super::printer;
use super::serve::environment;

pub(super) const AFTER_HELP: &str = "Examples:\n  scoregate health\n  scoregate health --admin 127.0.0.1:9465\n  \
scoregate health --config scoregate.toml\n  scoregate health --data-dir DIR\n\n\
Requests /readyz from the side port given by --admin or --config, or over the Unix socket in DIR. The exit code is 0\n\
if the server is ready, and 1 if it is not ready or does not respond within three seconds. Exit code 2 is not used,\n\
since some supervisors reserve it.";

/// The side port answers within milliseconds, from a thread of its own.
const PATIENCE: Duration = Duration::from_secs(3);

#[derive(Debug, Args)]
pub(super) struct HealthArgs {
    /// Address of the side port; loopback is used for the unspecified address.
    #[arg(long, value_name = "ADDR", env = "SCOREGATE_ADMIN_LISTEN", default_value = "127.0.0.1:9464")]
    admin: SocketAddr,
    /// The server's configuration file, for the address of the side port. Overrides --admin.
    #[arg(long, value_name = "FILE", conflicts_with = "data_dir")]
    config: Option<PathBuf>,
    /// The server's data directory, for its Unix socket. Overrides --admin.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
}

/// Where a server is asked.
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
    fn door(&self) -> Result<HealthTarget, ConfigProblems> {
        if let Some(directory) = &self.data_dir {
            return Ok(HealthTarget::Socket(directory.join(SOCKET)));
        }
        let Some(file) = &self.config else { return Ok(HealthTarget::SidePort(reachable(self.admin))) };
        let mut written = read_file(file)?;
        written.overlay(read_environment(environment())?);
        Ok(HealthTarget::SidePort(reachable(side_port(&written)?)))
    }
}

pub(super) fn run(args: &HealthArgs) -> Exit {
    let door = match args.door() {
        Ok(door) => door,
        Err(problems) => return printer::input(&problems.to_string()),
    };
    match wait_for(ask(&door)) {
        Ok(word) => printer::data(&word),
        Err(CommandError::Input(problem)) => printer::input(&problem),
        Err(CommandError::Fault(error)) => printer::input(&format!("{door} gave no answer: {error:#}")),
    }
}

/// A server that listens on every address is asked on loopback.
fn reachable(listens: SocketAddr) -> SocketAddr {
    let ip = match listens.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(ip, listens.port())
}

/// Its word, if it is ready.
async fn ask(door: &HealthTarget) -> Result<String, CommandError> {
    let question = (Method::GET, "/readyz".into(), Vec::new());
    let unreachable = "it cannot be connected to";
    let conversation = async {
        match door {
            HealthTarget::SidePort(address) => {
                converse(TcpStream::connect(address).await.context(unreachable)?, question).await
            }
            HealthTarget::Socket(path) => {
                converse(UnixStream::connect(path).await.context(unreachable)?, question).await
            }
        }
    };
    let answered = Clock::system().within(PATIENCE, conversation).await;
    let (status, body) = answered.map_err(|_| anyhow::anyhow!("{PATIENCE:?} have passed"))??;
    let word = String::from_utf8_lossy(&body).into_owned();
    if status.is_success() { Ok(word) } else { Err(CommandError::Input(word.trim_end().to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_all_addresses_loopback_is_asked_and_any_other_as_it_is() {
        for (listens, asked) in
            [("0.0.0.0:9464", "127.0.0.1:9464"), ("[::]:9464", "[::1]:9464"), ("192.0.2.1:1", "192.0.2.1:1")]
        {
            assert_eq!(reachable(listens.parse().unwrap()).to_string(), asked);
        }
    }
}
