//! Slow HTTP/1.1 clients on TCP and on TLS against the real program with its default deadlines. They send a head
//! slowly, send a body slowly, read nothing, or read a few bytes a second. All are closed in time, and other callers
//! get responses without delay.
//!
//! Small in every run; `SCOREGATE_FULL=1` runs 900 of each kind and writes a dated page to `tests/results/`. Run that
//! with `--test-threads=1`, so that the figures belong to a single attack.

#![expect(clippy::print_stdout, reason = "the tests print their figures")]

use std::{
    fmt::Write as _,
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use rustls::pki_types::ServerName;
use scoregate_base::clock::Clock;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    sync::Semaphore,
};
use tokio_rustls::client::TlsStream;

use crate::{
    connections::http2::unread_responses::{AttackTarget, program},
    full_runs::{BUILD, CARGO_TEST, cores, is_full_size, write_page},
};

const SECOND: Duration = Duration::from_secs(1);
/// Concurrent attackers of each kind: on TCP, on TLS, and on each of them at full size.
const SMALL: [u32; 2] = [100, 25];
const FULL: u32 = 900;
/// Connections of each kind opened concurrently.
const OPENING_AT_ONCE: usize = 50;

/// The behavior of a slow client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlowBehavior {
    Head,
    Body,
    /// Requests 200 large pages and reads nothing.
    NeverReads,
    /// Requests 200 large pages and reads this many bytes a second.
    Drips(usize),
}

impl SlowBehavior {
    fn opening(self) -> Vec<u8> {
        let page = "GET /docs HTTP/1.1\r\nHost: a\r\n\r\n";
        match self {
            Self::Head => "GET /api/v1/models HTTP/1.1\r\nHost: a\r\nX-Slow: ".into(),
            Self::Body => {
                "POST /api/v1/models HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n".into()
            }
            Self::NeverReads | Self::Drips(_) => page.repeat(200).into(),
        }
    }

    fn describe(self) -> String {
        match self {
            Self::Head => "head, a byte a second".into(),
            Self::Body => "body, a byte a second".into(),
            Self::NeverReads => "never reads".into(),
            Self::Drips(bytes) => format!("reads {bytes} B/s"),
        }
    }

    /// A head must arrive within 9 s of the connection, and a reader has 20 s for each 8 KiB. Up to 64 KiB that the
    /// kernel accepts immediately count as read, so a reader below the minimum rate can last twice as long. Clients
    /// check once a second, and the rest is for a busy machine.
    fn limit(self) -> Duration {
        match self {
            Self::Head | Self::Body => 11 * SECOND,
            Self::NeverReads | Self::Drips(..10) => 30 * SECOND,
            Self::Drips(_) => 45 * SECOND,
        }
    }
}

/// A connection of an attacker with minimal kernel buffers.
enum Line {
    Plain(TcpStream),
    Secure(Box<TlsStream<TcpStream>>),
}

impl Line {
    async fn open(attacked: &AttackTarget, from: u8) -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.set_recv_buffer_size(4_096)?;
        socket.bind(SocketAddr::new(
            IpAddr::V4(Ipv4Addr::new(127, 0, 1, from)),
            0,
        ))?;
        let stream = socket.connect(attacked.address).await?;
        let Some(tls) = attacked.tls_of_http1() else {
            return Ok(Self::Plain(stream));
        };
        let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
        Ok(Self::Secure(Box::new(tls.connect(name, stream).await?)))
    }

    fn tcp(&mut self) -> &mut TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Secure(stream) => stream.get_mut().0,
        }
    }

    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.write_all(bytes).await,
            Self::Secure(stream) => {
                stream.write_all(bytes).await?;
                stream.flush().await
            }
        }
    }

    /// Reads until the gateway closes.
    async fn read_to_the_end(&mut self) {
        let mut chunk = [0; 1_024];
        while !matches!(self.tcp().read(&mut chunk).await, Ok(0) | Err(_)) {}
    }

    /// Reads at most this many available bytes. Returns whether the connection is still open.
    fn reads(&mut self, bytes: usize) -> bool {
        let mut chunk = vec![0; bytes];
        match self.tcp().try_read(&mut chunk) {
            Ok(0) => false,
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
            // Bytes that arrived before the close can still be read.
            Ok(_) => self.tcp().take_error().is_ok_and(|error| error.is_none()),
        }
    }

    /// Runs its slow behavior for a second. Returns whether the connection is still open.
    async fn run_one_second(&mut self, slow: SlowBehavior, clock: &Clock) -> bool {
        let is_open = match slow {
            SlowBehavior::Drips(bytes) => self.reads(bytes),
            SlowBehavior::Head | SlowBehavior::Body | SlowBehavior::NeverReads => {
                self.write(b"x").await.is_ok()
            }
        };
        if is_open && matches!(slow, SlowBehavior::Head | SlowBehavior::Body) {
            return tokio::select! { () = self.read_to_the_end() => false, () = clock.sleep(SECOND) => true };
        }
        clock.sleep(SECOND).await;
        is_open
    }
}

