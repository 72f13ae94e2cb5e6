//! Command-line options: `cargo bench --bench measure -- load --help`.

use clap::{Parser, ValueEnum};

/// Open-loop load test: sends requests to a gateway at fixed rates and reports latencies and outcomes.
///
/// Latency is measured from the time a request was due, so a stalled server cannot hide it. Without --profile all profiles
/// run. It fails only for results that are wrong on any machine: unexpected statuses, truncated responses, refused
/// connections.
#[derive(Clone, Debug, Parser)]
#[command(name = "load", disable_version_flag = true)]
pub struct Options {
    /// Profiles to run, in order; default: all.
    #[arg(long, value_enum)]
    pub profile: Vec<Profile>,
    /// Requests per second; for `stepped`, of the first step.
    #[arg(long)]
    pub rate: Option<f64>,
    /// Duration of each profile without its warm-up; for `stepped`, of each step.
    #[arg(long)]
    pub seconds: Option<f64>,
}

/// Load profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Profile {
    /// Constant rate
    Steady,
    /// Increasing rates, until the p99 degrades
    Stepped,
    /// All documents become due for a refresh in the same second
    HourChange,
    /// The backend hangs, then fails, for a third of the time
    Outage,
    /// One key sends 50 times its limit, beside normal traffic
    AbusiveKey,
    /// Unknown keys at several times the rate, beside normal traffic
    KeyFlood,
    /// A new process takes over the listening socket halfway
    Deploy,
    /// Constant rate for a long time; memory before and after
    Soak,
}

impl Profile {
    /// The name on the command line and in the report.
    pub fn word(self) -> String {
        let value = self.to_possible_value().expect("none is skipped");
        value.get_name().to_owned()
    }
}
