//! Prints measurements for people and for programs: every figure also as a ratio to the gateway's own.

use serde_json::{Value, json};

use crate::{
    comparisons::{Compared, Rows},
    measure::{Figures, interval, middle, ratio},
};

/// Prints a heading and the rows; ratios are to the first. Returns the same as JSON.
pub fn print(heading: &str, rows: &Rows<'_>) -> Vec<Value> {
    println!("\n{heading}");
    println!(
        "{:<38} {:>8} {:>7} {:>5} {:>9} {:>7} {:>8} {:>7} {:>17} {:>17} {:>17}",
        "",
        "us CPU",
        "ratio",
        "busy",
        "req/s",
        "ratio",
        "MiB",
        "ratio",
        "p50 us  ratio",
        "p99 us  ratio",
        "p99.9 us  ratio"
    );
    let Some((_, base)) = rows.first() else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for (name, figures) in rows {
        let work = pair(&figures.work, &base.work);
        let rate = pair(&figures.rate, &base.rate);
        let memory = pair(&figures.memory, &base.memory);
        let [p50, p99, p999] = [0, 1, 2].map(|at| pair(&figures.took[at], &base.took[at]));
        println!(
            "{name:<38} {} {:>5.2} {} {} {} {} {}",
            shown(work, 8, 2),
            busy(figures),
            shown(rate, 9, 0),
            shown(memory, 8, 1),
            shown(p50, 9, 0),
            shown(p99, 9, 0),
            shown(p999, 9, 0),
        );
        let both = |pair: Option<(f64, f64)>| {
            pair.map_or(Value::Null, |(value, ratio)| {
                json!([short(value), short(ratio)])
            })
        };
        all.push(json!({
            "name": name, "cpu_us": both(work), "busy": short(busy(figures)), "rate": both(rate), "resident_mib": both(memory),
            "p50_us": both(p50), "p99_us": both(p99), "p999_us": both(p999), "cpu_us_of_rounds": figures.work.iter().copied().map(short).collect::<Vec<f64>>(),
        }));
    }
    all
}

/// Prints ratios of CPU times: the median of the rounds, and its interval. Returns the same as JSON.
pub fn print_ratios(ratios: &[Compared]) -> Vec<Value> {
    let mut all = Vec::new();
    println!("\n{:<74} {:>6}  95 % interval", "CPU time", "median");
    for Compared { name, rounds } in ratios {
        let (Some(median), Some((low, high))) = (middle(rounds), interval(rounds)) else {
            continue;
        };
        println!("{name:<74} {median:>6.3}  {low:.3} to {high:.3}");
        all.push(
            json!({ "name": name, "median": short(median), "interval": [short(low), short(high)] }),
        );
    }
    all
}

fn pair(figures: &[f64], to: &[f64]) -> Option<(f64, f64)> {
    Some((middle(figures)?, ratio(figures, to)?)).filter(|(value, _)| value.is_finite())
}

/// Utilisation of one core. Below saturation a server wakes up for single requests, which costs more CPU time per
/// request.
fn busy(figures: &Figures) -> f64 {
    let each = figures
        .work
        .iter()
        .zip(&figures.rate)
        .map(|(work, rate)| work * rate / 1e6);
    middle(&each.collect::<Vec<f64>>()).unwrap_or(0.0)
}

fn shown(pair: Option<(f64, f64)>, width: usize, digits: usize) -> String {
    let Some((value, ratio)) = pair else {
        return format!("{:>width$} {:>7}", "-", "-");
    };
    format!("{value:>width$.digits$} {ratio:>7.2}")
}

/// Rounds to significant digits.
fn short(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
