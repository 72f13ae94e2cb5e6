//! The judgement on evidence of use, on a simulated month of honest and dishonest clients.
//!
//! `cargo bench --bench measure -- suspects` is small; `SCOREGATE_FULL=1` uses 20 seeds with 2,000 honest applications each. The
//! figures are the same on every machine.

mod gateways;
mod kinds;
mod mirrors;
mod month;
mod people;
mod population;
mod random;
mod requests;
mod scheduled;
mod visited;

use kinds::{KINDS, Stance};
use month::{SimulatedDay, month};

/// The size of a simulation.
struct SimulationSize {
    seeds: std::ops::Range<u64>,
    honest: usize,
    days: usize,
}

pub(crate) fn run() {
    let size = if std::env::var_os("SCOREGATE_FULL").is_some() {
        SimulationSize { seeds: 101..121, honest: 2_000, days: 30 }
    } else {
        SimulationSize { seeds: 101..103, honest: 300, days: 8 }
    };
    for models in [150, 1_000] {
        let days: Vec<SimulatedDay> =
            size.seeds.clone().flat_map(|seed| month(seed, models, size.honest, size.days)).collect();
        println!("\n{models} models, {} seeds, {} days", size.seeds.clone().count(), size.days);
        println!(
            "{:>27} {:>7} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}",
            "", "days", "delivered", "repeated", "limited", "hour %", "day %", "networks", "products"
        );
        for kind in &KINDS {
            print_kind(kind.name, &days);
            if kind.stance == Stance::Honest {
                assert_shares(kind.name, &days);
            }
        }
    }
}

/// Honest clients request at most 30 % of the models in an hour, with an allowance for positions that models share.
fn assert_shares(name: &str, days: &[SimulatedDay]) {
    for day in days.iter().filter(|day| day.kind.name == name) {
        let most = day.hour_shares().fold(0.0, f64::max);
        assert!(most < 0.37, "{name}: {most}");
    }
}

/// Medians over the days with requests; shares, networks and products are those of the largest hour.
fn print_kind(name: &str, days: &[SimulatedDay]) {
    let of_kind: Vec<&SimulatedDay> =
        days.iter().filter(|day| day.kind.name == name && day.is_used()).collect();
    let median = |value: &dyn Fn(&SimulatedDay) -> f64| {
        let mut values: Vec<f64> = of_kind.iter().map(|day| value(day)).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or_default()
    };
    println!(
        "{name:>27} {:>7} {:>9.0} {:>8.0} {:>8.0} {:>8.0} {:>8.0} {:>8.0} {:>8.0}",
        of_kind.len(),
        median(&|day| f64::from(day.evidence.counts.delivered)),
        median(&|day| f64::from(day.evidence.repeated)),
        median(&|day| f64::from(day.evidence.counts.limited)),
        median(&|day| 100.0 * day.hour_shares().fold(0.0, f64::max)),
        median(&|day| 100.0 * day.evidence.share()),
        median(&|day| day.evidence.hours.iter().map(|hour| f64::from(hour.networks)).fold(0.0, f64::max)),
        median(&|day| day.evidence.hours.iter().map(|hour| f64::from(hour.agents)).fold(0.0, f64::max)),
    );
}
