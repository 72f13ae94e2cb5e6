//! Detection delays and false alarms of the detectors on seeded series, as a table.
//!
//! `cargo bench --bench measure -- detection` is small; `SCOREGATE_FULL=1` uses 1,000 series per line. The figures are the same
//! on every machine.

use scoregate_scoring::{
    METHOD_VERSION,
    lab::detection::{
        Detector, FEW_MODELS, Findings, MODELS, NoiseKind, Scenario, SeriesPlan, WATCHED_HOURS,
        evaluate,
    },
};

const QUIET: [(&str, NoiseKind, f64); 14] = [
    ("white", NoiseKind::White, 1.0),
    ("white", NoiseKind::White, 1.5),
    ("white", NoiseKind::White, 3.0),
    ("t, 3 degrees", NoiseKind::HeavyTailed, 1.5),
    ("AR 0.3", NoiseKind::Autoregressive(0.3), 1.5),
    ("AR 0.5", NoiseKind::Autoregressive(0.5), 1.5),
    ("AR 0.8", NoiseKind::Autoregressive(0.8), 1.5),
    ("AR 0.9", NoiseKind::Autoregressive(0.9), 1.5),
    ("AR 0.95", NoiseKind::Autoregressive(0.95), 1.5),
    ("weekly cycle ±2", NoiseKind::WeeklyCycle(2.0), 1.5),
    ("daily cycle ±2", NoiseKind::DailyCycle(2.0), 1.5),
    ("2 % of -20", NoiseKind::Outliers(0.02, 20.0), 1.5),
    ("sd by day", NoiseKind::ChangingByDay, 1.5),
    ("98 %, 5 trials", NoiseKind::PassRate(0.98, 5), 0.0),
];
const CHANGES: [(&str, Scenario); 6] = [
    ("a step of 2 points", Scenario::Step(2.0)),
    ("a step of 3 points", Scenario::Step(3.0)),
    ("a step of 5 points", Scenario::Step(5.0)),
    ("a step of 8 points", Scenario::Step(8.0)),
    ("a step of 12 points", Scenario::Step(12.0)),
    ("6 points in 240 rounds", Scenario::Ramp(6.0, 240)),
];
const LONG_ROUNDS: [u32; 2] = [6, 24];
/// Their standard deviation, and the share of rounds that are missing.
const NOISES: [(&str, NoiseKind, f64, f64); 10] = [
    ("white", NoiseKind::White, 1.0, 0.0),
    ("white", NoiseKind::White, 1.5, 0.0),
    ("white", NoiseKind::White, 3.0, 0.0),
    ("t, 3 degrees", NoiseKind::HeavyTailed, 1.5, 0.0),
    ("AR 0.5", NoiseKind::Autoregressive(0.5), 1.5, 0.0),
    ("AR 0.8", NoiseKind::Autoregressive(0.8), 1.5, 0.0),
    ("weekly cycle ±2", NoiseKind::WeeklyCycle(2.0), 1.5, 0.0),
    ("daily cycle ±2", NoiseKind::DailyCycle(2.0), 1.5, 0.0),
    ("20 % missing", NoiseKind::White, 1.5, 0.2),
    ("1 % of -20", NoiseKind::Outliers(0.01, 20.0), 1.5, 0.0),
];

pub fn run() {
    let series = if std::env::var_os("SCOREGATE_FULL").is_some() {
        1_000
    } else {
        3
    };
    let days = WATCHED_HOURS / 24;
    println!("method {METHOD_VERSION}; {series} series a line, each watched for {days} days");
    for hours in [1].into_iter().chain(LONG_ROUNDS) {
        println!(
            "\nquiet series, rounds of {hours} h: alarms for each month of one model, of {FEW_MODELS} models"
        );
        println!(
            "{:>22} {:>16} {:>6} {:>10} {:>10} {:>10}",
            "", "noise", "sd", "drift", "incident", "alert"
        );
        for (name, noise, deviation) in QUIET {
            let plan = SeriesPlan {
                scenario: Scenario::Quiet,
                noise,
                deviation,
                hours,
                missing: 0.0,
                series,
            };
            let [drift, incident, alert] =
                evaluate(plan).map(|f| f64::from(f.alarms) / f64::from(series));
            println!(
                "{:>22} {name:>16} {deviation:>6.1} {drift:>10.4} {incident:>10.4} {alert:>10.4}",
                "quiet"
            );
        }
    }
    for hours in [1].into_iter().chain(LONG_ROUNDS) {
        println!(
            "\nplanted falls, rounds of {hours} h, of {MODELS} models: share found, median and 95th percentile of the delay in rounds"
        );
        let [drift, incident, alert] =
            Detector::ALL.map(|detector| format!("{detector:?}").to_lowercase());
        println!(
            "{:>22} {:>16} {:>6} {drift:>16} {incident:>16} {alert:>16}",
            "", "noise", "sd"
        );
        for (change, scenario) in CHANGES {
            for (name, noise, deviation, missing) in NOISES {
                let plan = SeriesPlan {
                    scenario,
                    noise,
                    deviation,
                    hours,
                    missing,
                    series,
                };
                let [drift, incident, alert] =
                    evaluate(plan).map(|findings| shown(&findings, series));
                println!(
                    "{change:>22} {name:>16} {deviation:>6.1} {drift:>16} {incident:>16} {alert:>16}"
                );
            }
        }
    }
}

fn shown(findings: &Findings, series: u32) -> String {
    let delay = |share| {
        findings
            .delay(share)
            .map_or_else(|| "-".to_owned(), |rounds| rounds.to_string())
    };
    format!(
        "{:.3} {:>4} {:>4}",
        f64::from(findings.found()) / f64::from(series),
        delay(0.5),
        delay(0.95)
    )
}
