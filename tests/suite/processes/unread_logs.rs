//! Unread logs: standard output and standard error are pipes that are full and stay full. No request, no shutdown and
//! no panic waits for them. Also the limits on floods of events. Combinations with other failures are in
//! `combined_failures`.

use std::{
    io::{BufRead as _, BufReader, PipeReader, PipeWriter, Write as _, pipe},
    net::SocketAddr,
    panic::catch_unwind,
    path::Path,
    process::{Command, Stdio},
    sync::mpsc::channel,
    time::{Duration, Instant},
};

use rustix::{io::ioctl_fionread, pipe::fcntl_setpipe_size};
use scoregate_observe::telemetry::log::{self, LogConfig};
use tempfile::TempDir;

use crate::{
    backend::{Act, Backend, Received, respond},
    load_clients::{LoadClient, Reply, Wire, prepare},
    program::{ChildProcess, command, ports_in},
    world::good,
};

/// The smallest possible pipe.
const PIPE: usize = 4_096;
/// Maximum time of everything else on a busy machine. A wait for a log would never end.
const TIMEOUT: Duration = Duration::from_secs(30);
/// A shutdown without requests in flight waits a second in total for its last log lines.
const STOP: Duration = Duration::from_secs(10);

/// A pipe of a child process whose reader can stop.
struct Pipe {
    reader: BufReader<PipeReader>,
    writer: Option<PipeWriter>,
}

impl Pipe {
    fn new() -> (Self, Stdio) {
        let (reader, writer) = pipe().unwrap();
        fcntl_setpipe_size(&writer, PIPE).unwrap();
        let end = writer.try_clone().unwrap();
        (
            Self {
                reader: BufReader::new(reader),
                writer: Some(writer),
            },
            end.into(),
        )
    }

    fn line_with(&mut self, words: &str) -> String {
        let mut line = String::new();
        while !line.contains(words) {
            line.clear();
            assert!(
                self.reader.read_line(&mut line).unwrap() > 0,
                "the program ended without {words:?}"
            );
        }
        line
    }

    /// Stops reading. When this returns, the pipe is full.
    fn fill(&mut self) {
        let mut writer = self.writer.take().unwrap();
        // Blocks once the pipe is full, until the reader is dropped.
        std::thread::spawn(move || while writer.write_all(b"\n").is_ok() {});
        while ioctl_fionread(self.reader.get_ref()).unwrap() < PIPE as u64 {
            std::thread::yield_now();
        }
    }
}

/// The program with unread output.
pub struct UnreadProgram {
    child: ChildProcess,
    out: Pipe,
    err: Pipe,
    _scratch: TempDir,
    pub public: SocketAddr,
    pub side: SocketAddr,
}

impl UnreadProgram {
    /// `serve` on free ports. Its logs are read until it serves.
    pub fn serve(data_dir: &Path, environment: &[(&str, &str)]) -> Self {
        let free = [
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--admin-listen",
            "127.0.0.1:0",
            "--data-dir",
        ];
        let arguments: Vec<&str> = free
            .into_iter()
            .chain([data_dir.to_str().unwrap()])
            .collect();
        let (out, stdout) = Pipe::new();
        let (mut err, stderr) = Pipe::new();
        let scratch = TempDir::new().unwrap();
        let mut command = command(&arguments, environment);
        command
            .env("TMPDIR", scratch.path())
            .stdout(stdout)
            .stderr(stderr);
        let child = ChildProcess(command.spawn().unwrap());
        let (public, side) = ports_in(&err.line_with("serving"));
        Self {
            child,
            out,
            err,
            _scratch: scratch,
            public,
            side,
        }
    }

    /// Stops both readers; both pipes are full.
    pub fn fill(&mut self) {
        self.out.fill();
        self.err.fill();
    }

    /// Stops it and returns the duration, which must be well within `limit`.
    pub fn stop_within(self, limit: Duration) -> Duration {
        let Self {
            mut child,
            out,
            err,
            ..
        } = self;
        let start = Instant::now();
        let id = child.0.id();
        let signal = |name: &str| {
            Command::new("sh")
                .arg("-c")
                .arg(format!("kill -{name} {id}"))
                .status()
        };
        assert!(signal("TERM").unwrap().success());
        let (sender, ended) = channel();
        std::thread::spawn(move || sender.send(child.0.wait()));
        let Ok(status) = ended.recv_timeout(limit) else {
            signal("KILL").unwrap();
            panic!("the program did not stop within {limit:?}");
        };
        assert_eq!(status.unwrap().code(), Some(0));
        drop((out, err));
        start.elapsed()
    }
}

