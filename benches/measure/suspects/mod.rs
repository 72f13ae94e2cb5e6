//! The judgement on evidence of use, on simulated months of honest and dishonest clients.
//!
//! `cargo bench --bench measure -- suspects` is small; `SCOREGATE_FULL=1` uses 20 seeds with 2,000 honest applications each. A
//! number after it is the first seed: 1 to 80 are those on which the rules were chosen. The figures are the same on
//! every machine.
//! It fails if the judgement errs more often than it may.

mod gateways;
mod kinds;
mod mirrors;
mod month;
mod people;
mod population;
mod random;
mod requests;
mod scheduled;
mod table;
mod visited;

use scoregate_base::evidence::judgement::SuspectRules;

use month::{JudgedMonth, month};

/// The first of the seeds that are reported.
const REPORTED_SEEDS: u64 = 101;

pub fn run(parts: &[String]) {
    let first = parts
        .first()
        .map_or(REPORTED_SEEDS, |seed| seed.parse().unwrap());
    let is_full = std::env::var_os("SCOREGATE_FULL").is_some();
    let (seeds, honest, days) = if is_full {
        (20, 2_000, 30)
    } else {
        (2, 300, 7)
    };
    let rules = SuspectRules::default();
    println!("{rules:?}");
    let large = if is_full { 2 } else { 0 };
    for (models, seeds) in [(150, seeds), (1_000, large)]
        .into_iter()
        .filter(|(_, seeds)| *seeds > 0)
    {
        let seeds = first..first + seeds;
        println!(
            "\n{models} models, seeds {seeds:?}, {days} days, {honest} honest applications for each seed"
        );
        let months: Vec<JudgedMonth> = seeds
            .map(|seed| month(seed, models, honest, days, &rules))
            .collect();
        let failures = table::print(&months);
        assert!(failures.is_empty(), "{failures:#?}");
    }
}
