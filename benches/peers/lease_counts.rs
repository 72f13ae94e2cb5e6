//! Leases and delivered units of a gateway, as its metrics count them: how many requests of a measurement needed the ledger.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
};

/// Counts since the start.
#[derive(Clone, Copy)]
pub struct LeaseCounts {
    leases: f64,
    delivered: f64,
}

impl LeaseCounts {
    /// Those of the gateway with this side port.
    pub fn read(side: SocketAddr) -> Self {
        let mut stream = TcpStream::connect(side).unwrap();
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let sample = |name: &str, label: &str| -> f64 {
            let of_series = |line: &&str| line.starts_with(name) && line.contains(label);
            text.lines()
                .find(of_series)
                .and_then(|line| line.rsplit(' ').next())
                .unwrap()
                .parse()
                .unwrap()
        };
        Self {
            leases: sample(
                "scoregate_store_duration_seconds_count{",
                "operation=\"lease\"",
            ),
            delivered: sample("scoregate_quota_units_total{", "use=\"delivered\""),
        }
    }

    /// Leases per delivered unit since then, in per cent.
    pub fn share_since(self, before: Self) -> f64 {
        100.0 * (self.leases - before.leases) / (self.delivered - before.delivered).max(1.0)
    }
}
