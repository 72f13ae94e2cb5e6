//! Everything that is measured besides `hot_path` and `peers`, in one program: each bench links the whole gateway, which
//! takes longer than most measurements.
//!
//! `cargo bench --bench measure` runs all of them at their small size, each in a process of its own; `-- NAME` runs one, with
//! its own arguments after the name.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::format_push_string,
    clippy::format_collect,
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    reason = "a bench prints what it measured, reads the machine's clock and may end where something is not as it should be"
)]

mod costs;
mod coverage;
mod detection;
mod gateway_process;
mod generator;
mod ledger;
mod load;
mod ranks;
mod scoring;
mod site_attack;
mod suspects;
mod tls_attack;

use std::{
    process::{Command, ExitCode},
    time::Instant,
};

/// Measures with these arguments. Panics if an outcome was wrong.
type Measurement = fn(&[String]);

const MEASUREMENTS: [(&str, Measurement); 10] = [
    ("costs", |_| costs::run()),
    ("coverage", |_| coverage::run()),
    ("detection", |_| detection::run()),
    ("ledger", ledger::run),
    ("load", load::run),
    ("ranks", |_| ranks::run()),
    ("scoring", |_| scoring::run()),
    ("site_attack", site_attack::run),
    ("suspects", suspects::run),
    ("tls_attack", tls_attack::run),
];

fn main() -> ExitCode {
    // Cargo passes `--bench` to every bench.
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|argument| argument != "--bench")
        .collect();
    let Some((wanted, rest)) = arguments.split_first() else {
        let is_well = MEASUREMENTS.iter().all(|(name, _)| runs_alone(name));
        return if is_well {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        };
    };
    let Some((_, run)) = MEASUREMENTS.iter().find(|(name, _)| name == wanted) else {
        let names = MEASUREMENTS.map(|(name, _)| name).join(", ");
        eprintln!("there is no measurement {wanted}; there are: {names}");
        return ExitCode::FAILURE;
    };
    run(rest);
    ExitCode::SUCCESS
}

/// Runs a measurement in a process of its own, so that none has the memory of another.
fn runs_alone(name: &str) -> bool {
    println!("\n== {name}");
    let started = Instant::now();
    let status = Command::new(std::env::current_exe().unwrap())
        .arg(name)
        .status()
        .unwrap();
    println!("== {name}: {status} after {:.1?}", started.elapsed());
    status.success()
}
