//! The address of the database, from a URL that contains no secrets.

use std::{fmt, time::Duration};

use tokio_postgres::{
    Config,
    config::{Host, SslMode, TargetSessionAttrs},
};

/// A configuration for each host, in the order of the URL. All have the same user and database.
#[derive(Clone)]
pub struct DatabaseAddress(Vec<Config>);

/// Why a database URL is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadDatabaseUrl {
    /// The text has another scheme or is not a URL.
    #[error(
        "write a URL such as \"postgresql://gateway@db1.example:5432,db2.example:5432/scoregate\""
    )]
    Scheme,
    /// The URL cannot be parsed.
    #[error("the URL is invalid: {0}")]
    Syntax(String),
    /// The URL contains a password, which would be printed with the settings and be visible to everyone who can read
    /// them.
    #[error("write the password to the file named by store.password_file, not to the URL")]
    Password,
    /// The URL does not name a user.
    #[error("name the user in the URL, such as \"postgresql://gateway@db.example/scoregate\"")]
    User,
    /// The URL does not name a host.
    #[error(
        "write the hosts before the database's name, such as \"postgresql://gateway@db1.example,db2.example/scoregate\""
    )]
    Host,
    /// The URL sets TLS options, which belong in other settings.
    #[error("remove sslmode from the URL; configure TLS with store.ca_file or store.plain_text")]
    SslMode,
}

impl DatabaseAddress {
    /// Parses a URL.
    pub fn parse(url: &str) -> Result<Self, BadDatabaseUrl> {
        if !(url.starts_with("postgresql://") || url.starts_with("postgres://")) {
            return Err(BadDatabaseUrl::Scheme);
        }
        let each = one_url_per_host(url);
        each.iter()
            .map(|url| parse_host(url))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Whether all connections stay on this machine.
    pub fn is_local(&self) -> bool {
        let mut hosts = self.0.iter().flat_map(Config::get_hosts);
        hosts.all(|host| match host {
            Host::Unix(_) => true,
            Host::Tcp(name) => name == "localhost" || is_loopback(name),
        })
    }

    /// The configuration for connecting to each host, without the password. Only writable hosts are used.
    pub(crate) fn servers(&self, has_tls: bool, timeout: Duration) -> Vec<Config> {
        let mode = if has_tls {
            SslMode::Require
        } else {
            SslMode::Disable
        };
        let mut servers = self.0.clone();
        for server in &mut servers {
            server
                .ssl_mode(mode)
                .target_session_attrs(TargetSessionAttrs::ReadWrite)
                .connect_timeout(timeout)
                .application_name("scoregate");
        }
        servers
    }
}

/// Splits the URL into one URL for each host.
fn one_url_per_host(url: &str) -> Vec<String> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return vec![url.to_owned()];
    };
    let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let (user, hosts) = match authority.rsplit_once('@') {
        Some((user, hosts)) => (format!("{user}@"), hosts),
        None => (String::new(), authority),
    };
    hosts
        .split(',')
        .map(|host| format!("{scheme}://{user}{host}{path}"))
        .collect()
}

fn parse_host(url: &str) -> Result<Config, BadDatabaseUrl> {
    let parsed: Config = url.parse().map_err(|error: tokio_postgres::Error| {
        let cause = std::error::Error::source(&error).map(ToString::to_string);
        BadDatabaseUrl::Syntax(cause.unwrap_or_else(|| error.to_string()))
    })?;
    if parsed.get_password().is_some() {
        return Err(BadDatabaseUrl::Password);
    }
    if parsed.get_user().is_none() {
        return Err(BadDatabaseUrl::User);
    }
    if parsed.get_hosts().len() != 1 {
        return Err(BadDatabaseUrl::Host);
    }
    if parsed.get_ssl_mode() != SslMode::Prefer {
        return Err(BadDatabaseUrl::SslMode);
    }
    Ok(parsed)
}

