//! The SVG chart of a run: percentiles of latency by phase or rate, and outcomes over time. The figures are in the
//! JSON report.

use std::fmt::Write as _;

use super::record::{LatencyStats, Outcome, Record, shown};
use super::schedule::Phase;
use super::verdict::ProfileReport;

const WIDTH: f64 = 900.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 20.0;
const HEIGHT: f64 = 220.0;
/// Vertical positions of the two charts.
const TOPS: [f64; 2] = [60.0, 370.0];

const SHARES: [(&str, f64, &str); 4] = [
    ("p50", 0.5, "#2b6cb0"),
    ("p90", 0.9, "#2f855a"),
    ("p99", 0.99, "#b7791f"),
    ("p99.9", 0.999, "#c53030"),
];
/// Kinds of outcomes, from bottom to top.
const KINDS: [(&str, &str); 6] = [
    ("hit", "#68a691"),
    ("stale", "#d8b365"),
    ("fetched", "#5b8db8"),
    ("refused", "#b8a9c9"),
    ("failed", "#c53030"),
    ("lost", "#1a202c"),
];

pub(crate) fn svg(report: &ProfileReport) -> String {
    let phases: Vec<(String, &LatencyStats)> = report.runs.iter().flat_map(named).collect();
    let seconds: Vec<&LatencyStats> = report.runs.iter().flat_map(|run| &run.seconds).collect();
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"640\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    words(
        &mut svg,
        LEFT,
        24.0,
        "start",
        &format!("{}: {}", report.name, report.destination_name),
    );
    // If the client was late, the chart must state that.
    let warning = report.warning();
    if let Some(line) = warning.as_ref().or(report.verdict.first()) {
        words(&mut svg, LEFT, 44.0, "start", line);
    }
    percentiles(&mut svg, &phases);
    over_time(&mut svg, &seconds);
    svg.push_str("</svg>\n");
    svg
}

fn named(run: &Record) -> Vec<(String, &LatencyStats)> {
    let all = run.schedule.phases().zip(&run.phases);
    let name = |phase: &Phase| {
        let rate = format!("{:.0}/s", phase.rate);
        if phase.name == rate {
            rate
        } else {
            format!("{} ({rate})", phase.name)
        }
    };
    all.map(|(phase, stats)| (name(phase), stats)).collect()
}

/// A point for each phase and percentile, on a logarithmic scale.
fn percentiles(svg: &mut String, phases: &[(String, &LatencyStats)]) {
    let top = TOPS[0];
    let most = phases
        .iter()
        .map(|(_, stats)| stats.all.max())
        .max()
        .unwrap_or(1)
        .max(100);
    // From 10 us: nothing over a socket is faster.
    let decades = (most as f64 / 10.0).log10().ceil();
    let height =
        |micros: u64| top + HEIGHT * (1.0 - (micros.max(10) as f64 / 10.0).log10() / decades);
    let mut decade = 10_u64;
    while (decade as f64 / 10.0).log10() <= decades {
        grid(svg, height(decade), &shown(decade));
        decade *= 10;
    }
    let apart = (WIDTH - LEFT - RIGHT) / phases.len().max(1) as f64;
    let place = |number: usize| LEFT + apart * (number as f64 + 0.5);
    for (at, (name, share, colour)) in SHARES.into_iter().enumerate() {
        let points = phases.iter().enumerate();
        let points = points.map(|(number, (_, stats))| {
            (place(number), height(stats.all.value_at_quantile(share)))
        });
        let points: Vec<(f64, f64)> = points.collect();
        let line: Vec<String> = points
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\"/>",
            line.join(" ")
        )
        .unwrap();
        for (x, y) in points {
            writeln!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\" fill=\"{colour}\"/>"
            )
            .unwrap();
        }
        legend(svg, top, at, name, colour);
    }
    for (number, (name, _)) in phases.iter().enumerate() {
        words(svg, place(number), top + HEIGHT + 16.0, "middle", name);
    }
}

