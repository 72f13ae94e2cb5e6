//! Handover under load: a process takes over the socket of another, and settings are reloaded. No request is refused
//! and no connection is interrupted.

use std::{
    net::{SocketAddr, TcpListener},
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use scoregate_base::clock::Clock;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::{
    full_runs::{BUILD, CARGO_TEST, cores, is_full_size, write_page},
    load_clients::{LoadClient, prepare},
    program::Program,
};

/// The size of the test.
#[derive(Clone, Copy)]
struct Scale {
    /// Total number of requests.
    requests: u32,
    /// Requests per second.
    rate: u32,
    /// Number of changes: alternately of the settings and of the process.
    changes: u32,
}

const CALLERS: u32 = 50;

/// The results of the callers.
#[derive(Default)]
struct CallerResults {
    answered: AtomicU32,
    connections: AtomicU32,
    failed: AtomicU32,
    why: Mutex<Vec<String>>,
}

struct Caller {
    address: SocketAddr,
    request: String,
    stream: Option<TcpStream>,
    results: Arc<CallerResults>,
}

impl Caller {
    /// Sends one request. After `Connection: close` the caller reconnects. No request is ever sent twice.
    async fn send_request(&mut self) -> std::io::Result<()> {
        let mut stream = if let Some(stream) = self.stream.take() {
            stream
        } else {
            self.results.connections.fetch_add(1, Ordering::Relaxed);
            TcpStream::connect(self.address).await?
        };
        stream.write_all(self.request.as_bytes()).await?;
        let mut bytes = Vec::new();
        let mut chunk = [0; 4_096];
        let whole = loop {
            let read = stream.read(&mut chunk).await?;
            bytes.extend_from_slice(&chunk[..read]);
            let text = String::from_utf8_lossy(&bytes);
            if let Some((head, body)) = text.split_once("\r\n\r\n") {
                let length = head
                    .split("content-length: ")
                    .nth(1)
                    .and_then(|rest| rest.split("\r\n").next());
                if body.len() >= length.unwrap().parse().unwrap() {
                    break head.to_owned();
                }
            }
            if read == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        };
        if !whole.starts_with("HTTP/1.1 200 ") {
            return Err(std::io::Error::other(whole));
        }
        if !whole.contains("connection: close") {
            self.stream = Some(stream);
        }
        Ok(())
    }
}

/// Sends all requests at a steady rate.
async fn run_load(
    address: SocketAddr,
    load_client: &LoadClient,
    scale: &Scale,
    results: &Arc<CallerResults>,
) {
    let clock = Clock::system();
    let turns = scale.requests / CALLERS;
    let start = clock.mono();
    let apart = Duration::from_secs(1) * CALLERS / scale.rate;
    let request = format!(
        "GET /api/v1/index HTTP/1.1\r\nHost: a\r\nX-API-Key: {}\r\n\r\n",
        load_client.key
    );
    let callers = (0..CALLERS).map(|number| {
        let mut caller = Caller {
            address,
            request: request.clone(),
            stream: None,
            results: Arc::clone(results),
        };
        let clock = clock.clone();
        tokio::spawn(async move {
            for turn in 0..turns {
                clock
                    .sleep_until(start.plus(apart * turn + apart * number / CALLERS))
                    .await;
                match caller.send_request().await {
                    Ok(()) => caller.results.answered.fetch_add(1, Ordering::Relaxed),
                    Err(error) => {
                        let what = format!("caller {number}, turn {turn}: {error}");
                        caller.results.why.lock().unwrap().push(what);
                        caller.results.failed.fetch_add(1, Ordering::Relaxed)
                    }
                };
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.unwrap();
    }
}

fn settings(file: &Path, data_dir: &Path, day: u32) {
    let text = format!(
        "admin.listen = \"127.0.0.1:0\"\nupstream = \"built-in\"\ndata_dir = \"{}\"\n\
         [tiers.enterprise]\nminute = 1000\nday = {day}\npaid = true\n",
        data_dir.display()
    );
    std::fs::write(file, text).unwrap();
}

/// Changes the settings and the process alternately while requests are sent.
fn change(
    socket: &TcpListener,
    directory: &Path,
    first: Program,
    scale: &Scale,
    results: &CallerResults,
) -> Program {
    let file = directory.join("scoregate.toml");
    let arguments = ["serve", "--config", file.to_str().unwrap()];
    let mut program = first;
    for number in 1..=scale.changes {
        let due = scale.requests * number / (scale.changes + 1);
        while results.answered.load(Ordering::Relaxed) + results.failed.load(Ordering::Relaxed)
            < due
        {
            std::thread::yield_now();
        }
        if number % 2 == 1 {
            settings(&file, &directory.join("data"), 100_000 + number);
            program.signal("HUP");
            program.logs("settings reloaded");
        } else {
            // The next process starts before this one stops, and waits for its data directory.
            let next = Program::start_on(socket, &arguments, &[]);
            let ended = program.stop();
            assert_eq!(ended.code, Some(0), "{}", ended.err);
            next.public();
            program = next;
        }
    }
    program
}

/// Runs the test and returns the text of its page.
fn run(scale: &Scale) -> String {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("scoregate.toml");
    let data_dir = directory.path().join("data");
    std::fs::create_dir(&data_dir).unwrap();
    settings(&file, &data_dir, 100_000);
    let load_client = prepare(&data_dir, &[("enterprise", 1_000_000)]).remove(0);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let socket = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        socket.listen(4_096).unwrap().into_std().unwrap()
    });
    let address = socket.local_addr().unwrap();
    let first = Program::start_on(&socket, &["serve", "--config", file.to_str().unwrap()], &[]);
    assert_eq!(first.public(), address);
    let results = Arc::new(CallerResults::default());
    let asking = runtime.spawn({
        let load_client = load_client.clone();
        let results = Arc::clone(&results);
        let scale = *scale;
        async move { run_load(address, &load_client, &scale, &results).await }
    });
    let last = change(&socket, directory.path(), first, scale, &results);
    runtime.block_on(asking).unwrap();
    assert_eq!(last.stop().code, Some(0));
    let [answered, failed, connections] =
        [&results.answered, &results.failed, &results.connections]
            .map(|count| count.load(Ordering::Relaxed));
    assert_eq!(
        (answered, failed),
        (scale.requests, 0),
        "{:?}",
        results.why.lock().unwrap()
    );
    assert!(
        connections > CALLERS,
        "all callers must reconnect to another process"
    );
    format!(
        "`{CARGO_TEST} --test suite handover::` with the {BUILD} build, on {} cores shared with the callers: {CALLERS} callers \
         send {} requests a second in total. Meanwhile there are {} changes: alternately, the settings are reloaded and a new \
         process takes over the socket.\n\n\
         All {answered} requests, on {connections} connections, got a 200. None was refused or cut off.\n",
        cores(),
        scale.rate,
        scale.changes
    )
}

#[test]
fn a_process_takes_over_from_another_under_load_and_no_request_is_refused_or_cut_off() {
    if is_full_size() {
        let seen = run(&Scale {
            requests: 60_000,
            rate: 2_000,
            changes: 6,
        });
        let title = "The process and its settings change under load";
        write_page("handover", title, &seen);
    } else {
        run(&Scale {
            requests: 5_000,
            rate: 1_000,
            changes: 3,
        });
    }
}
