//! What can be said on the command line: `cargo bench --bench load -- --help`. Not for: what follows from it (`profiles`).

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// Asks a gateway at rates that are fixed in advance, and reports how it held.
///
/// Latencies are counted from the instant a request was due, so a server that stalls cannot hide it. Without --address it
/// starts a gateway of its own on free ports, with keys and a backend of its own; without --profile it plays them all.
/// It fails only by what has to hold on any machine: statuses nobody should see, answers cut off, connections refused.
#[derive(Clone, Debug, Parser)]
#[command(name = "load", disable_version_flag = true)]
pub(crate) struct Options {
    /// What is played; several are played one after the other. All if nothing is said.
    #[arg(long, value_enum)]
    pub(crate) profile: Vec<Profile>,
    /// Requests a second; for `stepped` those of the first step.
    #[arg(long, value_parser = above_nothing)]
    pub(crate) rate: Option<f64>,
    /// The rates of `stepped`, in place of doubling: 500,1000,1500.
    #[arg(long, value_delimiter = ',', value_parser = above_nothing)]
    pub(crate) rates: Vec<f64>,
    /// How long each profile lasts, without the warm-up; for `stepped` each step.
    #[arg(long, value_parser = above_nothing)]
    pub(crate) seconds: Option<f64>,
    /// How long it is asked before anything counts.
    #[arg(long, value_parser = above_nothing)]
    pub(crate) warm_up: Option<f64>,
    /// The gateway that is asked, such as `http://127.0.0.1:8080` or `https://staging.example.org`. Whoever runs it
    /// has to know. Then --keys is needed.
    #[arg(long, requires = "keys")]
    pub(crate) address: Option<String>,
    /// A file of keys, a line each, with the name of its tier after a space where --tiers is used.
    #[arg(long)]
    pub(crate) keys: Option<PathBuf>,
    /// How many requests each tier has: free=6,pro=3,enterprise=1. If nothing is said, as many as it has keys.
    #[arg(long, value_parser = shares)]
    pub(crate) tiers: Option<BTreeMap<String, f64>>,
    /// How much more the popular documents are asked for: the exponent of Zipf's law, 0 for all alike.
    #[arg(long, default_value_t = 1.0, value_parser = not_negative)]
    pub(crate) zipf_documents: f64,
    /// The same for the keys of a tier.
    #[arg(long, default_value_t = 1.0, value_parser = not_negative)]
    pub(crate) zipf_keys: f64,
    /// The share of requests that send If-None-Match with the last tag they were given.
    #[arg(long, default_value_t = 0.3, value_parser = share)]
    pub(crate) conditional: f64,
    /// Speak HTTP/2: in the clear by prior knowledge, over TLS by ALPN.
    #[arg(long)]
    pub(crate) h2: bool,
    /// Speak TLS with the gateway it starts. An --address says it by https.
    #[arg(long, conflicts_with = "address")]
    pub(crate) tls: bool,
    /// Trust the authorities in this PEM file in place of the web's: for a certificate that staging has signed itself.
    #[arg(long, requires = "address")]
    pub(crate) ca: Option<String>,
    /// Connections at most: 64, or 4 of HTTP/2. A request that finds none free waits, and its latency counts that.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) connections: Option<u16>,
    /// Requests at once on each connection of HTTP/2.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) streams: u16,
    /// After so many seconds from when it was due, a request is given up as too late.
    #[arg(long, default_value_t = 10.0, value_parser = above_nothing)]
    pub(crate) patience: f64,
    /// What is asked is drawn by this: the same seed asks the same.
    #[arg(long, default_value_t = 7)]
    pub(crate) seed: u64,
    /// Where the reports are left, as JSON and as a picture for each profile.
    #[arg(long, default_value = concat!(env!("CARGO_TARGET_TMPDIR"), "/load"), hide_default_value = true)]
    pub(crate) out: PathBuf,
    /// Cargo says it to every bench.
    #[arg(long, hide = true)]
    bench: bool,
}

/// What can be played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Profile {
    /// One rate
    Steady,
    /// Growing rates, to where the p99 breaks
    Stepped,
    /// Every document is due for its refresh in the same second (own gateway only)
    HourChange,
    /// The backend hangs, then fails, for a third of the time (own gateway only)
    Outage,
    /// One key asks at 50 times its limit beside the others
    AbusiveKey,
    /// Keys that nobody has, at several times the rate, beside those that exist
    KeyFlood,
    /// Another process takes over the socket in the middle (own gateway only)
    Deploy,
    /// One rate for long, and what the process holds at its end
    Soak,
}

impl Profile {
    /// Whether it takes a gateway, or its backend, into its hands.
    pub(crate) fn needs_the_inside(self) -> bool {
        match self {
            Self::HourChange | Self::Outage | Self::Deploy => true,
            Self::Steady | Self::Stepped | Self::AbusiveKey | Self::KeyFlood | Self::Soak => false,
        }
    }

    /// Its word on the command line and in the names of files.
    pub(crate) fn word(self) -> String {
        let value = self.to_possible_value().expect("none is skipped");
        value.get_name().to_owned()
    }
}

fn above_nothing(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "write a number above 0".into())
}

fn not_negative(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.ok_or_else(|| "write a number that is not below 0".into())
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
