//! The real program as operators use it: arguments in, lines and an exit code out. It does not inherit the environment
//! of the test, and every wait is for a line of its output.

use std::fs::OpenOptions;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use scoregate::clock::Clock;
use tempfile::TempDir;

use crate::client::{Connection, OptionalHeaders, RequestBuilder, Rules};

/// Longest wait for a line of output: a test fails instead of hanging.
const MAX_WAIT: Duration = Duration::from_mins(2);

/// The result of a finished command.
#[derive(Debug)]
pub struct CommandOutput {
    /// Exit code; none if a signal ended it.
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl CommandOutput {
    /// Checks the exit code.
    pub fn with(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "out: {}\nerr: {}", self.out, self.err);
        self
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.out).unwrap_or_else(|_| panic!("no JSON: {}", self.out))
    }
}

pub fn run(arguments: &[&str]) -> CommandOutput {
    run_with(arguments, &[])
}

/// Runs it to its end with these environment variables.
pub fn run_with(arguments: &[&str], environment: &[(&str, &str)]) -> CommandOutput {
    let output = command(arguments, environment).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    CommandOutput { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// Runs it to its end with this standard input.
pub fn run_with_input(arguments: &[&str], input: &[u8]) -> CommandOutput {
    let mut command = command(arguments, &[]);
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    let (mut stdin, input) = (child.stdin.take().unwrap(), input.to_vec());
    // It may exit before it has read all of it.
    let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    CommandOutput { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// Runs SQL statements on the store of a data directory, and returns the output.
pub fn sqlite3(data_dir: &Path, statements: &str) -> String {
    let file = data_dir.join(scoregate::store::Embedded::FILE_NAME);
    let output = Command::new("sqlite3")
        .args(["-bail", "-cmd", ".timeout 5000"])
        .arg(file)
        .arg(statements)
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    assert!(output.status.success(), "{statements}: {}", text(output.stderr));
    text(output.stdout)
}

/// The program with an otherwise empty environment.
pub fn command(arguments: &[&str], environment: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scoregate"));
    command.args(arguments).env_clear().envs(environment.iter().copied()).stdin(Stdio::null());
    command
}

/// A command that runs until it is stopped.
pub struct Program {
    child: ChildProcess,
    out: PipeOutput,
    err: PipeOutput,
    /// Its private directory for temporary files.
    pub scratch: TempDir,
}

/// A process that is killed when dropped: a failed test leaves nothing behind.
pub struct ChildProcess(pub Child);

impl Drop for ChildProcess {
    fn drop(&mut self) {
        // Killing an exited process fails, which is fine.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The output of a pipe: line by line while it runs, and all of it at the end.
struct PipeOutput {
    lines: Receiver<String>,
    all: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
}

impl PipeOutput {
    fn new(pipe: impl Read + Send + 'static) -> Self {
        let (sender, lines) = channel();
        let all = Arc::new(Mutex::new(String::new()));
        let kept = Arc::clone(&all);
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                kept.lock().unwrap().push_str(&format!("{line}\n"));
                // The pipe is read on even if no one waits for lines.
                drop(sender.send(line));
            }
        });
        Self { lines, all, reader }
    }

    /// The next line that contains this text; none if the process ended without it.
    fn find(&self, words: &str) -> Option<String> {
        let (clock, start) = (Clock::system(), Clock::system().mono());
        loop {
            match self.lines.recv_timeout(MAX_WAIT.saturating_sub(clock.mono().since(start))) {
                Ok(line) if line.contains(words) => return Some(line),
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {
                    panic!("no {words:?} within {MAX_WAIT:?}: {}", self.all.lock().unwrap())
                }
            }
        }
    }

    fn wait_for(&self, words: &str) -> String {
        let line = self.find(words);
        line.unwrap_or_else(|| panic!("it ended without {words:?}: {}", self.all.lock().unwrap()))
    }

    fn whole(self) -> String {
        self.reader.join().unwrap();
        self.all.lock().unwrap().clone()
    }
}

impl Program {
    pub fn start(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        Self::spawn(command(arguments, environment))
    }

    /// Starts it with this socket as systemd socket activation does.
    pub fn start_on(socket: &TcpListener, arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let hand_over = "exec 3<&0 0</dev/null; export LISTEN_PID=$$ LISTEN_FDS=1; exec \"$0\" \"$@\"";
        let mut command = Command::new("/bin/sh");
        command.args(["-c", hand_over, env!("CARGO_BIN_EXE_scoregate")]).args(arguments);
        command.env_clear().envs(environment.iter().copied());
        command.stdin(OwnedFd::from(socket.try_clone().unwrap()));
        Self::spawn(command)
    }

    pub fn spawn(mut command: Command) -> Self {
        let scratch = TempDir::new().unwrap();
        command.env("TMPDIR", scratch.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (out, err) =
            (PipeOutput::new(child.stdout.take().unwrap()), PipeOutput::new(child.stderr.take().unwrap()));
        Self { child: ChildProcess(child), out, err, scratch }
    }

    /// `serve` on free ports, with its addresses in the log.
    pub fn serve(data_dir: &Path, environment: &[(&str, &str)]) -> Self {
        let free = ["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--data-dir"];
        let arguments: Vec<&str> = free.into_iter().chain([data_dir.to_str().unwrap()]).collect();
        Self::start(&arguments, environment)
    }

    /// The next line of its standard output that contains this text.
    pub fn prints(&self, words: &str) -> String {
        self.out.wait_for(words)
    }

    /// The next line of its standard error that contains this text.
    pub fn logs(&self, words: &str) -> String {
        self.err.wait_for(words)
    }

    /// Waits until it serves, and returns its public address from the log.
    pub fn public(&self) -> SocketAddr {
        self.ports().0
    }

    /// Waits until it serves, and returns the addresses of the public port and the side port.
    pub fn ports(&self) -> (SocketAddr, SocketAddr) {
        self.ports_if_any().unwrap_or_else(|| panic!("it ended: {}", self.err.all.lock().unwrap()))
    }

    /// The same; none if it exits before it serves.
    pub fn ports_if_any(&self) -> Option<(SocketAddr, SocketAddr)> {
        // A start from the local copy logs that it will be serving, too.
        let mut lines = std::iter::from_fn(|| self.err.find("serving"));
        lines.find(|line| line.contains("side")).as_deref().map(ports_in)
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.0.id()
    }

    /// Its resident memory, in bytes.
    pub fn resident(&self) -> u64 {
        self.memory("VmRSS:")
    }

    /// Its peak resident memory, in bytes.
    pub fn most_resident(&self) -> u64 {
        self.memory("VmHWM:")
    }

    fn memory(&self, which: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.0.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(which)).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }

    /// Sends it a signal, such as `TERM`.
    pub fn signal(&self, name: &str) {
        let status = Command::new("sh").arg("-c").arg(format!("kill -{name} {}", self.child.0.id())).status();
        assert!(status.unwrap().success());
    }

    /// Waits for its exit.
    pub fn end(mut self) -> (CommandOutput, TempDir) {
        let code = self.child.0.wait().unwrap().code();
        (CommandOutput { code, out: self.out.whole(), err: self.err.whole() }, self.scratch)
    }

    /// Stops it gracefully and waits for its exit.
    pub fn stop(self) -> CommandOutput {
        self.signal("TERM");
        self.end().0
    }
}

/// The addresses of the public port and the side port in a text or JSON log line.
pub fn ports_in(line: &str) -> (SocketAddr, SocketAddr) {
    let port = |name: &str| {
        let leads = [format!("{name}="), format!("\"{name}\":\"")];
        let value = leads.iter().find_map(|lead| line.split_once(lead.as_str())).unwrap().1;
        value.split([' ', '"']).next().unwrap().parse().unwrap()
    };
    (port("public"), port("side"))
}

/// Runs a scenario within one UTC day. The real program has the real clock: if midnight falls into the scenario, its
/// result is discarded, and it runs again.
pub fn within_one_day(scenario: impl Fn()) {
    let today = || Clock::system().now().wall.day();
    loop {
        let start = today();
        let outcome = catch_unwind(AssertUnwindSafe(&scenario));
        if start == today() {
            return outcome.unwrap_or_else(|reason| resume_unwind(reason));
        }
    }
}

/// Writes a file that only its owner can read.
pub fn write_secret(path: &Path, text: &str) {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// The environment of a server with the built-in backend.
pub const BUILT_IN: [(&str, &str); 1] = [("SCOREGATE_UPSTREAM", "built-in")];

/// `scoregate keys` for one data directory.
pub struct Keys<'d>(pub &'d Path);

impl Keys<'_> {
    /// Runs a command to its end.
    pub fn run(&self, arguments: &[&str]) -> CommandOutput {
        let data_dir = ["--data-dir", self.0.to_str().unwrap()];
        run(&[&["keys"], arguments, &data_dir].concat())
    }

    /// Its JSON output.
    pub fn json(&self, arguments: &[&str]) -> serde_json::Value {
        self.run(&[arguments, &["--json"]].concat()).with(0).json()
    }

    /// Runs a command with this standard input.
    pub fn run_with_input(&self, arguments: &[&str], input: &[u8]) -> CommandOutput {
        let data_dir = ["--data-dir", self.0.to_str().unwrap()];
        run_with_input(&[&["keys"], arguments, &data_dir].concat(), input)
    }

    /// Creates an application and returns its id and its key.
    pub fn create(&self, tier: &str) -> (String, String) {
        let issued = self.json(&["create", "--name", "Weather site", "--tier", tier]);
        let word = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        (word(&issued["application"]["id"]), word(&issued["key"]))
    }
}

/// A client of a gateway that was not started by a `World`.
pub struct ProgramClient {
    address: SocketAddr,
    rules: Arc<Rules>,
}

impl ProgramClient {
    pub async fn to(address: SocketAddr) -> Self {
        let mut connection = Connection::open(address).await;
        connection.write(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
        let description = connection.read(false).await.unwrap();
        Self { address, rules: Rules::of(&description.body, OptionalHeaders::default()) }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A GET request with this key.
    pub fn get(&self, target: &str, key: &str) -> RequestBuilder {
        RequestBuilder::new(self.address, Arc::clone(&self.rules), "GET", target).key(key)
    }

    /// The tier and the application by `/me`, or the code of the error.
    pub async fn identity(&self, key: &str) -> Result<(String, String), String> {
        let response = self.get("/api/v1/me", key).send().await;
        if response.status != 200 {
            return Err(response.code());
        }
        let item = &response.json()["data"][0];
        let word = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        Ok((word(&item["tier"]), word(&item["application"]["id"])))
    }
}