/// The longest duration of this many concurrent connections.
async fn longest(attacked: &AttackTarget, count: u32, from: u8, slow: SlowBehavior) -> Duration {
    let opening = Arc::new(Semaphore::new(OPENING_AT_ONCE));
    let attackers = (0..count).map(|_| {
        let attacked = attacked.clone();
        let opening = Arc::clone(&opening);
        tokio::spawn(async move {
            let clock = Clock::system();
            let turn = opening.acquire().await.unwrap();
            let mut line = Line::open(&attacked, from).await.unwrap();
            drop(turn);
            let start = clock.mono();
            if line.write(&slow.opening()).await.is_ok() {
                while line.run_one_second(slow, &clock).await {}
            }
            clock.mono().since(start)
        })
    });
    let mut longest = Duration::ZERO;
    for attacker in attackers.collect::<Vec<_>>() {
        longest = longest.max(attacker.await.unwrap());
    }
    longest
}

/// Sends requests repeatedly, each on a new connection, until stopped. Returns their number and the longest
/// duration.
async fn normal_client(attacked: AttackTarget, over: Arc<AtomicBool>) -> (u32, Duration) {
    let clock = Clock::system();
    let mut responses = 0;
    let mut longest = Duration::ZERO;
    while !over.load(Ordering::Relaxed) {
        longest = longest.max(attacked.probe(&clock).await);
        responses += 1;
        clock.sleep(SECOND / 20).await;
    }
    (responses, longest)
}

fn count(is_secure: bool) -> u32 {
    if is_full_size() {
        FULL
    } else {
        SMALL[usize::from(is_secure)]
    }
}

async fn check_slow_clients(is_secure: bool) {
    let directory = TempDir::new().unwrap();
    let (program, attacked) = program(directory.path(), 10_000, is_secure);
    let count = count(is_secure);
    let before = program.resident() >> 20;
    let over = Arc::new(AtomicBool::new(false));
    let others = tokio::spawn(normal_client(attacked.clone(), Arc::clone(&over)));
    let [head, body, never] = [
        SlowBehavior::Head,
        SlowBehavior::Body,
        SlowBehavior::NeverReads,
    ];
    let duration = tokio::join!(
        longest(&attacked, count, 1, head),
        longest(&attacked, count, 2, body),
        longest(&attacked, count, 3, never),
    );
    over.store(true, Ordering::Relaxed);
    let (responses, longest_answer) = others.await.unwrap();
    let transport = if is_secure { "TLS" } else { "TCP" };
    let duration = [(head, duration.0), (body, duration.1), (never, duration.2)];
    for (slow, duration) in duration {
        report(transport, count, slow, duration);
    }
    let row = format!(
        "| {transport} | {} | {responses} | {} ms | {before} MB | {} MB |",
        3 * count,
        longest_answer.as_millis(),
        program.most_resident() >> 20
    );
    println!("{row}");
    record(Part::Others, row);
    for (slow, duration) in duration {
        assert!(
            duration < slow.limit(),
            "{transport}: {slow:?} lasted {duration:?}"
        );
    }
    assert!(longest_answer < SECOND, "{transport}: {longest_answer:?}");
    assert_eq!(program.stop().code, Some(0));
}

fn report(transport: &str, count: u32, slow: SlowBehavior, duration: Duration) {
    let row = format!(
        "| {transport} | {count} | {} | {:.1} s |",
        slow.describe(),
        duration.as_secs_f64()
    );
    println!("{row}");
    record(Part::Ends, row);
}

