//! Reads `server.*` and the address of the side port.

use std::net::SocketAddr;

use crate::server::{ConnectionConfig, Deadlines, ServerConfig};
use scoregate_base::address::Networks;

use super::proxies;
use crate::config::{ConfigProblems, config_reader::ConfigReader, file::ConfigValues};

/// Reads the address of the side port. Problems with other settings are ignored.
pub fn side_port(written: &ConfigValues) -> Result<SocketAddr, ConfigProblems> {
    let mut reading = ConfigReader::of(written);
    let address = address(&mut reading, "admin.listen");
    reading.done(address)
}

/// Reads the settings of the public port. Connections from `trusted_proxies` carry requests from many clients.
pub(in crate::config) fn read(
    reading: &mut ConfigReader<'_>,
    trusted_proxies: &Networks,
) -> ServerConfig {
    let deadlines = Deadlines {
        head: reading.get("server.head_timeout"),
        idle: reading.get("server.idle_timeout"),
        request: reading.get("server.request_timeout"),
        write: reading.get("server.write_timeout"),
        age: reading.get("server.max_connection_age"),
    };
    ServerConfig {
        max_connections: reading.get("server.max_connections"),
        max_per_address: reading.get("server.max_connections_per_address"),
        max_per_application: reading.get("server.max_connections_per_application"),
        connection: ConnectionConfig {
            deadlines,
            tls: None,
            proxy_protocol: proxies::networks(reading, "proxies.proxy_protocol"),
            trusted_proxies: trusted_proxies.clone(),
        },
        shutdown_delay: reading.get("server.shutdown_delay"),
        shutdown_timeout: reading.get("server.shutdown_timeout"),
    }
}

/// Reads an address. If it is invalid, returns a placeholder that is not used.
pub(in crate::config) fn address(reading: &mut ConfigReader<'_>, path: &str) -> SocketAddr {
    let unused = SocketAddr::from(([127, 0, 0, 1], 0));
    reading.optional(path).unwrap_or(unused)
}
