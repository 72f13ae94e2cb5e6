//! The real program as a process, with a key without effective limits.

use std::{
    fs::{read_dir, read_to_string},
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
};

const PROGRAM: &str = env!("CARGO_BIN_EXE_scoregate");
/// Settings of all benches, before and after their own.
const PORTS: &str = "listen = \"127.0.0.1:0\"\nadmin.listen = \"127.0.0.1:0\"\n";
const TIER: &str = "[tiers.load]\nminute = 1000000000\nday = 1000000000\npaid = true\n";

/// A gateway, which ends with this value.
pub struct GatewayProcess {
    child: Child,
    /// The public port.
    pub address: SocketAddr,
    /// A key.
    pub key: String,
}

impl GatewayProcess {
    /// Starts it with these settings and its files in a directory, by a command such as `taskset` if one is given.
    pub fn start(directory: &Path, settings: &str, launcher: &[&str]) -> Self {
        let file = directory.join("scoregate.toml");
        let data = directory.join("data");
        std::fs::create_dir(&data).unwrap();
        std::fs::write(
            &file,
            format!("data_dir = \"{}\"\n{PORTS}{settings}{TIER}", data.display()),
        )
        .unwrap();
        let config = ["--config", file.to_str().unwrap()];
        let create = [
            "keys", "create", "--name", "bench", "--tier", "load", "--json",
        ];
        let created = Command::new(PROGRAM)
            .args(create)
            .args(config)
            .output()
            .unwrap();
        let created: serde_json::Value = serde_json::from_slice(&created.stdout).unwrap();
        let key = created["key"].as_str().unwrap().to_owned();
        let mut words = launcher.iter().chain([&PROGRAM]);
        let mut command = Command::new(words.next().unwrap());
        command
            .args(words)
            .arg("serve")
            .args(config)
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let serving = lines
            .find_map(|line| line.ok().filter(|line| line.contains("serving")))
            .unwrap();
        let address = serving
            .split("public=")
            .nth(1)
            .unwrap()
            .split(' ')
            .next()
            .unwrap()
            .parse()
            .unwrap();
        std::thread::spawn(move || lines.count());
        Self {
            child,
            address,
            key,
        }
    }

    /// The CPU time of its threads so far.
    pub fn cpu_seconds(&self) -> f64 {
        let tasks = read_dir(format!("/proc/{}/task", self.id())).unwrap();
        let nanos = tasks.filter_map(|task| {
            let text = read_to_string(task.ok()?.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<f64>().ok()
        });
        nanos.sum::<f64>() / 1e9
    }

    /// The process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for GatewayProcess {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}
