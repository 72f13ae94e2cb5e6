//! A server process with its directory and its children: stopped, and its directory removed, when this is dropped.

use std::{
    io::{BufRead as _, BufReader},
    net::{SocketAddr, TcpListener, TcpStream},
    process::{Child, ChildStdin, Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::machine::family;

/// Timeout of a start and of a stop.
const TIMEOUT: Duration = Duration::from_secs(15);

/// A running server.
pub struct Process {
    child: Child,
    /// Servers that are this program again end when this is closed, and write their counts if they are instrumented.
    stdin: Option<ChildStdin>,
    _directory: TempDir,
}

impl Process {
    /// Starts it, and returns the first line of the output that contains `words`.
    pub fn that_says(mut command: Command, directory: TempDir, words: &str) -> (Self, String) {
        // The gateway prints it on standard error, the lower bounds on standard output; the access log is on the
        // other.
        let is_floor = words == crate::floor::LISTENS;
        if is_floor {
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
        } else {
            command.stdin(Stdio::null());
            let log = std::fs::File::create(directory.path().join("requests.log")).unwrap();
            command.stdout(log).stderr(Stdio::piped());
        }
        let mut child = command.spawn().unwrap();
        let pipe: Box<dyn std::io::Read + Send> = if is_floor {
            Box::new(child.stdout.take().unwrap())
        } else {
            Box::new(child.stderr.take().unwrap())
        };
        let mut lines = BufReader::new(pipe).lines().map_while(Result::ok);
        let said = lines.by_ref().find(|line| line.contains(words)).unwrap();
        // Keeps reading, or the server would block some day.
        std::thread::spawn(move || lines.count());
        let stdin = child.stdin.take();
        (
            Self {
                child,
                stdin,
                _directory: directory,
            },
            said,
        )
    }

    /// Starts a server on a given port, and waits until it accepts. Its output is the error.
    pub fn that_listens(
        mut command: Command,
        directory: TempDir,
        address: SocketAddr,
    ) -> Result<Self, String> {
        let said = directory.path().join("said.txt");
        let file = std::fs::File::create(&said).unwrap();
        command
            .stdin(Stdio::null())
            .stdout(file.try_clone().unwrap())
            .stderr(file);
        let child = command.spawn().map_err(|error| error.to_string())?;
        let mut process = Self {
            child,
            stdin: None,
            _directory: directory,
        };
        let started_at = Instant::now();
        while TcpStream::connect(address).is_err() {
            let has_ended = process.child.try_wait().is_ok_and(|ended| ended.is_some());
            if has_ended || started_at.elapsed() > TIMEOUT {
                let said = std::fs::read_to_string(said).unwrap_or_default();
                let last: Vec<&str> = said.lines().rev().take(4).collect();
                return Err(last.into_iter().rev().collect::<Vec<&str>>().join(" | "));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(process)
    }

    /// The process and its current children.
    pub fn family(&self) -> Vec<u32> {
        family(self.child.id())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let all = self.family();
        let started_at = Instant::now();
        // Not killed at first: a killed process cannot stop its children.
        if self.stdin.take().is_none() {
            signal(self.child.id(), Signal::TERM);
        }
        while self.child.try_wait().is_ok_and(|ended| ended.is_none())
            && started_at.elapsed() < TIMEOUT / 3
        {
            std::thread::sleep(Duration::from_millis(10));
        }
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            for id in all {
                signal(id, Signal::KILL);
            }
            drop(self.child.wait());
        }
    }
}

fn signal(id: u32, signal: Signal) {
    if let Some(id) = i32::try_from(id).ok().and_then(Pid::from_raw) {
        // It may have ended already.
        let _is_gone = kill_process(id, signal);
    }
}

/// The address after these words of a line.
pub fn address_after(words: &str, said: &str) -> SocketAddr {
    said.split(words)
        .nth(1)
        .unwrap()
        .split(' ')
        .next()
        .unwrap()
        .parse()
        .unwrap()
}

/// A free port, for servers that cannot choose one themselves.
pub fn free_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap()
}
