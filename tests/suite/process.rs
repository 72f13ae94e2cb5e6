//! The real program as a process of its own: for what can only be seen from outside, such as its memory.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// A running `scoregate serve` with the built-in backend.
pub struct Process {
    child: Child,
    /// Where its public port listens.
    pub public: SocketAddr,
    /// Where its side port listens.
    pub side: SocketAddr,
    _directory: TempDir,
}

impl Process {
    /// Starts it with further settings, each as `("guard.per_minute", "100")`.
    pub fn serve(settings: &[(&str, &str)]) -> Self {
        let directory = TempDir::new().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_scoregate"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--data-dir"]);
        command
            .arg(directory.path())
            .env("SCOREGATE_UPSTREAM", "built-in")
            .env("SCOREGATE_LOG_FORMAT", "json");
        for (path, value) in settings {
            command.env(format!("SCOREGATE_{}", path.replace('.', "_").to_uppercase()), value);
        }
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let serving = lines.find(|line| line.contains("\"serving\"")).expect("it says where it serves");
        // Whatever else it says must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let event: serde_json::Value = serde_json::from_str(&serving).unwrap();
        let port = |name: &str| event["fields"][name].as_str().unwrap().parse().unwrap();
        Self { public: port("public"), side: port("side"), child, _directory: directory }
    }

    /// Its resident memory, in bytes.
    pub fn resident(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
