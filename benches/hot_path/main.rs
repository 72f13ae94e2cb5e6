//! Instructions and allocations per kind of response, counted rather than timed, so that they are the same on a busy
//! machine. It runs the program and does not link the gateway.
//!
//! `cargo bench --bench hot_path` counts if valgrind is installed, and fails if a kind takes over 3 % more
//! instructions than `recorded.toml` states; `SCOREGATE_WRITE=1` records new values. `-- PATH` only counts another build
//! of the program, and `-- --guard PATH` compares it with the recorded values as well. The code of a response is
//! counted as well: what each request touches, in cache lines.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::cast_precision_loss,
    clippy::disallowed_methods,
    reason = "a bench prints what it measured, and may end where something is not as it should be"
)]

mod callgrind;
mod installation;
mod program;

use std::{collections::BTreeMap, path::Path, process::ExitCode};

use callgrind::Cost;
use program::{KINDS, Kind, is_guarded};

/// Tolerance for variation by the compiler and by the counting itself.
const TOLERANCE: f64 = 1.03;
const RECORDED: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/benches/hot_path/recorded.toml"
);

fn main() -> ExitCode {
    let is_full = std::env::var("SCOREGATE_FULL").is_ok_and(|value| value == "1");
    if !callgrind::is_there() {
        println!("valgrind is not there: nothing is counted");
        return ExitCode::SUCCESS;
    }
    let recorded = recorded();
    let mut counted = BTreeMap::new();
    println!(
        "{:<8} {:>14} {:>12} {:>9} {:>13} {:>9}",
        "answer", "instructions", "recorded", "to a hit", "allocations", "code, KB"
    );
    for kind in KINDS {
        let Cost {
            instructions,
            allocations,
            code,
        } = callgrind::cost(kind, if is_full { 4_000 } else { 1_000 });
        counted.insert(kind.word(), instructions);
        let hit = counted[Kind::Hit.word()];
        let before = recorded
            .get(kind.word())
            .map_or("-".into(), |known| format!("{known:.0}"));
        println!(
            "{:<8} {instructions:>14.0} {before:>12} {:>9.2} {allocations:>13.1} {code:>9.1}",
            kind.word(),
            instructions / hit
        );
    }
    if !is_guarded() {
        return ExitCode::SUCCESS;
    }
    if std::env::var("SCOREGATE_WRITE").is_ok_and(|value| value == "1") {
        record(&counted);
        return ExitCode::SUCCESS;
    }
    let dearer: Vec<&str> = counted
        .iter()
        .filter(|(kind, now)| {
            recorded
                .get(**kind)
                .is_none_or(|before| **now > before * TOLERANCE)
        })
        .map(|(kind, _)| *kind)
        .collect();
    if dearer.is_empty() {
        return ExitCode::SUCCESS;
    }
    println!(
        "{} cost more than was recorded: find out why, or record it by SCOREGATE_WRITE=1",
        dearer.join(", ")
    );
    ExitCode::FAILURE
}

fn recorded() -> BTreeMap<String, f64> {
    if !Path::new(RECORDED).exists() {
        return BTreeMap::new();
    }
    toml::from_str(&std::fs::read_to_string(RECORDED).unwrap()).unwrap()
}

fn record(counted: &BTreeMap<&str, f64>) {
    let head = "# Instructions per response of the release build, counted by callgrind: `cargo bench --bench hot_path`.\n";
    let lines = counted
        .iter()
        .map(|(kind, now)| format!("\"{kind}\" = {now:.1}\n"));
    std::fs::write(
        RECORDED,
        lines.fold(head.to_owned(), |all, line| all + &line),
    )
    .unwrap();
}
