//! Detection delays and false alarms of the detectors on seeded series, as a table.
//!
//! `cargo bench --bench detection` is small; `SCOREGATE_FULL=1` uses 1,000 series per line. The figures are the same
//! on every machine.

#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

use scoregate::scoring::METHOD_VERSION;
use scoregate::scoring::detection::{Detector, Findings, MODELS, Scenario, WATCHED_HOURS, evaluate};

const NOISES: [f64; 3] = [1.0, 1.5, 3.0];
const SCENARIOS: [(&str, Scenario); 5] = [
    ("a step of 2 points", Scenario::Step(2.0)),
    ("a step of 3 points", Scenario::Step(3.0)),
    ("a step of 5 points", Scenario::Step(5.0)),
    ("a step of 8 points", Scenario::Step(8.0)),
    ("6 points in 10 days", Scenario::Ramp(6.0, 240)),
];

fn main() {
    let series = if std::env::var_os("SCOREGATE_FULL").is_some() { 1_000 } else { 10 };
    let days = WATCHED_HOURS / 24;
    println!(
        "method {METHOD_VERSION}; {series} series a line, each watched for {days} days, of {MODELS} models"
    );
    println!("\nquiet series: alarms for each month of one model");
    println!("{:>22} {:>8} {:>10} {:>10} {:>10}", "", "noise", "drift", "incident", "alert");
    for noise in NOISES {
        let [drift, incident, alert] =
            evaluate(Scenario::Quiet, noise, series).map(|f| f64::from(f.alarms) / f64::from(series));
        println!("{:>22} {noise:>8.1} {drift:>10.4} {incident:>10.4} {alert:>10.4}", "quiet");
    }
    println!("\nplanted falls: share found, median and 95th percentile of the delay in rounds");
    let [drift, incident, alert] = Detector::ALL.map(|detector| format!("{detector:?}").to_lowercase());
    println!("{:>22} {:>8} {drift:>16} {incident:>16} {alert:>16}", "", "noise");
    for (name, scenario) in SCENARIOS {
        for noise in NOISES {
            let [drift, incident, alert] =
                evaluate(scenario, noise, series).map(|findings| shown(&findings, series));
            println!("{name:>22} {noise:>8.1} {drift:>16} {incident:>16} {alert:>16}");
        }
    }
}

fn shown(findings: &Findings, series: u32) -> String {
    let delay = |share| findings.delay(share).map_or_else(|| "-".to_owned(), |rounds| rounds.to_string());
    format!("{:.3} {:>4} {:>4}", f64::from(findings.found()) / f64::from(series), delay(0.5), delay(0.95))
}
