//! How a gateway holds under load: rates that are fixed in advance, so that a server which stalls cannot hide it.
//!
//! `cargo bench --bench load` plays every profile small against a gateway of its own, in about a minute, which says little
//! but that all of it works; `SCOREGATE_FULL=1` plays them for real. `cargo bench --bench load -- --help` says how another
//! gateway is asked. It passes or fails by no figure. Not for: what one request costs (`costs`).

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    reason = "a bench prints what it measured, reads the machine's clock and may end where something is not as it should be"
)]

mod client;
mod drive;
mod fake;
mod house;
mod options;
mod own;
mod picture;
mod plan;
mod profiles;
mod proof;
mod record;
mod report;
mod schedule;
mod verdict;

use std::process::ExitCode;

use clap::{Parser as _, ValueEnum as _};

use options::{Options, Profile};
use profiles::{Size, Stage};
use verdict::Seen;

const SMALL: Size = Size {
    rate: 100.0,
    seconds: 3.0,
    soak_seconds: 3.0,
    step_seconds: 1.0,
    warm_up: 0.5,
    keys: 40,
    most_steps: 3,
};
const FULL: Size = Size {
    rate: 1_000.0,
    seconds: 60.0,
    soak_seconds: 600.0,
    step_seconds: 10.0,
    // Until most keys have been used: the first use of each waits for its lease.
    warm_up: 20.0,
    keys: 1_000,
    most_steps: 10,
};

fn main() -> ExitCode {
    let options = Options::parse();
    match play(&options) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("load: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether nothing was wrong.
fn play(options: &Options) -> Result<bool, String> {
    let is_full = std::env::var("SCOREGATE_FULL").is_ok_and(|value| value == "1");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    if !is_full && options.profile.is_empty() && options.address.is_none() {
        proof::prove(&runtime);
    }
    let size = size(options, is_full);
    let mut is_well = true;
    for profile in wanted(options)? {
        let seen = Stage { runtime: &runtime, options, size }.play(profile);
        is_well &= leave(options, &seen.map_err(|error| format!("{}: {error}", profile.word()))?)?;
    }
    if options.profile.is_empty() && options.address.is_none() && !options.tls {
        // The other ways to speak, for as long as it takes to see that they work.
        let mut options = options.clone();
        (options.h2, options.tls) = (true, true);
        let stage = Stage { runtime: &runtime, options: &options, size };
        let mut seen = stage.play(Profile::Steady)?;
        seen.name.push_str("-h2-tls");
        is_well &= leave(&options, &seen)?;
    }
    println!("\nreports and pictures are in {}", options.out.display());
    Ok(is_well)
}

/// What is said, and else what is usual for the size.
fn size(options: &Options, is_full: bool) -> Size {
    let usual = if is_full { FULL } else { SMALL };
    Size {
        rate: options.rate.unwrap_or(usual.rate),
        seconds: options.seconds.unwrap_or(usual.seconds),
        soak_seconds: options.seconds.unwrap_or(usual.soak_seconds),
        step_seconds: options.seconds.unwrap_or(usual.step_seconds),
        warm_up: options.warm_up.unwrap_or(usual.warm_up),
        ..usual
    }
}

/// The profiles that are asked for; at an address, those that need nothing of the gateway's inside.
fn wanted(options: &Options) -> Result<Vec<Profile>, String> {
    let is_possible = |profile: &Profile| options.address.is_none() || !profile.needs_the_inside();
    let all = Profile::value_variants();
    let (possible, impossible): (Vec<Profile>, Vec<Profile>) =
        all.iter().partition(|profile| is_possible(profile));
    let impossible: Vec<String> = impossible.into_iter().map(Profile::word).collect();
    if let Some(profile) = options.profile.iter().find(|profile| !is_possible(profile)) {
        return Err(format!("{} takes a gateway of the bench's own: leave --address out", profile.word()));
    }
    if options.profile.is_empty() && !impossible.is_empty() {
        println!(
            "at an address {} cannot be played: they take the gateway into their hands",
            impossible.join(", ")
        );
    }
    Ok(if options.profile.is_empty() { possible } else { options.profile.clone() })
}

/// Prints what was seen and leaves the reports; whether nothing was wrong.
fn leave(options: &Options, seen: &Seen) -> Result<bool, String> {
    print!("{}", report::text(seen));
    let unwritable = |error: std::io::Error| format!("{}: {error}", options.out.display());
    std::fs::create_dir_all(&options.out).map_err(unwritable)?;
    let file = |ending: &str| options.out.join(format!("{}.{ending}", seen.name));
    let json = serde_json::to_vec_pretty(&report::json(seen)).expect("texts and numbers always make JSON");
    std::fs::write(file("json"), json).map_err(unwritable)?;
    std::fs::write(file("svg"), picture::svg(seen)).map_err(unwritable)?;
    Ok(seen.wrong.is_empty())
}
