//! Tests the machine's local files across restarts, kills and damage.

mod copied_keys;
mod documents;
mod local_file;

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

/// Environment variable with the directory for another process. That process runs the same test in the other role.
const PLACE: &str = "DIRECTORY_OF_THE_OTHER_PROCESS";

/// The directory, if this process was started as the other process.
fn place() -> Option<PathBuf> {
    std::env::var_os(PLACE).map(PathBuf::from)
}

/// Runs the shell commands `words`, then a test of this module, in another process.
fn other_process(words: &str, test: &str, directory: &Path) -> Child {
    let script = format!("{words} exec \"$0\" --exact --nocapture local::tests::{test}");
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(script)
        .arg(std::env::current_exe().unwrap());
    command
        .env(PLACE, directory)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// Reports progress to the test that started this process.
#[expect(
    clippy::print_stdout,
    reason = "the test that started this process reads it"
)]
fn report(number: u32) {
    println!("\nreached {number}");
}

/// Repeatedly runs and kills the other process, each time after more reports. Then checks the remaining file against
/// the last reported number.
fn kill_again_and_again(test: &str, directory: &Path, check: impl Fn(u32)) {
    for life in 0..20 {
        let mut child = other_process("", test, directory);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let numbers = lines.filter_map(|line| line.unwrap().strip_prefix("reached ")?.parse().ok());
        let reported = numbers.take(1 + life).last().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        check(reported);
    }
}

/// Runs the other process with a limit on the size of its files.
fn run_on_full_disk(test: &str, directory: &Path) {
    // The kernel truncates one write and fails the next one, as on a full disk.
    let child = other_process("trap '' XFSZ; ulimit -f 80;", test, directory);
    let ended = child.wait_with_output().unwrap();
    let output = String::from_utf8_lossy(&ended.stdout);
    assert!(
        ended.status.success() && output.contains("1 passed"),
        "{output}"
    );
}

/// Changes one byte of a file, at many positions in turn. Returns for how many positions `is_refused` is true.
fn damage_each_byte(path: &Path, is_refused: impl Fn(&[u8], usize) -> bool) -> usize {
    let whole = fs::read(path).unwrap();
    let places = (0..whole.len()).step_by(7).chain(0..200);
    places
        .filter(|at| {
            let mut damaged = whole.clone();
            damaged[*at] ^= 0x11;
            fs::write(path, &damaged).unwrap();
            is_refused(&damaged, *at)
        })
        .count()
}

/// A truncated file, a file of another format, and a file of a newer release.
fn unusable(path: &Path) -> [Vec<u8>; 3] {
    let whole = fs::read(path).unwrap();
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.pragma_update(None, "user_version", 2).unwrap();
    drop(connection);
    let newer = fs::read(path).unwrap();
    let cut = whole[..whole.len() - 4_096].to_vec();
    [cut, b"another format".repeat(100), newer]
}
