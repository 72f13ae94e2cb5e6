//! The hosts of the database, tried one after another.
//!
//! A stopped host may accept connections and never answer. So each host has an equal share of the deadline, and after a
//! failure the next attempt begins with another host.

use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::Host;
use tokio_postgres::error::SqlState;

use crate::postgres::connection::address::host_and_port;
use scoregate_base::clock::Clock;

/// The hosts of one configuration, in the order of the next attempt.
pub(crate) struct DatabaseHosts(Vec<Config>);

/// No host accepted a connection, or none may be used; a reason for each.
#[derive(Debug, thiserror::Error)]
#[error("{}", .reasons.join("; "))]
pub(crate) struct UnreachableHosts {
    reasons: Vec<String>,
    pub(crate) kind: ConnectionFault,
}

/// Kind of connection failure. With several hosts the highest is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConnectionFault {
    /// No host answered, or none that did serves any gateway: it starts, stops or is read-only. All gateways are affected. One
    /// may answer later.
    Unreachable,
    /// A writable host answered that this gateway may not or must not use: no connection is left for its role, the
    /// password is wrong, or it holds another data set. It may accept a connection later.
    Refused,
    /// A host answered, and its tables cannot be used.
    UnusableTables,
}

/// Why a host cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HostFault {
    /// No connection.
    #[error("{}", described(.0))]
    Connection(#[from] tokio_postgres::Error),
    /// Another host may be used.
    #[error("{0}")]
    Refused(String),
    /// Its tables are missing, or this program cannot use them.
    #[error("{0}")]
    UnusableTables(String),
}

impl HostFault {
    fn kind(&self) -> ConnectionFault {
        // A server that starts or stops refuses every client.
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
            Self::UnusableTables(_) => ConnectionFault::UnusableTables,
        }
    }
}

impl DatabaseHosts {
    pub(crate) fn new(config: &Config) -> Self {
        Self(one_per_host(config))
    }

