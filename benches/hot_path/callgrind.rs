//! Counts instructions of the real program per response, by running it under callgrind; counters are reset after the
//! warm-up.
//!
//! Everything in the process counts: the codec, the runtime, the gateway; not the kernel. Code with special CPU
//! instructions (SHA-256) is counted as callgrind emulates it.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use super::program::{Installation, Kind, RunningProgram};

/// Warm-up responses: afterwards everything that is created once exists.
const BEFORE: usize = 100;

/// Allocation functions of jemalloc.
const ALLOCATES: [&str; 5] =
    ["_rjem_malloc", "_rjem_mallocx", "_rjem_calloc", "_rjem_realloc", "_rjem_rallocx"];

/// Whether valgrind is installed.
pub(crate) fn is_there() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok_and(|told| told.status.success())
}

/// Instructions and allocations of one response of a kind.
pub(crate) fn cost(kind: Kind, times: usize) -> (f64, f64) {
    let installation = Installation::new();
    let file = installation.path().join("callgrind.out");
    let mut command = Command::new("valgrind");
    command.arg("--tool=callgrind").arg(format!("--callgrind-out-file={}", file.display()));
    command.arg(env!("CARGO_BIN_EXE_scoregate")).arg("serve").arg("--config").arg(installation.settings());
    let serving = RunningProgram::start(command);
    let mut repeated_request = serving.repeated_request(&installation, kind);
    repeated_request.run(BEFORE);
    control("--zero", &serving);
    repeated_request.run(times);
    control("--dump", &serving);
    serving.stop();
    let (instructions, allocations) = read(&file.with_extension("out.1"));
    (instructions as f64 / times as f64, allocations as f64 / times as f64)
}

fn control(what: &str, serving: &RunningProgram) {
    let done = Command::new("callgrind_control").arg(what).arg(serving.id().to_string()).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// All instructions of a run, and all calls of allocation functions.
fn read(file: &Path) -> (u64, u64) {
    let bytes = std::fs::read(file).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    let (mut instructions, mut allocations) = (0, 0);
    // A name is given once; later it is referred to by number.
    let (mut names, mut called): (HashMap<String, String>, String) = Default::default();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("cfn=") {
            let (number, name) = name.split_once(' ').unwrap_or((name, ""));
            called.clone_from(names.entry(number.to_owned()).or_insert_with(|| name.to_owned()));
        } else if let Some(name) = line.strip_prefix("fn=") {
            let (number, name) = name.split_once(' ').unwrap_or((name, ""));
            names.entry(number.to_owned()).or_insert_with(|| name.to_owned());
        } else if let Some(calls) = line.strip_prefix("calls=") {
            let calls: u64 = calls.split(' ').next().unwrap().parse().unwrap();
            allocations += if ALLOCATES.contains(&called.as_str()) { calls } else { 0 };
        } else if let Some(all) = line.strip_prefix("totals: ").or_else(|| line.strip_prefix("summary: ")) {
            instructions = all.trim().parse().unwrap();
        }
    }
    (instructions, allocations)
}
