//! The README's table of costs: its figures are those of the dated run that it names, and that run is of a program with the
//! recorded number of instructions for a hit.

use crate::{File, found, none, tree};

const README: &str = "README.md";
const RECORDED: &str = "benches/hot_path/recorded.toml";
/// The beginning of the table.
const TABLE: &str = "| | CPU per request | ratio | requests per second |";
/// The tolerance of `benches/hot_path`: within it a measurement need not be repeated.
const TOLERANCE: f64 = 0.03;
fn text<'f>(all: &'f [File], path: &str) -> &'f str {
    all.iter()
        .find(|file| file.path == path)
        .map_or("", |file| file.text.as_str())
}

/// The rows of the README's table as cells.
fn rows(readme: &str) -> Vec<Vec<&str>> {
    let table = readme
        .split(TABLE)
        .nth(1)
        .and_then(|rest| rest.split("\n\n").next())
        .unwrap_or("");
    let lines = table.lines().skip(2);
    lines
        .map(|line| line.split('|').map(str::trim).skip(1).take(4).collect())
        .collect()
}

/// Whether the cells of a row are those of the run, with a digit less of the CPU time.
fn agrees(run: &str, cells: &[&str]) -> bool {
    let [name, cpu, ratio, rate] = cells else {
        return false;
    };
    let hits = run.split("us CPU").nth(1).unwrap_or("");
    let rest = hits.lines().find_map(|line| {
        line.strip_prefix(name)
            .filter(|rest| rest.starts_with("  "))
    });
    let columns: Vec<&str> = rest.unwrap_or("").split_whitespace().collect();
    let [measured_cpu, measured_ratio, _busy, measured_rate, ..] = columns.as_slice() else {
        return false;
    };
    let number = |text: &str| {
        text.trim_end_matches(" µs")
            .parse::<f64>()
            .unwrap_or(f64::NAN)
    };
    (number(cpu) - number(measured_cpu)).abs() < 0.051
        && ratio == measured_ratio
        && *rate == grouped(measured_rate)
}

/// A number with commas between groups of digits.
fn grouped(number: &str) -> String {
    let groups = number
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| String::from_utf8_lossy(group));
    groups.collect::<Vec<_>>().join(",")
}

fn mistakes(all: &[File]) -> Vec<String> {
    let readme = text(all, README);
    let recorded = text(all, RECORDED);
    let named = readme
        .split('`')
        .find(|word| word.starts_with("benches/runs/") && word.ends_with("/peers.txt"));
    let path = named.unwrap_or_default();
    let run = text(all, path);
    let mut findings: Vec<String> = rows(readme)
        .into_iter()
        .filter(|cells| !agrees(run, cells))
        .map(|cells| format!("{README}: {path} has other figures than {cells:?}"))
        .collect();
    let number = |text: &str| {
        text.split_whitespace()
            .next()
            .and_then(|word| word.parse::<f64>().ok())
    };
    let recorded = recorded.split("\"hit\" = ").nth(1).and_then(number);
    let of_the_run = run.split("a hit takes ").nth(1).and_then(number);
    let is_recent = match (recorded, of_the_run) {
        (Some(recorded), Some(of_the_run)) => (recorded / of_the_run - 1.0).abs() <= TOLERANCE,
        _ => false,
    };
    if !is_recent {
        findings.push(format!(
            "{README}: the table is older than the program: a hit takes {recorded:?} instructions, and in {path} {of_the_run:?}. \
             Run the bench peers again"
        ));
    }
    findings
}

#[test]
fn the_readme_s_costs_are_those_of_a_run_of_this_program() {
    assert!(
        rows(text(&tree(), README)).len() > 3,
        "the table of costs is missing"
    );
    none(&mistakes(&tree()));
}

#[test]
fn the_test_of_the_readme_s_costs_fails_when_a_mistake_is_planted() {
    let run = |count: &str| {
        File::planted(
            "benches/runs/2030-01-01-machine/peers.txt",
            &format!(
                "a hit takes {count} instructions\n       us CPU  ratio\nscoregate    8.01   1.00  1.00   124259\n"
            ),
        )
    };
    let tree = |cpu: &str, count: &str| {
        let readme = format!(
            "`benches/runs/2030-01-01-machine/peers.txt`\n\n{TABLE}\n|---|---:|\n| scoregate | {cpu} µs | 1.00 | 124,259 | |\n\n"
        );
        [
            File::planted(README, &readme),
            File::planted(RECORDED, "\"304\" = 1.0\n\"hit\" = 20000.0\n"),
            run(count),
        ]
    };
    none(&mistakes(&tree("8.0", "20100.5")));
    found(&mistakes(&tree("8.1", "20100.5")), 1, "other figures");
    found(
        &mistakes(&tree("8.0", "22000.0")),
        1,
        "older than the program",
    );
    found(
        &mistakes(&tree("8.0", "unknown")),
        1,
        "older than the program",
    );
}