    /// Opens a connection to one host after another, each within its share of `timeout`. The next attempt begins with
    /// the connected host, or after a failure with the second one of this attempt.
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
                format!("{}: {reason}", shown(server))
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

/// The error and its causes. The library's own text names only the first.
pub(crate) fn described(error: &tokio_postgres::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

/// The reason of a missed deadline.
pub(crate) fn no_answer(within: Duration) -> String {
    format!(
        "the database did not answer within {} s",
        within.as_secs_f64()
    )
}

/// A configuration for each host. One that the library rejects is left as it is.
fn one_per_host(config: &Config) -> Vec<Config> {
    let names = config.get_hosts();
    let addresses = config.get_hostaddrs();
    let ports = config.get_ports();
    let hosts = names.len().max(addresses.len());
    let is_valid = (names.is_empty() || addresses.is_empty() || names.len() == addresses.len())
        && (ports.len() <= 1 || ports.len() == hosts);
    if hosts <= 1 || !is_valid {
        return vec![config.clone()];
    }
    let of_host = |number: usize| {
        let mut own = without_hosts(config);
        match names.get(number) {
            Some(Host::Tcp(name)) => own.host(name),
            Some(Host::Unix(directory)) => own.host_path(directory),
            None => &mut own,
        };
        if let Some(address) = addresses.get(number) {
            own.hostaddr(*address);
        }
        if let Some(port) = ports.get(number).or(ports.first()) {
            own.port(*port);
        }
        own
    };
    (0..hosts).map(of_host).collect()
}

/// Everything but the hosts and their ports, which the library cannot remove.
fn without_hosts(config: &Config) -> Config {
    let mut settings = Config::new();
    settings
        .ssl_mode(config.get_ssl_mode())
        .ssl_negotiation(config.get_ssl_negotiation())
        .channel_binding(config.get_channel_binding())
        .target_session_attrs(config.get_target_session_attrs())
        .load_balance_hosts(config.get_load_balance_hosts())
        .keepalives(config.get_keepalives())
        .keepalives_idle(config.get_keepalives_idle());
    if let Some(user) = config.get_user() {
        settings.user(user);
    }
    if let Some(password) = config.get_password() {
        settings.password(password);
    }
    if let Some(database) = config.get_dbname() {
        settings.dbname(database);
    }
    if let Some(options) = config.get_options() {
        settings.options(options);
    }
    if let Some(name) = config.get_application_name() {
        settings.application_name(name);
    }
    if let Some(timeout) = config.get_connect_timeout() {
        settings.connect_timeout(*timeout);
    }
    if let Some(timeout) = config.get_tcp_user_timeout() {
        settings.tcp_user_timeout(*timeout);
    }
    if let Some(interval) = config.get_keepalives_interval() {
        settings.keepalives_interval(interval);
    }
    if let Some(retries) = config.get_keepalives_retries() {
        settings.keepalives_retries(retries);
    }
    settings
}

fn shown(server: &Config) -> String {
    let port = server.get_ports().first().copied().unwrap_or(5432);
    match (server.get_hosts().first(), server.get_hostaddrs().first()) {
        (Some(host), _) => host_and_port(host, port),
        (None, Some(address)) => host_and_port(&Host::Tcp(address.to_string()), port),
        (None, None) => "no host".into(),
    }
}

#[cfg(test)]
mod tests {
    use tokio_postgres::config::TargetSessionAttrs;

    use super::*;
    use scoregate_base::clock::Wall;

    const SETTINGS: &str = "user=gateway password=canary dbname=site options='-c geqo=off' application_name=scoregate \
                        sslmode=require sslnegotiation=direct channel_binding=require connect_timeout=2 \
                        tcp_user_timeout=3 keepalives=0 keepalives_idle=4 keepalives_interval=5 \
                        keepalives_retries=6 target_session_attrs=read-write load_balance_hosts=random";

    fn parsed(hosts: &str) -> Config {
        format!("{hosts} {SETTINGS}").parse().unwrap()
    }

    #[test]
    fn each_host_keeps_its_name_address_and_port_and_all_other_settings() {
        for (hosts, each) in [
            ("host=a", &["host=a"][..]),
            ("host=a,b", &["host=a", "host=b"]),
            ("host=a,b port=1", &["host=a port=1", "host=b port=1"]),
            (
                "host=a,/run/b port=1,2",
                &["host=a port=1", "host=/run/b port=2"],
            ),
            (
                "host=a,b hostaddr=::1,127.0.0.1",
                &["host=a hostaddr=::1", "host=b hostaddr=127.0.0.1"],
            ),
            (
                "hostaddr=::1,127.0.0.1 port=1,2",
                &["hostaddr=::1 port=1", "hostaddr=127.0.0.1 port=2"],
            ),
            // The library rejects these.
            ("host=a,b hostaddr=::1", &["host=a,b hostaddr=::1"]),
            ("host=a,b port=1,2,3", &["host=a,b port=1,2,3"]),
            ("", &[""]),
        ] {
            let expected: Vec<Config> = each.iter().map(|host| parsed(host)).collect();
            assert_eq!(one_per_host(&parsed(hosts)), expected, "{hosts}");
        }
        let writable =
            |server: &Config| server.get_target_session_attrs() == TargetSessionAttrs::ReadWrite;
        assert!(one_per_host(&parsed("host=a,b")).iter().all(writable));
    }

    /// Connects with each host but those of `refused`. Returns the port connected to, and the ports tried.
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
        let mut hosts = DatabaseHosts::new(&parsed("host=a,b,c port=1,2,3"));
        assert_eq!(attempt(&mut hosts, &[1]).await, (Some(2), vec![1, 2]));
        assert_eq!(attempt(&mut hosts, &[]).await, (Some(2), vec![2]));
        hosts.skip_first();
        assert_eq!(attempt(&mut hosts, &[1, 2, 3]).await, (None, vec![3, 1, 2]));
        assert_eq!(attempt(&mut hosts, &[]).await, (Some(1), vec![1]));
    }

    #[tokio::test]
    async fn each_host_has_an_equal_share_of_the_deadline_and_a_reason() {
        let (clock, manual) = Clock::manual(Wall::from_seconds(0));
        let mut hosts = DatabaseHosts::new(&parsed("host=a,b,::1,/run/d port=1"));
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
