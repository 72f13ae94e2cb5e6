//! Reads `server.*` and the address of the side port.

use std::net::SocketAddr;
use std::time::Duration;

use crate::server::{ConnectionConfig, Deadlines, ServerConfig};
use scoregate_base::address::Networks;

use super::super::ConfigProblems;
use super::super::config_reader::ConfigReader;
use super::super::file::ConfigValues;

/// Address of the side port; problems with other settings are ignored.
pub fn side_port(written: &ConfigValues) -> Result<SocketAddr, ConfigProblems> {
    let mut reading = ConfigReader::of(written);
    let address = reading.address("admin.listen");
    reading.done(address)
}

impl ConfigReader<'_> {
    /// `trusted_proxies`: proxies, whose connections carry requests of many clients.
    pub(in super::super) fn server(&mut self, trusted_proxies: &Networks) -> ServerConfig {
        let mut count = |path| usize::try_from(self.number(path)).unwrap_or(usize::MAX);
        let max_connections = count("server.max_connections");
        let max_per_address = count("server.max_connections_per_address");
        let max_per_application = count("server.max_connections_per_application");
        let deadlines = Deadlines {
            head: self.duration("server.head_timeout"),
            idle: self.duration("server.idle_timeout"),
            request: self.duration("server.request_timeout"),
            write: self.duration("server.write_timeout"),
            age: self.duration("server.max_connection_age"),
        };
        ServerConfig {
            max_connections,
            max_per_address,
            max_per_application,
            connection: ConnectionConfig {
                deadlines,
                tls: None,
                proxy_protocol: self.networks("proxies.proxy_protocol"),
                trusted_proxies: trusted_proxies.clone(),
            },
            shutdown_delay: self.shutdown_delay(),
            shutdown_timeout: self.duration("server.shutdown_timeout"),
        }
    }
    fn shutdown_delay(&mut self) -> Duration {
        let path = "server.shutdown_delay";
        if self.maybe(path).is_none() { Duration::ZERO } else { self.duration(path) }
    }
}