/// The hosts, the user and the database.
impl fmt::Display for DatabaseAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.0.first();
        let user = first.and_then(Config::get_user).unwrap_or_default();
        let database = first.and_then(Config::get_dbname).unwrap_or(user);
        let hosts: Vec<_> = self.0.iter().map(host_and_port).collect();
        write!(f, "{user}@{}/{database}", hosts.join(","))
    }
}

impl fmt::Debug for DatabaseAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The host as written in a URL, or the directory of its socket.
pub fn host_and_port(server: &Config) -> String {
    let port = server.get_ports().first().copied().unwrap_or(5432);
    match server.get_hosts().first() {
        Some(Host::Tcp(name)) if name.contains(':') => format!("[{name}]:{port}"),
        Some(Host::Tcp(name)) => format!("{name}:{port}"),
        Some(Host::Unix(directory)) => directory.display().to_string(),
        None => "no host".into(),
    }
}

fn is_loopback(name: &str) -> bool {
    let address = name.trim_start_matches('[').trim_end_matches(']');
    address
        .parse::<std::net::IpAddr>()
        .is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_has_hosts_a_user_and_no_secret() {
        let parsed = |url: &str| {
            DatabaseAddress::parse(url).map(|address| (address.to_string(), address.is_local()))
        };
        for (url, shown, is_local) in [
            (
                "postgresql://gateway@db.example/site",
                "gateway@db.example:5432/site",
                false,
            ),
            ("postgres://g@a:1,b:2/site", "g@a:1,b:2/site", false),
            ("postgres://g@[::1]:1,b", "g@[::1]:1,b:5432/g", false),
            (
                "postgresql://g@/site?host=/run/postgresql",
                "g@/run/postgresql/site",
                true,
            ),
            ("postgresql://g@127.0.0.1:6432", "g@127.0.0.1:6432/g", true),
            (
                "postgresql://g@127.0.0.1,db.example/site",
                "g@127.0.0.1:5432,db.example:5432/site",
                false,
            ),
            (
                "postgresql://g@%2Frun%2Fpostgresql/site",
                "g@/run/postgresql/site",
                true,
            ),
        ] {
            assert_eq!(parsed(url), Ok((shown.into(), is_local)), "{url}");
        }
        for (url, error) in [
            ("host=db.example", BadDatabaseUrl::Scheme),
            ("mysql://g@db.example", BadDatabaseUrl::Scheme),
            ("postgresql://g:canary@db.example", BadDatabaseUrl::Password),
            (
                "postgresql://g@db.example?password=canary",
                BadDatabaseUrl::Password,
            ),
            ("postgresql://db.example/site", BadDatabaseUrl::User),
            ("postgresql://g@/site", BadDatabaseUrl::Host),
            (
                "postgresql://g@db.example/site?sslmode=disable",
                BadDatabaseUrl::SslMode,
            ),
        ] {
            assert_eq!(parsed(url), Err(error), "{url}");
        }
        let unknown = parsed("postgresql://g@db.example/site?colour=canary")
            .unwrap_err()
            .to_string();
        assert!(
            unknown.contains("colour") && !unknown.contains("canary"),
            "{unknown}"
        );
    }

    #[test]
    fn each_host_keeps_its_name_and_port_and_all_other_settings() {
        let rest =
            "site?options=-c%20geqo%3Doff&tcp_user_timeout=3&keepalives=0&channel_binding=require";
        let url = |hosts: &str| format!("postgresql://gate,way@{hosts}/{rest}");
        let found = DatabaseAddress::parse(&url("a,[::1]:2,%2Frun%2Fb")).unwrap();
        let each = ["a", "[::1]:2", "%2Frun%2Fb"].map(|host| url(host).parse().unwrap());
        assert_eq!(found.0, each);
        for server in found.servers(true, Duration::from_secs(2)) {
            assert_eq!(server.get_ssl_mode(), SslMode::Require);
            assert_eq!(
                server.get_target_session_attrs(),
                TargetSessionAttrs::ReadWrite
            );
        }
    }
}
