//! The cost of the built-in backend: importing runs, opening an archive, a complete refresh, queries during a
//! refresh, and memory.
//!
//! `cargo bench --bench measure -- scoring` is small; `SCOREGATE_FULL=1` imports a million trials with the real program,
//! refreshes 150 and 2,000 models over 35 days, and opens a year of 150. Detection delays are measured in `detection`.

use std::{
    fmt::Write as _,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    path::Path,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use scoregate::backend::{self, BackendServer};
use scoregate_base::{
    clock::{Clock, ManualClock, Wall},
    routes::{DocumentKey, Route},
};
use scoregate_scoring::{Archive, RunSource, Scoring, simulated_records};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

const BATCH: usize = 4_096;
const SEED: u64 = 7;
const ROUNDS: u32 = 11;
const PROGRAM: &str = env!("CARGO_BIN_EXE_scoregate");

pub fn run() {
    let is_full = std::env::var_os("SCOREGATE_FULL").is_some();
    let (models, days) = if is_full { (150, 35) } else { (20, 7) };
    imports(models, if is_full { 510 } else { 48 });
    let place = TempDir::new().unwrap();
    let path = place.path().join("runs.db");
    fill(&path, models, days);
    opens(&path);
    refreshes(&path);
    answers_meanwhile(&path);
    stands(&path);
    if is_full {
        let place = TempDir::new().unwrap();
        let path = place.path().join("runs.db");
        fill(&path, models, 365);
        opens(&path);
        let place = TempDir::new().unwrap();
        let path = place.path().join("runs.db");
        fill(&path, 2_000, days);
        refreshes(&path);
    }
}

fn now() -> Wall {
    Wall::parse_rfc3339("2026-11-21T12:34:00Z").unwrap()
}

/// The real program imports a file, and then the same file again.
fn imports(models: usize, hours: u64) {
    let place = TempDir::new().unwrap();
    let file = place.path().join("runs.jsonl");
    let archive = place.path().join("runs.db");
    let mut text = std::io::BufWriter::new(std::fs::File::create(&file).unwrap());
    let mut trials = 0;
    for record in simulated_records(SEED, models, now(), hours) {
        let line = record.write();
        trials += line.matches("\"scores\"").count();
        writeln!(text, "{line}").unwrap();
    }
    text.into_inner().unwrap().sync_all().unwrap();
    let size = std::fs::metadata(&file).unwrap().len() >> 20;
    for turn in ["first", "again"] {
        let began = Instant::now();
        let mut import = Command::new(PROGRAM)
            .args([
                "scoring",
                "import",
                file.to_str().unwrap(),
                "--archive",
                archive.to_str().unwrap(),
            ])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut most = 0;
        while import.try_wait().unwrap().is_none() {
            most = most.max(memory(&import.id().to_string(), "VmHWM:").unwrap_or(0));
            std::thread::sleep(Duration::from_millis(5));
        }
        let took = began.elapsed();
        let mut told = String::new();
        import
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut told)
            .unwrap();
        #[expect(clippy::cast_precision_loss, reason = "a rate to be read by people")]
        let rate = trials as f64 / took.as_secs_f64();
        println!(
            "import, {turn}: {trials} trials, {size} MiB of lines, in {took:.1?}: {rate:.0} trials a second, {most} MiB at most; {}",
            told.trim()
        );
    }
}

fn fill(path: &Path, models: usize, days: u64) {
    let archive = Archive::open(path).unwrap();
    let mut runs = 0;
    let mut records = simulated_records(SEED, models, now(), days * 24).peekable();
    while records.peek().is_some() {
        let batch: Vec<_> = records.by_ref().take(BATCH).collect();
        archive.import(&batch, now()).unwrap();
        runs += batch.len();
    }
    drop(archive);
    let size = std::fs::metadata(path).unwrap().len() >> 20;
    println!("an archive of {models} models over {days} days: {runs} runs, {size} MiB");
}

fn opens(path: &Path) {
    let began = Instant::now();
    let archive = Archive::open(path).unwrap();
    let opened = began.elapsed();
    let scoring = Scoring::open(RunSource::Archive(archive), now()).unwrap();
    let models = scoring.model_ids().len();
    println!(
        "opened in {opened:.1?}, the first snapshot, of {models} models, after {:.1?}",
        began.elapsed()
    );
}

fn refreshes(path: &Path) {
    let scoring = Scoring::open(RunSource::Archive(Archive::open(path).unwrap()), now()).unwrap();
    let worked = on_cpu();
    let mut took: Vec<Duration> = (1..=ROUNDS)
        .map(|hour| {
            let later = now().plus(Duration::from_hours(1) * hour);
            let began = Instant::now();
            assert!(scoring.refresh(later).unwrap());
            began.elapsed()
        })
        .collect();
    let cpu = on_cpu().saturating_sub(worked) / ROUNDS;
    took.sort_unstable();
    let median = took.get(took.len() / 2).unwrap();
    let worst = took.last().unwrap();
    println!(
        "a whole refresh: {cpu:.1?} of CPU, mean of {ROUNDS}; {median:.1?} by the clock at the median, worst {worst:.1?}"
    );
    let mut bytes = 0;
    for id in scoring.model_ids() {
        bytes += scoring
            .answer(&DocumentKey::of_model(Route::Model, id))
            .unwrap()
            .data
            .len();
    }
    println!("its model details alone: {bytes} bytes of JSON");
}

