//! Counts what the real program does for an answer, by running it under callgrind: what comes before the answers that count
//! is set to nought.
//!
//! Everything of the process counts: the codec, the runtime, the gateway; not what the kernel does. Code that a processor has
//! instructions of its own for (SHA-256) counts as what callgrind's has in their place. Not for: time.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use super::program::{Kind, Place, Serving};

/// So many answers come first: what is made once is made by then.
const BEFORE: usize = 100;

/// The functions of jemalloc that the program allocates with.
const ALLOCATES: [&str; 5] =
    ["_rjem_malloc", "_rjem_mallocx", "_rjem_calloc", "_rjem_realloc", "_rjem_rallocx"];

/// Whether there is one.
pub(crate) fn is_there() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok_and(|told| told.status.success())
}

/// Instructions and allocations of one answer of a kind.
pub(crate) fn cost(kind: Kind, times: usize) -> (f64, f64) {
    let place = Place::new();
    let file = place.path().join("callgrind.out");
    let mut command = Command::new("valgrind");
    command.arg("--tool=callgrind").arg(format!("--callgrind-out-file={}", file.display()));
    command.arg(env!("CARGO_BIN_EXE_scoregate")).arg("serve").arg("--config").arg(place.settings());
    let serving = Serving::start(command);
    let mut asking = serving.asking(&place, kind);
    asking.ask(BEFORE);
    control("--zero", &serving);
    asking.ask(times);
    control("--dump", &serving);
    serving.stop();
    let (instructions, allocations) = read(&file.with_extension("out.1"));
    (instructions as f64 / times as f64, allocations as f64 / times as f64)
}

fn control(what: &str, serving: &Serving) {
    let done = Command::new("callgrind_control").arg(what).arg(serving.id().to_string()).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
}

/// All instructions of a run, and all calls of what allocates.
fn read(file: &Path) -> (u64, u64) {
    let bytes = std::fs::read(file).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    let (mut instructions, mut allocations) = (0, 0);
    // A name stands there once, and its number from then on.
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
