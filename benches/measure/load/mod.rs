//! Open-loop load test: request rates are fixed in advance, so that a stalled server cannot hide it.
//!
//! `cargo bench --bench measure -- load` runs every profile in a small size against its own gateway, in half a minute; this shows that
//! the profiles work and measures little. `SCOREGATE_FULL=1` runs the full size. `-- load --help` lists
//! the options for another gateway. No figure fails the test. The cost of one request is measured by `costs`.

mod client;
mod drive;
mod fake_backend;
mod gateway_under_test;
mod options;
mod own_gateway;
mod picture;
mod plan;
mod profiles;
mod proof;
mod record;
mod report;
mod schedule;
mod verdict;

use clap::{Parser as _, ValueEnum as _};

use self::options::{Options, Profile};
use self::profiles::{ProfileRunner, Size};
use self::verdict::ProfileReport;

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

pub(crate) fn run(arguments: &[String]) {
    let name = String::from("load");
    let options = Options::parse_from(std::iter::once(&name).chain(arguments));
    match play(&options) {
        Ok(is_well) => assert!(is_well, "a profile had wrong outcomes; they are above"),
        Err(error) => panic!("{error}"),
    }
}

/// Runs the profiles; false if any failed.
fn play(options: &Options) -> Result<bool, String> {
    let is_full = std::env::var("SCOREGATE_FULL").is_ok_and(|value| value == "1");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    if !is_full && options.profile.is_empty() && options.address.is_none() {
        proof::prove(&runtime);
    }
    let size = size(options, is_full);
    let mut is_well = true;
    for profile in wanted(options)? {
        let report = ProfileRunner {
            runtime: &runtime,
            options,
            size,
        }
        .play(profile);
        is_well &= leave(
            options,
            &report.map_err(|error| format!("{}: {error}", profile.word()))?,
        )?;
    }
    if options.profile.is_empty() && options.address.is_none() && !options.tls {
        // The other protocols, as long as needed to see that they work.
        let mut options = options.clone();
        (options.h2, options.tls) = (true, true);
        let stage = ProfileRunner {
            runtime: &runtime,
            options: &options,
            size,
        };
        let mut report = stage.play(Profile::Steady)?;
        report.name.push_str("-h2-tls");
        is_well &= leave(&options, &report)?;
    }
    println!("\nreports and charts are in {}", options.out.display());
    Ok(is_well)
}

/// The given options, else the defaults of the size.
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

/// The requested profiles; with --address, those that need no own gateway.
fn wanted(options: &Options) -> Result<Vec<Profile>, String> {
    let is_possible = |profile: &Profile| options.address.is_none() || !profile.needs_own_gateway();
    let all = Profile::value_variants();
    let (possible, impossible): (Vec<Profile>, Vec<Profile>) =
        all.iter().partition(|profile| is_possible(profile));
    let impossible: Vec<String> = impossible.into_iter().map(Profile::word).collect();
    if let Some(profile) = options.profile.iter().find(|profile| !is_possible(profile)) {
        return Err(format!(
            "profile {} needs the test's own gateway: remove --address",
            profile.word()
        ));
    }
    if options.profile.is_empty() && !impossible.is_empty() {
        println!(
            "skipped with --address: {}; they need the test's own gateway",
            impossible.join(", ")
        );
    }
    Ok(if options.profile.is_empty() {
        possible
    } else {
        options.profile.clone()
    })
}

/// Prints the result and writes the reports; false if the profile failed.
fn leave(options: &Options, report: &ProfileReport) -> Result<bool, String> {
    print!("{}", report::text(report));
    let unwritable = |error: std::io::Error| format!("{}: {error}", options.out.display());
    std::fs::create_dir_all(&options.out).map_err(unwritable)?;
    let file = |ending: &str| options.out.join(format!("{}.{ending}", report.name));
    let json = serde_json::to_vec_pretty(&report::json(report))
        .expect("texts and numbers always make JSON");
    std::fs::write(file("json"), json).map_err(unwritable)?;
    std::fs::write(file("svg"), picture::svg(report)).map_err(unwritable)?;
    Ok(report.wrong.is_empty())
}