/// `/models` over a socket, during refreshes and without any.
fn answers_meanwhile(path: &Path) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let scoring = Scoring::open(RunSource::Archive(Archive::open(path).unwrap()), now()).unwrap();
    let scoring = Arc::new(scoring);
    let (clock, hand) = Clock::manual(now());
    let stop = CancellationToken::new();
    let listener = runtime
        .block_on(tokio::net::TcpListener::bind("127.0.0.1:0"))
        .unwrap();
    let address = listener.local_addr().unwrap();
    let backend = Arc::new(BackendServer::new(
        Arc::clone(&scoring),
        "a bench".into(),
        clock,
    ));
    let serving = runtime.spawn(backend::serve(listener, backend, 16, stop.clone()));
    let calm = measured(address, || std::thread::sleep(Duration::from_secs(1)));
    let meanwhile = measured(address, || {
        (0..ROUNDS).for_each(|_| pass_an_hour(&scoring, &hand));
    });
    for (when, [middle, late, latest], count) in [
        ("while nothing is made", calm.0, calm.1),
        ("while snapshots are made", meanwhile.0, meanwhile.1),
    ] {
        println!(
            "/models {when}: median {middle:.1?}, p99 {late:.1?}, p99.9 {latest:.1?} of {count}"
        );
    }
    stop.cancel();
    runtime.block_on(serving).unwrap();
}

fn pass_an_hour(scoring: &Scoring, hand: &ManualClock) {
    let due = scoring.next_refresh();
    hand.advance(Duration::from_hours(1));
    // A thread that was about to sleep at the full hour sleeps for ten more seconds.
    while scoring.next_refresh() == due {
        std::thread::sleep(Duration::from_millis(1));
        hand.advance(Duration::from_millis(100));
    }
}

/// Sends requests one after another during `meanwhile`: median, 99th and 99.9th percentile, and number.
fn measured(address: SocketAddr, meanwhile: impl FnOnce()) -> ([Duration; 3], usize) {
    let done = AtomicBool::new(false);
    let mut took = std::thread::scope(|scope| {
        let asking = scope.spawn(|| {
            let mut took = Vec::new();
            let connect = || BufReader::new(TcpStream::connect(address).unwrap());
            let mut connection = connect();
            while !done.load(Ordering::Relaxed) {
                let began = Instant::now();
                // A connection is closed after ten minutes, which pass quickly here.
                match ask(&mut connection) {
                    Ok(()) => took.push(began.elapsed()),
                    Err(_) => connection = connect(),
                }
            }
            took
        });
        meanwhile();
        done.store(true, Ordering::Relaxed);
        asking.join().unwrap()
    });
    took.sort_unstable();
    let at = |share: usize| *took.get((took.len() - 1) * share / 1_000).unwrap();
    ([at(500), at(990), at(999)], took.len())
}

/// Requests the list of models and reads the response.
fn ask(connection: &mut BufReader<TcpStream>) -> std::io::Result<()> {
    let request =
        b"GET /api/v1/models?period=24h&sortBy=combined HTTP/1.1\r\nHost: localhost\r\n\r\n";
    connection.get_mut().write_all(request)?;
    let mut line = String::new();
    let mut length = 0;
    while line != "\r\n" {
        line.clear();
        if connection.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        if let Some(number) = line.strip_prefix("content-length: ") {
            length = number.trim().parse().unwrap();
        }
    }
    assert!(length > 1_000, "a list of models");
    connection.read_exact(&mut vec![0; length])
}

/// The memory of the real program on an archive.
fn stands(path: &Path) {
    let mut serving = Command::new(PROGRAM)
        .args([
            "scoring",
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--archive",
            path.to_str().unwrap(),
        ])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = String::new();
    let mut log = BufReader::new(serving.stderr.take().unwrap());
    while !output.contains("stop with Ctrl-C") {
        assert!(
            log.read_line(&mut output).unwrap() > 0,
            "it ended: {output}"
        );
    }
    let id = serving.id().to_string();
    let mut line = String::from("scoregate scoring serve on it:");
    for (which, words) in [("VmRSS:", "resident"), ("VmHWM:", "at most")] {
        write!(line, " {} MiB {words}", memory(&id, which).unwrap()).unwrap();
    }
    println!("{line}");
    serving.kill().unwrap();
    serving.wait().unwrap();
}

/// CPU time of this process, in steps of 10 ms: unlike the clock, not affected by other processes.
fn on_cpu() -> Duration {
    let status = std::fs::read_to_string("/proc/self/stat").unwrap();
    let after_the_name = status.rsplit(')').next().unwrap();
    let of_user_and_system = after_the_name.split_whitespace().skip(11).take(2);
    Duration::from_millis(
        of_user_and_system
            .map(|ticks| 10 * ticks.parse::<u64>().unwrap())
            .sum(),
    )
}

/// Memory of a process in MiB; `None` if it has just ended.
fn memory(process: &str, which: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with(which))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? / 1024)
}
