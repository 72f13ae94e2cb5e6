//! The files of this machine across restarts, kills and damage.

mod copied_keys;
mod documents;
mod local_file;

use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Environment variable with the directory for another process. The same test runs there, in the other role.
const PLACE: &str = "DIRECTORY_OF_THE_OTHER_PROCESS";

/// A test of these files in a process of its own, after these shell commands.
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
