//! Counts instructions of the real program per response, by running it under callgrind; counters are reset after the
//! warm-up.
//!
//! Everything in the process counts: the codec, the runtime, the gateway; not the kernel. Code with special CPU
//! instructions (SHA-256) is counted as callgrind emulates it.

use std::{
    collections::{HashMap, HashSet},
    path::Path,
    process::Command,
};

use super::{
    installation::Installation,
    program::{Kind, RunningProgram, program},
};

/// Warm-up responses: afterwards everything that is created once exists, and the leases of the key have their usual size.
const BEFORE: usize = 1_000;

/// Bytes of a cache line of x86-64 and most arm64 processors.
const CACHE_LINE: u64 = 64;

/// Allocation functions of jemalloc.
const ALLOCATES: [&str; 5] = [
    "_rjem_malloc",
    "_rjem_mallocx",
    "_rjem_calloc",
    "_rjem_realloc",
    "_rjem_rallocx",
];

/// Whether valgrind is installed.
pub fn is_there() -> bool {
    Command::new("valgrind")
        .arg("--version")
        .output()
        .is_ok_and(|told| told.status.success())
}

/// The cost of one response.
pub struct Cost {
    pub instructions: f64,
    pub allocations: f64,
    /// KB of code that every response touches: the cache lines with an instruction that was executed at least as often
    /// as there were responses.
    pub code: f64,
}

/// The cost of one response of a kind.
pub fn cost(kind: Kind, times: usize) -> Cost {
    let installation = Installation::of(program());
    let file = installation.settings().with_file_name("callgrind.out");
    let mut command = Command::new("valgrind");
    command
        .arg("--tool=callgrind")
        .arg(format!("--callgrind-out-file={}", file.display()));
    command
        .arg("--dump-instr=yes")
        .arg(program())
        .arg("serve")
        .arg("--config")
        .arg(installation.settings());
    let serving = RunningProgram::start(command);
    let mut repeated_request = serving.repeated_request(&installation, kind);
    repeated_request.run(BEFORE);
    control("--zero", &serving);
    repeated_request.run(times);
    control("--dump", &serving);
    serving.stop();
    let counts = Counts::read(&file.with_extension("out.1"));
    let lines: HashSet<u64> = counts
        .executed
        .iter()
        .filter(|(_, executed)| **executed >= times as u64)
        .map(|(address, _)| address / CACHE_LINE)
        .collect();
    Cost {
        instructions: counts.instructions as f64 / times as f64,
        allocations: counts.allocations as f64 / times as f64,
        code: lines.len() as f64 * CACHE_LINE as f64 / 1_024.0,
    }
}

fn control(what: &str, serving: &RunningProgram) {
    let done = Command::new("callgrind_control")
        .arg(what)
        .arg(serving.id().to_string())
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
}

/// The counts of a run.
#[derive(Default)]
struct Counts {
    instructions: u64,
    /// Calls of allocation functions.
    allocations: u64,
    /// Executions by the address of the instruction.
    executed: HashMap<u64, u64>,
}

impl Counts {
    fn read(file: &Path) -> Self {
        let bytes = std::fs::read(file).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        let mut counts = Self::default();
        // A name is given once; later it is referred to by number. Addresses are relative to the previous line.
        let (mut names, mut called, mut address): (HashMap<String, String>, String, u64) =
            Default::default();
        let mut is_call = false;
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("cfn=") {
                let (number, name) = name.split_once(' ').unwrap_or((name, ""));
                called.clone_from(
                    names
                        .entry(number.to_owned())
                        .or_insert_with(|| name.to_owned()),
                );
            } else if let Some(name) = line.strip_prefix("fn=") {
                let (number, name) = name.split_once(' ').unwrap_or((name, ""));
                names
                    .entry(number.to_owned())
                    .or_insert_with(|| name.to_owned());
            } else if let Some(calls) = line.strip_prefix("calls=") {
                let calls: u64 = calls.split(' ').next().unwrap().parse().unwrap();
                counts.allocations += if ALLOCATES.contains(&called.as_str()) {
                    calls
                } else {
                    0
                };
                is_call = true;
            } else if let Some(all) = line
                .strip_prefix("totals: ")
                .or_else(|| line.strip_prefix("summary: "))
            {
                counts.instructions = all.trim().parse().unwrap();
            } else if line.starts_with(['0', '+', '-', '*']) {
                let (position, rest) = line.split_once(' ').unwrap();
                address = position_after(address, position);
                let executed: u64 = rest
                    .split(' ')
                    .nth(1)
                    .map_or(0, |count| count.parse().unwrap());
                // The line after a call has the cost of the called function.
                *counts.executed.entry(address).or_default() += if is_call { 0 } else { executed };
                is_call = false;
            }
        }
        counts
    }
}

/// A position of callgrind's format, which may be relative to the one before.
fn position_after(before: u64, position: &str) -> u64 {
    let number = |text: &str| {
        text.strip_prefix("0x")
            .map_or_else(|| text.parse(), |digits| u64::from_str_radix(digits, 16))
            .unwrap()
    };
    match position.split_at(1) {
        ("+", rest) => before + number(rest),
        ("-", rest) => before - number(rest),
        ("*", _) => before,
        _ => number(position),
    }
}
