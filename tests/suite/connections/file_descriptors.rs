//! More connections than file descriptors, against the real program. Slow clients are in `slow_clients`.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::Path,
    process::Command,
    time::Duration,
};

use scoregate_base::clock::Clock;
use tempfile::TempDir;
use tokio::net::{TcpSocket, TcpStream};

use crate::{
    client::Connection,
    program::{BUILT_IN, Program},
};

const SECOND: Duration = Duration::from_secs(1);

/// A connection of an attacker from its own loopback address, with minimal kernel buffers.
async fn connect(from: u8, to: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    socket
        .bind(SocketAddr::new(
            IpAddr::V4(Ipv4Addr::new(127, 0, 1, from)),
            0,
        ))
        .unwrap();
    socket.connect(to).await.unwrap()
}

/// The CPU time of the program so far, in seconds.
fn worked(program: &Program) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", program.id())).unwrap();
    let fields: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    let ticks: u32 = fields[11].parse::<u32>().unwrap() + fields[12].parse::<u32>().unwrap();
    f64::from(ticks) / 100.0
}

fn serve_with_files(limit: u32, data_dir: &Path) -> Program {
    let script = format!("ulimit -n {limit}; exec \"$0\" \"$@\"");
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_scoregate"), "serve"]);
    command
        .args([
            "--listen",
            "127.0.0.1:0",
            "--admin-listen",
            "127.0.0.1:0",
            "--data-dir",
        ])
        .arg(data_dir);
    command.env_clear().envs(BUILT_IN);
    Program::spawn(command)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_free_file_descriptors_the_side_port_responds_and_the_public_port_recovers() {
    let directory = TempDir::new().unwrap();
    let program = serve_with_files(128, directory.path());
    let (to, side) = program.ports();
    let health = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let responses = async |address| {
        let mut connection = Connection::open(address).await;
        connection.write(health).await;
        connection
            .read(false)
            .await
            .is_some_and(|response| response.status == 200)
    };
    // Idle connections are closed so that active ones can be accepted.
    let mut silent = Vec::new();
    for _ in 0..300 {
        silent.push(connect(4, to).await);
    }
    assert!(responses(to).await && responses(side).await);
    // All descriptors are in use, as if another process had taken them.
    let limit = format!("prlimit --pid {} --nofile=40:40", program.id());
    assert!(
        Command::new("sh")
            .args(["-c", &limit])
            .status()
            .unwrap()
            .success()
    );
    let clock = Clock::system();
    let start = clock.mono();
    let worked_before = worked(&program);
    for _ in 0..100 {
        silent.push(connect(4, to).await);
    }
    assert!(
        program
            .logs("cannot accept connections")
            .contains("Too many open files")
    );
    clock.sleep(3 * SECOND).await;
    let part = (worked(&program) - worked_before) / clock.mono().since(start).as_secs_f64();
    assert!(part < 0.2, "the program used CPU time without work: {part}");
    drop(silent);
    while !responses(to).await {}
    assert!(
        clock.mono().since(start) < 8 * SECOND,
        "the program recovered too slowly"
    );
    let ended = program.stop();
    let messages = ended.err.matches("cannot accept connections").count();
    // Ten lines and one with the count: the log limits repeated events of the same kind.
    assert!(messages <= 11, "logged {messages} times in a few seconds");
}