/// Checks TCP and TLS: at full size one after the other, so that the figures are those of one attack.
async fn on_each_transport(check: impl AsyncFn(bool)) {
    if is_full_size() {
        check(false).await;
        check(true).await;
    } else {
        tokio::join!(check(false), check(true));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_clients_are_cut_off_in_time_without_affecting_others() {
    on_each_transport(check_slow_clients).await;
}

/// Readers that take less than 8 KiB in 20 s.
async fn check_slow_readers(is_secure: bool) {
    let directory = TempDir::new().unwrap();
    let (program, attacked) = program(directory.path(), 10_000, is_secure);
    let transport = if is_secure { "TLS" } else { "TCP" };
    let ([one, some, more], many) = ([1, 100, 350].map(SlowBehavior::Drips), count(is_secure));
    let duration = tokio::join!(
        longest(&attacked, many, 1, one),
        longest(&attacked, 1, 2, some),
        longest(&attacked, 1, 3, more)
    );
    for (count, slow, duration) in [
        (many, one, duration.0),
        (1, some, duration.1),
        (1, more, duration.2),
    ] {
        report(transport, count, slow, duration);
        assert!(
            duration < slow.limit(),
            "{transport}: {slow:?} lasted {duration:?}"
        );
    }
    assert_eq!(program.stop().code, Some(0));
}

/// A reader of 1,000 bytes a second reads 20,000 bytes in a write timeout, and 8 KiB are required. Over TLS the
/// kernel buffers whole records of 16 KiB.
async fn check_readers_above_the_minimum(is_secure: bool, bytes: usize) {
    let directory = TempDir::new().unwrap();
    let (program, attacked) = program(directory.path(), 100, is_secure);
    let clock = Clock::system();
    let slow = SlowBehavior::Drips(bytes);
    let mut line = Line::open(&attacked, 1).await.unwrap();
    line.write(&slow.opening()).await.unwrap();
    for second in 0..45 {
        assert!(
            line.run_one_second(slow, &clock).await,
            "{bytes} B/s were cut off after {second} s"
        );
    }
    assert_eq!(program.stop().code, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_clients_hold_no_slot_for_long_unless_they_read_the_minimum() {
    tokio::join!(
        on_each_transport(check_slow_readers),
        check_readers_above_the_minimum(false, 1_000),
        check_readers_above_the_minimum(true, 2_000)
    );
}

/// A table of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Times after which slow clients were closed.
    Ends,
    /// Results of other clients at the same time.
    Others,
    /// The cost of HTTP/2 clients that read nothing.
    Memory,
    /// The cost of one key on many connections.
    Keys,
}

/// Writes a row to the page in `tests/results/`, at full size only.
pub fn record(part: Part, row: String) {
    static ROWS: Mutex<Vec<(Part, String)>> = Mutex::new(Vec::new());
    if !is_full_size() {
        return;
    }
    let mut rows = ROWS.lock().unwrap();
    rows.push((part, row));
    let cores = cores();
    let mut page = format!(
        "`{CARGO_TEST} --test suite -- --test-threads=1 slow_clients:: http2_eight_hundred over_tls_cost`: the \
         {BUILD} build of the program with its default deadlines, on {cores} cores shared with its clients.\n"
    );
    for (part, head) in [
        (
            Part::Ends,
            "HTTP/1.1 clients: the first three kinds concurrently, then the readers\n\n| Transport | Connections | Kind | Longest duration |\n|---|---:|---|---:|",
        ),
        (
            Part::Others,
            "Another caller at the same time\n\n| Transport | Slow connections | Requests | Slowest response | Memory before | Peak |\n|---|---:|---:|---:|---:|---:|",
        ),
        (
            Part::Memory,
            "HTTP/2 clients without a key, with a window of zero\n\n| Transport | Requests | Memory before | During | Peak | After | Per connection during | Per connection, peak | Longest duration |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|",
        ),
        (
            Part::Keys,
            "HTTP/2 clients that hold a hundred requests on each connection from ten addresses\n\n| Transport | Key | Connections tried | Closed by the gateway | Memory used | Peak | Requests of a paid caller | Slowest |\n|---|---|---:|---:|---:|---:|---:|---:|",
        ),
    ] {
        writeln!(page, "\n## {head}").unwrap();
        for (_, row) in rows.iter().filter(|(of, _)| *of == part) {
            writeln!(page, "{row}").unwrap();
        }
    }
    write_page("slow-clients", "Deliberately slow clients", &page);
}
