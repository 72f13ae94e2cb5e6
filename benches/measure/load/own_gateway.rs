//! A gateway of the bench's own: the real program on a free port, with keys, and with the built-in backend over
//! simulated runs or a fake one. It inherits its socket, so that another process can take over.

use std::{
    fmt::Write as _,
    io::{BufRead as _, BufReader, Write as _},
    net::{SocketAddr, TcpListener},
    os::fd::OwnedFd,
    path::Path,
    process::{Child, Command, Stdio},
    sync::Mutex,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};
use scoregate_base::{
    clock::Clock,
    keys::{Digest, KeyForm},
};
use scoregate_scoring::simulated_records;
use socket2::{Domain, Socket, Type};
use tempfile::TempDir;

use super::{fake_backend::FakeBackend, plan::Key};

const PROGRAM: &str = env!("CARGO_BIN_EXE_scoregate");
const MODELS: usize = 20;
/// Long enough for scores of all periods but the longest.
const HOURS: u64 = 48;
/// The tiers of its keys, and their share in tenths.
const TIERS: [(&str, usize); 3] = [("free", 6), ("pro", 3), ("enterprise", 1)];

/// The gateway.
pub struct OwnGateway {
    directory: TempDir,
    socket: TcpListener,
    program: Mutex<Program>,
    /// Keys without effective limits.
    pub keys: Vec<Key>,
    /// A key limited to sixty requests a minute.
    pub limited: Key,
}

/// A process that is killed when this is dropped.
struct Program {
    child: Child,
    serving: std::sync::mpsc::Receiver<()>,
}

impl OwnGateway {
    /// Starts it with this backend, or the built-in one.
    pub fn start(fake: Option<&FakeBackend>, keys: usize) -> Self {
        let directory = TempDir::new().unwrap();
        let data_dir = directory.path().join("data");
        std::fs::create_dir(&data_dir).unwrap();
        settings(directory.path(), fake);
        if fake.is_none() {
            import_runs(directory.path(), &data_dir);
        }
        let mut made: Vec<Key> = (0..keys).map(|number| made_key(tier_of(number))).collect();
        made.push(made_key("limited"));
        import_keys(directory.path(), &made);
        let limited = made.pop().expect("it was pushed just now");
        let socket = listen();
        let program = Mutex::new(Program::start(directory.path(), &socket));
        program.lock().unwrap().serves();
        Self {
            directory,
            socket,
            program,
            keys: made,
            limited,
        }
    }

    /// Its address.
    pub fn address(&self) -> SocketAddr {
        self.socket.local_addr().unwrap()
    }

    /// Starts another process, and stops the first; returns the time until the second serves.
    pub fn takes_over(&self) -> Duration {
        let begun = Instant::now();
        let mut program = self.program.lock().unwrap();
        let next = Program::start(self.directory.path(), &self.socket);
        let mut before = std::mem::replace(&mut *program, next);
        kill_process(Pid::from_child(&before.child), Signal::TERM).unwrap();
        let ended = before.child.wait().unwrap();
        assert!(ended.success(), "the process before ended with {ended}");
        program.serves();
        begun.elapsed()
    }

    /// Resident memory, in MiB.
    pub fn resident(&self) -> f64 {
        let id = self.program.lock().unwrap().child.id();
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .unwrap();
        line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1_024.0
    }
}

