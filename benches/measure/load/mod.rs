//! Open-loop load test: request rates are fixed in advance, so that a stalled server cannot hide it.
//!
//! `cargo bench --bench measure -- load` runs every profile in a small size, in half a minute; this shows that the profiles work
//! and measures little. `SCOREGATE_FULL=1` runs the full size. No figure fails the test. The cost of one request is measured
//! by `costs`.

mod client;
mod drive;
mod fake_backend;
mod gateway_under_test;
mod options;
mod own_gateway;
mod plan;
mod profiles;
mod proof;
mod record;
mod schedule;
mod verdict;

use clap::{Parser as _, ValueEnum as _};

use self::{
    options::{Options, Profile},
    profiles::{ProfileRunner, Size},
};

const SMALL: Size = Size {
    rate: 100.0,
    seconds: 1.5,
    soak_seconds: 1.5,
    step_seconds: 0.5,
    warm_up: 0.5,
    keys: 40,
    most_steps: 3,
};
const FULL: Size = Size {
    rate: 1_000.0,
    seconds: 60.0,
    soak_seconds: 600.0,
    step_seconds: 10.0,
    // Until most keys have been used: the first use of a key waits for its lease.
    warm_up: 20.0,
    keys: 1_000,
    most_steps: 10,
};

pub fn run(arguments: &[String]) {
    let name = String::from("load");
    let options = Options::parse_from(std::iter::once(&name).chain(arguments));
    let is_full = std::env::var("SCOREGATE_FULL").is_ok_and(|value| value == "1");
    if !is_full && options.profile.is_empty() {
        proof::prove();
    }
    let runner = ProfileRunner {
        size: size(&options, is_full),
    };
    let profiles = if options.profile.is_empty() {
        Profile::value_variants()
    } else {
        &options.profile
    };
    let mut is_well = true;
    for profile in profiles {
        let report = runner.play(*profile);
        report.print();
        is_well &= report.wrong.is_empty();
    }
    assert!(is_well, "a profile had wrong outcomes; they are above");
}

/// The given options, else the defaults of the size.
fn size(options: &Options, is_full: bool) -> Size {
    let usual = if is_full { FULL } else { SMALL };
    Size {
        rate: options.rate.unwrap_or(usual.rate),
        seconds: options.seconds.unwrap_or(usual.seconds),
        soak_seconds: options.seconds.unwrap_or(usual.soak_seconds),
        step_seconds: options.seconds.unwrap_or(usual.step_seconds),
        ..usual
    }
}
