//! Reads `server.*` and the address of the side port.

use std::net::SocketAddr;
use std::time::Duration;

use crate::server::{ConnectionConfig, Deadlines, ServerConfig};
use scoregate_base::address::Networks;

use super::proxies;
use crate::config::ConfigProblems;
use crate::config::config_reader::ConfigReader;
use crate::config::file::ConfigValues;

/// Address of the side port; problems with other settings are ignored.
pub fn side_port(written: &ConfigValues) -> Result<SocketAddr, ConfigProblems> {
    let mut reading = ConfigReader::of(written);
    let address = reading.address("admin.listen");
    reading.done(address)
}

/// `trusted_proxies`: proxies, whose connections carry requests of many clients.
pub(in crate::config) fn read(
    reading: &mut ConfigReader<'_>,
    trusted_proxies: &Networks,
) -> ServerConfig {
    let deadlines = Deadlines {
        head: reading.duration("server.head_timeout"),
        idle: reading.duration("server.idle_timeout"),
        request: reading.duration("server.request_timeout"),
        write: reading.duration("server.write_timeout"),
        age: reading.duration("server.max_connection_age"),
    };
    ServerConfig {
        max_connections: reading.number("server.max_connections"),
        max_per_address: reading.number("server.max_connections_per_address"),
        max_per_application: reading.number("server.max_connections_per_application"),
        connection: ConnectionConfig {
            deadlines,
            tls: None,
            proxy_protocol: proxies::networks(reading, "proxies.proxy_protocol"),
            trusted_proxies: trusted_proxies.clone(),
        },
        shutdown_delay: shutdown_delay(reading),
        shutdown_timeout: reading.duration("server.shutdown_timeout"),
    }
}
fn shutdown_delay(reading: &mut ConfigReader<'_>) -> Duration {
    let path = "server.shutdown_delay";
    if reading.maybe(path).is_none() {
        Duration::ZERO
    } else {
        reading.duration(path)
    }
}
