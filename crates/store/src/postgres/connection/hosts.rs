//! The hosts of the database, tried one after another.
//!
//! A stopped host may accept connections but never answer. So each host gets an equal share of the deadline, and after
//! a failure the next attempt starts with another host.

use std::time::Duration;

use tokio_postgres::{Config, error::SqlState};

use crate::postgres::connection::address::host_and_port;
use scoregate_base::clock::Clock;

/// The hosts, in the order of the next attempt.
pub struct DatabaseHosts(Vec<Config>);

/// No host accepted a connection, or none may be used. There is a reason for each host.
#[derive(Debug, thiserror::Error)]
#[error("{}", .reasons.join("; "))]
pub struct UnreachableHosts {
    reasons: Vec<String>,
    pub(crate) kind: ConnectionFault,
}

/// Kind of connection failure. If several hosts fail, the highest kind is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConnectionFault {
    /// No host answered, or each host that answered is starting, stopping or read-only. All gateways are affected. A
    /// host may answer later.
    Unreachable,
    /// A writable host answered, but this gateway cannot use it: no connection is left for its role, the
    /// password is wrong, or the host holds another data set. It may accept a connection later.
    Refused,
    /// A host answered, but this program cannot use its tables, or the host lacks a feature.
    Unusable,
}

/// Why a host cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HostFault {
    /// The connection failed.
    #[error("{}", described(.0))]
    Connection(#[from] tokio_postgres::Error),
    /// This host refuses the gateway. Another host may be usable.
    #[error("{0}")]
    Refused(String),
    /// The host lacks a feature, its tables are missing, or this program cannot use them.
    #[error("{0}")]
    Unusable(String),
}

impl HostFault {
    fn kind(&self) -> ConnectionFault {
        // A server that is starting or stopping refuses every client.
        let serves_nobody = [
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
        ];
        match self {
            Self::Connection(error)
                if error
                    .code()
                    .is_some_and(|code| !serves_nobody.contains(code)) =>
            {
                ConnectionFault::Refused
            }
            Self::Connection(_) => ConnectionFault::Unreachable,
            Self::Refused(_) => ConnectionFault::Refused,
            Self::Unusable(_) => ConnectionFault::Unusable,
        }
    }
}

impl DatabaseHosts {
    pub(crate) fn new(servers: &[Config]) -> Self {
        Self(servers.to_vec())
    }

    /// Opens a connection to one host after another, each within an equal share of `timeout`. The next attempt starts
    /// with the connected host or, after a failure, with the second host of this attempt.
    pub(crate) async fn connect<C, E, F>(
        &mut self,
        clock: &Clock,
        timeout: Duration,
        open: impl Fn(Config) -> F,
    ) -> Result<C, UnreachableHosts>
    where
        F: Future<Output = Result<C, E>>,
        E: Into<HostFault>,
    {
        let hosts = self.0.len();
        let share = u32::try_from(hosts)
            .ok()
            .and_then(|hosts| timeout.checked_div(hosts))
            .unwrap_or(timeout);
        let mut reasons = Vec::new();
        let mut kind = ConnectionFault::Unreachable;
        for tried in 0..hosts {
            let Some(server) = self.0.get(tried) else {
                break;
            };
            let reason = match clock.within(share, open(server.clone())).await {
                Ok(Ok(connection)) => {
                    self.0.rotate_left(tried);
                    return Ok(connection);
                }
                Ok(Err(error)) => {
                    let fault = error.into();
                    kind = kind.max(fault.kind());
                    fault.to_string()
                }
                Err(_) => no_answer(share),
            };
            reasons.push(if hosts > 1 {
                format!("{}: {reason}", host_and_port(server))
            } else {
                reason
            });
        }
        self.skip_first();
        Err(UnreachableHosts { reasons, kind })
    }

    /// Moves the first host to the end.
    pub(crate) fn skip_first(&mut self) {
        if !self.0.is_empty() {
            self.0.rotate_left(1);
        }
    }
}

/// The error and its causes. The library's error text contains only the error itself.
pub fn described(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// The reason for a missed deadline.
pub fn no_answer(within: Duration) -> String {
    format!(
        "the database did not answer within {} s",
        within.as_secs_f64()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use scoregate_base::clock::Wall;

    fn parsed(hosts: &[&str]) -> Vec<Config> {
        hosts.iter().map(|host| host.parse().unwrap()).collect()
    }

    /// Tries to connect; the hosts in `refused` refuse. Returns the port of the connection and the ports that were
    /// tried.
    async fn attempt(hosts: &mut DatabaseHosts, refused: &[u16]) -> (Option<u16>, Vec<u16>) {
        let (clock, _) = Clock::manual(Wall::from_seconds(0));
        let tried = std::cell::RefCell::new(Vec::new());
        let open = |server: Config| {
            let port = server.get_ports()[0];
            tried.borrow_mut().push(port);
            let is_refused = refused.contains(&port);
            let refusal = || Err("colour=red".parse::<Config>().unwrap_err());
            std::future::ready(if is_refused { refusal() } else { Ok(port) })
        };
        let connected = hosts
            .connect(&clock, Duration::from_secs(2), open)
            .await
            .ok();
        (connected, tried.into_inner())
    }

    #[tokio::test]
    async fn an_attempt_begins_with_the_connected_host_or_after_a_failure_with_the_next_one() {
        let mut hosts = DatabaseHosts::new(&parsed(&[
            "host=a port=1",
            "host=b port=2",
            "host=c port=3",
        ]));
        assert_eq!(attempt(&mut hosts, &[1]).await, (Some(2), vec![1, 2]));
        assert_eq!(attempt(&mut hosts, &[]).await, (Some(2), vec![2]));
        hosts.skip_first();
        assert_eq!(attempt(&mut hosts, &[1, 2, 3]).await, (None, vec![3, 1, 2]));
        assert_eq!(attempt(&mut hosts, &[]).await, (Some(1), vec![1]));
    }

    #[tokio::test]
    async fn each_host_has_an_equal_share_of_the_deadline_and_a_reason() {
        let (clock, manual) = Clock::manual(Wall::from_seconds(0));
        let mut hosts = DatabaseHosts::new(&parsed(&[
            "host=a port=1",
            "host=b port=1",
            "host=::1 port=1",
            "host=/run/d",
        ]));
        let silent = |_| async {
            manual.advance(Duration::from_millis(500));
            std::future::pending::<Result<(), tokio_postgres::Error>>().await
        };
        let failed = hosts
            .connect(&clock, Duration::from_secs(2), silent)
            .await
            .unwrap_err()
            .to_string();
        let reason = "the database did not answer within 0.5 s";
        assert_eq!(
            failed,
            format!("a:1: {reason}; b:1: {reason}; [::1]:1: {reason}; /run/d: {reason}")
        );
    }
}
