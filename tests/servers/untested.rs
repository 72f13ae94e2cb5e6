//! Lists the tests that were skipped, at the end of `cargo test`: its targets run in alphabetical order.

#![expect(clippy::print_stdout, reason = "the list is the output")]

use std::os::unix::process::parent_id;

fn main() {
    let program = std::env::current_exe().expect("a path");
    let directory = program.ancestors().nth(2).expect("a directory");
    // Written by `requirements.rs`.
    let list = directory.join(format!("skipped-{}", parent_id()));
    let Ok(lines) = std::fs::read_to_string(&list) else {
        return;
    };
    std::fs::remove_file(&list).expect("the list can be removed");
    let mut tests: Vec<&str> = lines.lines().collect();
    tests.sort_unstable();
    println!(
        "\n{}\n\n{} tests were skipped; `.ci/check test` installs what they need.",
        tests.join("\n"),
        tests.len()
    );
}
