//! `scoregate health`: whether a server is ready, for supervisors that run a command and look at its exit code, where
//! there may be no shell and no curl.
//!
//! Reads no settings: a file that is being edited must not make a healthy server look ill. Not for: what is wrong with a
//! server that is not ready, which its log says.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use http::Method;
use tokio::net::TcpStream;

use crate::clock::Clock;

use super::control::{Undone, converse, wait_for};
use super::exit::Exit;
use super::printer;

pub(super) const AFTER_HELP: &str = "Examples:\n  scoregate health\n  scoregate health --admin 127.0.0.1:9465\n\n\
Asks the side port's /readyz. The exit code is 0 if the server is ready and 1 if it is not, or cannot be asked within\n\
three seconds: 2 is not used, since some supervisors give it a meaning of their own.";

/// The side port answers within milliseconds, from a thread of its own.
const PATIENCE: Duration = Duration::from_secs(3);

#[derive(Debug, Args)]
pub(super) struct HealthArgs {
    /// Where the side port listens; of all addresses, loopback is asked.
    #[arg(long, value_name = "ADDR", env = "SCOREGATE_ADMIN_LISTEN", default_value = "127.0.0.1:9464")]
    admin: SocketAddr,
}

pub(super) fn run(args: &HealthArgs) -> Exit {
    let asked = reachable(args.admin);
    match wait_for(ask(asked)) {
        Ok(word) => printer::data(&word),
        Err(Undone::Input(problem)) => printer::input(&problem),
        Err(Undone::Fault(error)) => {
            printer::input(&format!("the side port {asked} gave no answer: {error:#}"))
        }
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
async fn ask(address: SocketAddr) -> Result<String, Undone> {
    let conversation = async {
        let stream = TcpStream::connect(address).await.context("it cannot be connected to")?;
        converse(stream, (Method::GET, "/readyz".into(), Vec::new())).await
    };
    let answered = Clock::system().within(PATIENCE, conversation).await;
    let (status, body) = answered.map_err(|_| anyhow::anyhow!("{PATIENCE:?} have passed"))??;
    let word = String::from_utf8_lossy(&body).into_owned();
    if status.is_success() { Ok(word) } else { Err(Undone::Input(word.trim_end().to_owned())) }
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