impl Program {
    /// Passes this socket as systemd does.
    fn start(directory: &Path, socket: &TcpListener) -> Self {
        let hand_over =
            "exec 3<&0 0</dev/null; export LISTEN_PID=$$ LISTEN_FDS=1; exec \"$0\" \"$@\"";
        let file = directory.join("scoregate.toml");
        let mut command = Command::new("/bin/sh");
        command.args([
            "-c",
            hand_over,
            PROGRAM,
            "serve",
            "--config",
            file.to_str().unwrap(),
        ]);
        command
            .env_clear()
            .env("TMPDIR", directory)
            .stdin(OwnedFd::from(socket.try_clone().unwrap()));
        let mut child = command
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap())
            .lines()
            .map_while(Result::ok);
        let (says, serving) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for line in lines {
                if line.contains("serving") {
                    says.send(())
                        .expect("the program is kept for as long as it talks");
                } else if line.contains("ERROR") {
                    drop(writeln!(std::io::stderr(), "{line}"));
                }
            }
        });
        Self { child, serving }
    }

    fn serves(&self) {
        self.serving
            .recv()
            .expect("the program ended before it served");
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Fails if it has ended already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// A free port. Its queue is longer than the standard library's default: clients wait there while no process accepts.
fn listen() -> TcpListener {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    socket.bind(&address.into()).unwrap();
    socket.listen(4_096).unwrap();
    socket.into()
}

fn settings(directory: &Path, fake: Option<&FakeBackend>) {
    let data_dir = directory.join("data");
    let mut text = format!(
        "admin.listen = \"127.0.0.1:0\"\ndata_dir = \"{}\"\nserver.max_connections_per_address = 10000\nserver.max_connections_per_application = 10000\n",
        data_dir.display()
    );
    match fake {
        None => text.push_str("upstream = \"built-in\"\n"),
        Some(fake) => {
            let url = format!("http://{}", fake.address);
            write!(
                text,
                "upstream.url = \"{url}\"\nupstream.first_byte_timeout = \"1s\"\nupstream.timeout = \"2s\"\n"
            )
            .unwrap();
        }
    }
    for (tier, _) in TIERS {
        let is_paid = tier != "free";
        write!(
            text,
            "[tiers.{tier}]\nminute = 100000000\nday = 100000000\npaid = {is_paid}\n"
        )
        .unwrap();
    }
    text.push_str("[tiers.limited]\nminute = 60\nday = 100000\npaid = true\n");
    std::fs::write(directory.join("scoregate.toml"), text).unwrap();
}

fn tier_of(number: usize) -> &'static str {
    let mut position = number % 10;
    for (tier, of_ten) in TIERS {
        if position < of_ten {
            return tier;
        }
        position -= of_ten;
    }
    "free"
}

/// A key in the gateway's format.
pub fn made_key(tier: &str) -> Key {
    let secret = KeyForm::new("sg_live", false).mint().unwrap();
    Key {
        text: secret.expose().to_owned(),
        tier: tier.to_owned(),
    }
}

fn import_keys(directory: &Path, keys: &[Key]) {
    let mut text = String::from("sha256,name,tier\n");
    for (number, key) in keys.iter().enumerate() {
        writeln!(
            text,
            "{},caller {number},{}",
            Digest::of(&key.text),
            key.tier
        )
        .unwrap();
    }
    let file = directory.join("keys.csv");
    let config = directory.join("scoregate.toml");
    std::fs::write(&file, text).unwrap();
    run(&[
        "keys",
        "import",
        file.to_str().unwrap(),
        "--config",
        config.to_str().unwrap(),
    ]);
}

fn import_runs(directory: &Path, data_dir: &Path) {
    let file = directory.join("runs.jsonl");
    let mut text = std::io::BufWriter::new(std::fs::File::create(&file).unwrap());
    for record in simulated_records(7, MODELS, Clock::system().now().wall, HOURS) {
        writeln!(text, "{}", record.write()).unwrap();
    }
    text.flush().unwrap();
    run(&[
        "scoring",
        "import",
        file.to_str().unwrap(),
        "--data-dir",
        data_dir.to_str().unwrap(),
    ]);
}

fn run(arguments: &[&str]) {
    let done = Command::new(PROGRAM)
        .args(arguments)
        .env_clear()
        .output()
        .unwrap();
    let [stdout, stderr] =
        [&done.stdout, &done.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(done.status.success(), "{arguments:?}: {stdout}{stderr}");
}