/// A bar for each second, and its p99 above it.
fn over_time(svg: &mut String, seconds: &[&LatencyStats]) {
    let top = TOPS[1];
    let most = seconds
        .iter()
        .map(|stats| stats.total())
        .max()
        .unwrap_or(1)
        .max(1) as f64;
    let slowest = seconds
        .iter()
        .map(|stats| stats.all.value_at_quantile(0.99))
        .max()
        .unwrap_or(1)
        .max(1);
    for tenth in [0.0, 0.5, 1.0] {
        grid(
            svg,
            top + HEIGHT * (1.0 - tenth),
            &format!("{:.0}/s", most * tenth),
        );
    }
    let wide = (WIDTH - LEFT - RIGHT) / seconds.len().max(1) as f64;
    let mut line = Vec::new();
    for (number, stats) in seconds.iter().enumerate() {
        let x = LEFT + wide * number as f64;
        let mut y = top + HEIGHT;
        for (kind, (_, colour)) in KINDS.into_iter().enumerate() {
            let tall = HEIGHT * stats.count(|outcome| kind_of(outcome) == kind) as f64 / most;
            if tall > 0.0 {
                y -= tall;
                let bar = wide.mul_add(0.9, 0.1);
                writeln!(svg, "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{bar:.2}\" height=\"{tall:.2}\" fill=\"{colour}\"/>").unwrap();
            }
        }
        let late = stats.all.value_at_quantile(0.99) as f64 / slowest as f64;
        line.push(format!(
            "{:.1},{:.1}",
            x + wide / 2.0,
            top + HEIGHT * (1.0 - late)
        ));
    }
    writeln!(
        svg,
        "<polyline points=\"{}\" fill=\"none\" stroke=\"#b7791f\" stroke-width=\"1.5\"/>",
        line.join(" ")
    )
    .unwrap();
    for (at, (name, colour)) in KINDS.into_iter().enumerate() {
        legend(svg, top, at, name, colour);
    }
    legend(
        svg,
        top,
        KINDS.len(),
        &format!("p99, up to {}", shown(slowest)),
        "#b7791f",
    );
    words(svg, LEFT, top + HEIGHT + 16.0, "start", "0 s");
    words(
        svg,
        WIDTH - RIGHT,
        top + HEIGHT + 16.0,
        "end",
        &format!("{} s", seconds.len()),
    );
}

/// Index in `KINDS`.
fn kind_of(outcome: Outcome) -> usize {
    match outcome {
        Outcome::Answered(_, "hit") => 0,
        Outcome::Answered(_, "stale") => 1,
        Outcome::Answered(200..400, _) => 2,
        Outcome::Answered(400..500, _) => 3,
        Outcome::Answered(..) => 4,
        Outcome::NoConnection | Outcome::CutOff | Outcome::TooLate => 5,
    }
}

fn grid(svg: &mut String, y: f64, label: &str) {
    let end = WIDTH - RIGHT;
    writeln!(
        svg,
        "<line x1=\"{LEFT}\" y1=\"{y:.1}\" x2=\"{end}\" y2=\"{y:.1}\" stroke=\"#e2e8f0\"/>"
    )
    .unwrap();
    words(svg, LEFT - 6.0, y + 4.0, "end", label);
}

fn legend(svg: &mut String, top: f64, at: usize, name: &str, colour: &str) {
    let x = LEFT + 90.0 * at as f64;
    let y = top + HEIGHT + 28.0;
    writeln!(
        svg,
        "<rect x=\"{x}\" y=\"{y}\" width=\"10\" height=\"10\" fill=\"{colour}\"/>"
    )
    .unwrap();
    words(svg, x + 14.0, y + 10.0, "start", name);
}

fn words(svg: &mut String, x: f64, y: f64, anchor: &str, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{text}</text>"
    )
    .unwrap();
}
