//! Two hundred connections each that send their head slowly, send a body slowly, or read nothing, against the real
//! program with the deadlines it has by itself: all are closed in time, and whoever else asks is answered at once. And
//! more connections than there are files.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use scoregate::clock::Clock;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use crate::client::Connection;
use crate::shell::{BUILT_IN, Program};

/// How many attack at once in each way.
const MANY: usize = 200;
const SECOND: Duration = Duration::from_secs(1);

/// An attacker's connection, from an address of its own kind; its kernel takes as little as it may.
async fn connect(from: u8, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    socket.bind(SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 1, from)), 0)).unwrap();
    socket.connect(to).await.unwrap()
}

/// How long a connection lasts on which a byte is sent each second, and what arrives is read or is not.
async fn drip(mut stream: TcpStream, opening: &[u8], clock: &Clock, reads: bool) -> Duration {
    let begun = clock.mono();
    let (mut read, mut write) = stream.split();
    let dripping = async {
        if write.write_all(opening).await.is_err() {
            return;
        }
        while write.write_all(b"x").await.is_ok() {
            clock.sleep(SECOND).await;
        }
    };
    let reading = async {
        let mut chunk = [0; 1_024];
        while reads && !matches!(read.read(&mut chunk).await, Ok(0) | Err(_)) {}
        if !reads {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! { () = dripping => {}, () = reading => {} }
    clock.mono().since(begun)
}

/// The longest of so many at once.
async fn longest(from: u8, to: SocketAddr, begin: &str, reads: bool) -> Duration {
    let attackers = (0..MANY).map(|_| {
        let begin = begin.to_owned();
        tokio::spawn(async move {
            let clock = Clock::system();
            drip(connect(from, to).await, begin.as_bytes(), &clock, reads).await
        })
    });
    let mut longest = Duration::ZERO;
    for attacker in attackers.collect::<Vec<_>>() {
        longest = longest.max(attacker.await.unwrap());
    }
    longest
}

/// Asks again and again, each time on a connection of its own, until it is over; the longest that an answer took.
async fn bystander(to: SocketAddr, over: Arc<AtomicBool>) -> Duration {
    let (clock, mut longest) = (Clock::system(), Duration::ZERO);
    while !over.load(Ordering::Relaxed) {
        let begun = clock.mono();
        let mut connection = Connection::open(to).await;
        connection.write(b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert_eq!(connection.read(false).await.unwrap().status, 200);
        longest = longest.max(clock.mono().since(begun));
        clock.sleep(SECOND / 20).await;
    }
    longest
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_heads_slow_bodies_and_clients_that_never_read_are_cut_off_and_nobody_else_notices() {
    let directory = TempDir::new().unwrap();
    let program = Program::serve(directory.path(), &BUILT_IN);
    let to = program.public();
    let over = Arc::new(AtomicBool::new(false));
    let others = tokio::spawn(bystander(to, Arc::clone(&over)));
    let greedy = "GET /docs HTTP/1.1\r\nHost: a\r\n\r\n".repeat(200);
    let (head, body, read) = tokio::join!(
        longest(1, to, "GET /api/v1/models HTTP/1.1\r\nHost: a\r\nX-Slow: ", true),
        longest(2, to, "POST /api/v1/models HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n", true),
        longest(3, to, &greedy, false),
    );
    over.store(true, Ordering::Relaxed);
    let longest_answer = others.await.unwrap();
    assert!(head < 10 * SECOND && body < 10 * SECOND && read < 30 * SECOND, "{head:?} {body:?} {read:?}");
    assert!(longest_answer < SECOND, "{longest_answer:?}");
    assert_eq!(program.stop().code, Some(0));
}

/// Its processor time so far, in seconds.
fn worked(program: &Program) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", program.id())).unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    let ticks: u32 = fields[11].parse::<u32>().unwrap() + fields[12].parse::<u32>().unwrap();
    f64::from(ticks) / 100.0
}

fn serve_with_files(limit: u32, data_dir: &Path) -> Program {
    let place = format!("ulimit -n {limit}; exec \"$0\" \"$@\"");
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &place, env!("CARGO_BIN_EXE_scoregate"), "serve"]);
    command.args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--data-dir"]).arg(data_dir);
    command.env_clear().envs(BUILT_IN);
    Program::spawn(command)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_files_run_out_the_side_port_answers_and_the_public_one_does_again_by_itself() {
    let directory = TempDir::new().unwrap();
    let program = serve_with_files(128, directory.path());
    let (to, side) = program.ports();
    let health = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let answers = async |address| {
        let mut connection = Connection::open(address).await;
        connection.write(health).await;
        connection.read(false).await.is_some_and(|answer| answer.status == 200)
    };
    // Those who say nothing give way to those who ask.
    let mut silent = Vec::new();
    for _ in 0..300 {
        silent.push(connect(4, to).await);
    }
    assert!(answers(to).await && answers(side).await);
    // Now not even those places can be had: as if something else had taken the files.
    let limit = format!("prlimit --pid {} --nofile=40:40", program.id());
    assert!(Command::new("sh").args(["-c", &limit]).status().unwrap().success());
    let clock = Clock::system();
    let (begun, worked_before) = (clock.mono(), worked(&program));
    for _ in 0..100 {
        silent.push(connect(4, to).await);
    }
    assert!(program.says("cannot be accepted").contains("Too many open files"));
    clock.sleep(3 * SECOND).await;
    let part = (worked(&program) - worked_before) / clock.mono().since(begun).as_secs_f64();
    assert!(part < 0.2, "it is busy with nothing: {part}");
    drop(silent);
    while !answers(to).await {}
    assert!(clock.mono().since(begun) < 8 * SECOND, "it took long to come back");
    let ended = program.stop();
    let said = ended.err.matches("cannot be accepted").count();
    assert!(said <= 2, "said {said} times in a few seconds");
}
