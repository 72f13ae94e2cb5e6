//! Command-line options: `cargo bench --bench measure -- load --help`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// Open-loop load test: sends requests to a gateway at fixed rates and reports latencies and outcomes.
///
/// Latency is measured from the instant a request was due, so a stalled server cannot hide it. Without --address the test
/// starts its own gateway, keys and backend on free ports; without --profile it runs all profiles. It fails only for
/// results that are wrong on any machine: unexpected statuses, truncated responses, refused connections.
#[derive(Clone, Debug, Parser)]
#[command(name = "load", disable_version_flag = true)]
pub(crate) struct Options {
    /// Profiles to run, in order; default: all.
    #[arg(long, value_enum)]
    pub(crate) profile: Vec<Profile>,
    /// Requests per second; for `stepped`, of the first step.
    #[arg(long, value_parser = above_nothing)]
    pub(crate) rate: Option<f64>,
    /// Rates of `stepped`, such as 500,1000,1500; default: each step doubles the rate.
    #[arg(long, value_delimiter = ',', value_parser = above_nothing)]
    pub(crate) rates: Vec<f64>,
    /// Duration of each profile without its warm-up; for `stepped`, of each step.
    #[arg(long, value_parser = above_nothing)]
    pub(crate) seconds: Option<f64>,
    /// Duration of the warm-up, which is not measured.
    #[arg(long, value_parser = above_nothing)]
    pub(crate) warm_up: Option<f64>,
    /// The gateway under test, such as `http://127.0.0.1:8080` or `https://staging.example.org`. Its operator has to
    /// agree. Requires --keys.
    #[arg(long, requires = "keys")]
    pub(crate) address: Option<String>,
    /// File of API keys, one per line; with --tiers, followed by a space and the tier.
    #[arg(long)]
    pub(crate) keys: Option<PathBuf>,
    /// Weights of the tiers, such as free=6,pro=3,enterprise=1; default: the number of keys of each.
    #[arg(long, value_parser = shares)]
    pub(crate) tiers: Option<BTreeMap<String, f64>>,
    /// Zipf exponent of the popularity of documents; 0 for a uniform distribution.
    #[arg(long, default_value_t = 1.0, value_parser = not_negative)]
    pub(crate) zipf_documents: f64,
    /// Zipf exponent of the activity of keys within a tier.
    #[arg(long, default_value_t = 1.0, value_parser = not_negative)]
    pub(crate) zipf_keys: f64,
    /// Share of requests that send If-None-Match with the last `ETag` received.
    #[arg(long, default_value_t = 0.3, value_parser = share)]
    pub(crate) conditional: f64,
    /// Use HTTP/2: with prior knowledge without TLS, by ALPN with it.
    #[arg(long)]
    pub(crate) h2: bool,
    /// Use TLS with the gateway that the test starts; with --address, use an https URL instead.
    #[arg(long, conflicts_with = "address")]
    pub(crate) tls: bool,
    /// PEM file of trusted certificate authorities, in place of the public ones.
    #[arg(long, requires = "address")]
    pub(crate) ca: Option<String>,
    /// Maximum number of connections; default: 64, with HTTP/2 4. The wait for a free one is part of a latency.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) connections: Option<u16>,
    /// Concurrent streams per HTTP/2 connection.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) streams: u16,
    /// Timeout of a request in seconds, from the instant it was due.
    #[arg(long, default_value_t = 10.0, value_parser = above_nothing)]
    pub(crate) timeout: f64,
    /// Seed of the random choice of documents and keys.
    #[arg(long, default_value_t = 7)]
    pub(crate) seed: u64,
    /// Directory for the reports: JSON and an SVG chart per profile.
    #[arg(long, default_value = concat!(env!("CARGO_TARGET_TMPDIR"), "/load"), hide_default_value = true)]
    pub(crate) out: PathBuf,
}

/// Load profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Profile {
    /// Constant rate
    Steady,
    /// Increasing rates, until the p99 degrades
    Stepped,
    /// All documents become due for a refresh in the same second (own gateway only)
    HourChange,
    /// The backend hangs, then fails, for a third of the time (own gateway only)
    Outage,
    /// One key sends 50 times its limit, beside normal traffic
    AbusiveKey,
    /// Unknown keys at several times the rate, beside normal traffic
    KeyFlood,
    /// A new process takes over the listening socket halfway (own gateway only)
    Deploy,
    /// Constant rate for a long time; memory before and after
    Soak,
}

impl Profile {
    /// Whether the profile controls the gateway process or its backend.
    pub(crate) fn needs_own_gateway(self) -> bool {
        match self {
            Self::HourChange | Self::Outage | Self::Deploy => true,
            Self::Steady | Self::Stepped | Self::AbusiveKey | Self::KeyFlood | Self::Soak => false,
        }
    }

    /// The name on the command line and in file names.
    pub(crate) fn word(self) -> String {
        let value = self.to_possible_value().expect("none is skipped");
        value.get_name().to_owned()
    }
}

fn above_nothing(text: &str) -> Result<f64, String> {
    let number = text
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "write a number above 0".into())
}

fn not_negative(text: &str) -> Result<f64, String> {
    let number = text
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "write a number of at least 0".into())
}

fn share(text: &str) -> Result<f64, String> {
    let number = not_negative(text).ok().filter(|number| *number <= 1.0);
    number.ok_or_else(|| "write a number from 0 to 1".into())
}

fn shares(text: &str) -> Result<BTreeMap<String, f64>, String> {
    let one = |part: &str| {
        let (tier, weight) = part.split_once('=')?;
        Some((tier.to_owned(), above_nothing(weight).ok()?))
    };
    let read: Option<_> = text.split(',').map(one).collect();
    read.ok_or_else(|| "write tiers and their weights, such as free=6,pro=3".into())
}