/// A backend that fails for incidents only.
pub fn fails_for_incidents(received: &Received) -> Act {
    if received.target().contains("/incidents") {
        return respond("500 Internal Server Error", &[], "");
    }
    good(received)
}

/// Requests documents whose fetches fail, with good ones in between so that the circuit breaker stays closed. Returns
/// the statuses.
fn request_failing_documents(
    public: SocketAddr,
    load_client: &LoadClient,
    times: u32,
) -> Vec<(u16, u16)> {
    let mut connection = Wire::open_with_timeout(public, TIMEOUT).unwrap();
    let mut status = |target: String| match connection.get(&target, &load_client.key) {
        Reply::Response { status, .. } => status,
        lost @ (Reply::NoResponse | Reply::Partial) => panic!("{target}: {lost:?}"),
    };
    let statuses = (1..=times).map(|number| {
        (
            status(format!("/api/v1/incidents?limit={number}")),
            status(format!("/api/v1/models/m{number}")),
        )
    });
    statuses.collect()
}

const TIMES: u32 = 35;

#[test]
fn a_log_reader_that_stopped_delays_no_request_no_probe_and_no_shutdown() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let backend = runtime.block_on(Backend::start(fails_for_incidents));
    let directory = TempDir::new().unwrap();
    let url = backend.url();
    let load_client = prepare(directory.path(), &[("pro", 100_000)]).remove(0);
    let mut program = UnreadProgram::serve(
        directory.path(),
        &[
            ("SCOREGATE_UPSTREAM_URL", &url),
            ("SCOREGATE_LOG_SAMPLE_ONE_IN", "1"),
        ],
    );
    program.fill();
    let statuses = request_failing_documents(program.public, &load_client, TIMES);
    assert_eq!(statuses, [(503, 200); TIMES as usize]);
    for (port, path) in [
        (program.public, "/healthz"),
        (program.side, "/healthz"),
        (program.side, "/readyz"),
    ] {
        assert_eq!(
            Wire::open_with_timeout(port, TIMEOUT)
                .unwrap()
                .get(path, "")
                .status_and_code()
                .0,
            200,
            "{path}"
        );
    }
    program.stop_within(STOP);
}

/// Marks the child process of a test, which runs the child's part.
const OTHER_PROCESS: &str = "SCOREGATE_UNREAD_OTHER_PROCESS";
/// Panics whose messages are more than a pipe can hold.
const PANICS: usize = 10;

fn panics_often() {
    log::start(&LogConfig {
        json: false,
        level: "info".into(),
    })
    .unwrap();
    for number in 0..PANICS {
        let message = format!("panic {number} {}", "x".repeat(PIPE / 2));
        let thread = std::thread::Builder::new().name(format!("panicking-{number}"));
        let panics = move || drop(catch_unwind(move || panic!("{message}")));
        thread.spawn(panics).unwrap().join().unwrap();
    }
    log::finish(Duration::from_millis(500));
}

fn other_process(stderr: Stdio) -> ChildProcess {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let test = "processes::unread_logs::a_panic_waits_for_no_log_reader_and_is_logged";
    command.args(["--exact", "--nocapture", test]);
    ChildProcess(
        command
            .env(OTHER_PROCESS, "1")
            .stdout(Stdio::null())
            .stderr(stderr)
            .spawn()
            .unwrap(),
    )
}

#[test]
fn a_panic_waits_for_no_log_reader_and_is_logged() {
    if std::env::var_os(OTHER_PROCESS).is_some() {
        return panics_often();
    }
    let (mut err, stderr) = Pipe::new();
    err.fill();
    let mut child = other_process(stderr);
    let id = child.0.id();
    let (sender, ended) = channel();
    std::thread::spawn(move || sender.send(child.0.wait()));
    let Ok(status) = ended.recv_timeout(TIMEOUT) else {
        Command::new("sh")
            .arg("-c")
            .arg(format!("kill -KILL {id}"))
            .status()
            .unwrap();
        panic!("a panic waits for a log reader");
    };
    assert!(status.unwrap().success());

    let (mut err, stderr) = Pipe::new();
    let mut child = other_process(stderr);
    let last = format!("panicking-{}", PANICS - 1);
    let line = err.line_with(&last);
    let words = [
        "ERROR",
        "thread panicked",
        "tests/suite/processes/unread_logs.rs:",
        "panic 9 xxx",
    ];
    assert!(words.iter().all(|word| line.contains(word)), "{line}");
    drop(err);
    assert!(child.0.wait().unwrap().success());
}
