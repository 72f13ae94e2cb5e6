//! The address of the database, from a URL without secrets.

use std::fmt;
use std::time::Duration;

use tokio_postgres::config::{Host, SslMode, TargetSessionAttrs};

/// Hosts, user and database.
#[derive(Clone)]
pub struct DatabaseAddress(tokio_postgres::Config);

/// The URL of a database is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadDatabaseUrl {
    /// Another scheme, or no URL at all.
    #[error(
        "write a URL such as \"postgresql://gateway@db1.example:5432,db2.example:5432/scoregate\""
    )]
    Scheme,
    /// It cannot be parsed.
    #[error("the URL is invalid: {0}")]
    Syntax(String),
    /// The password would be printed with the settings and visible to all who can read them.
    #[error("write the password to the file of store.password_file, not into the URL")]
    Password,
    /// No user is named.
    #[error("write the user into the URL, such as \"postgresql://gateway@db.example/scoregate\"")]
    User,
    /// No host is named.
    #[error(
        "write at least one host into the URL, such as \"postgresql://gateway@db.example/scoregate\""
    )]
    Host,
    /// TLS is not configured in the URL.
    #[error("remove sslmode from the URL; store.ca_file and store.plain_text decide about TLS")]
    SslMode,
}

impl DatabaseAddress {
    /// Parses a URL.
    pub fn parse(url: &str) -> Result<Self, BadDatabaseUrl> {
        if !(url.starts_with("postgresql://") || url.starts_with("postgres://")) {
            return Err(BadDatabaseUrl::Scheme);
        }
        let parsed: tokio_postgres::Config =
            url.parse().map_err(|error: tokio_postgres::Error| {
                let cause = std::error::Error::source(&error).map(ToString::to_string);
                BadDatabaseUrl::Syntax(cause.unwrap_or_else(|| error.to_string()))
            })?;
        if parsed.get_password().is_some() {
            return Err(BadDatabaseUrl::Password);
        }
        if parsed.get_user().is_none() {
            return Err(BadDatabaseUrl::User);
        }
        if parsed.get_hosts().is_empty() {
            return Err(BadDatabaseUrl::Host);
        }
        if parsed.get_ssl_mode() != SslMode::Prefer {
            return Err(BadDatabaseUrl::SslMode);
        }
        Ok(Self(parsed))
    }

    /// Whether connections never leave this machine.
    pub fn is_local(&self) -> bool {
        self.0.get_hosts().iter().all(|host| match host {
            Host::Unix(_) => true,
            Host::Tcp(name) => name == "localhost" || is_loopback(name),
        })
    }

    /// How to connect to it, without the password. Only a writable host is used.
    pub(crate) fn server(&self, has_tls: bool, timeout: Duration) -> tokio_postgres::Config {
        let mut server = self.0.clone();
        server
            .ssl_mode(if has_tls {
                SslMode::Require
            } else {
                SslMode::Disable
            })
            .target_session_attrs(TargetSessionAttrs::ReadWrite)
            .connect_timeout(timeout)
            .application_name("scoregate");
        server
    }
}

/// The hosts, the user and the database.
impl fmt::Display for DatabaseAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ports = self.0.get_ports();
        let hosts = self.0.get_hosts().iter().enumerate().map(|(number, host)| {
            host_and_port(
                host,
                ports.get(number).or(ports.first()).copied().unwrap_or(5432),
            )
        });
        let user = self.0.get_user().unwrap_or_default();
        let database = self.0.get_dbname().unwrap_or(user);
        write!(
            f,
            "{user}@{}/{database}",
            hosts.collect::<Vec<_>>().join(",")
        )
    }
}

impl fmt::Debug for DatabaseAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A host as in a URL, or the directory of its socket.
pub(crate) fn host_and_port(host: &Host, port: u16) -> String {
    match host {
        Host::Tcp(name) if name.contains(':') => format!("[{name}]:{port}"),
        Host::Tcp(name) => format!("{name}:{port}"),
        Host::Unix(directory) => directory.display().to_string(),
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
}
