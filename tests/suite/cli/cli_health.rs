//! `scoregate health`, for supervisors without a shell. Readiness itself is tested in `sigterm` and `handover`.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{SocketAddr, TcpListener},
};

use tempfile::TempDir;

use crate::program::{BUILT_IN, CommandOutput, Program, run, run_with};

fn health(side: SocketAddr) -> CommandOutput {
    run(&["health", "--admin", &side.to_string()])
}

#[test]
fn the_exit_code_of_health_is_readiness() {
    let directory = TempDir::new().unwrap();
    let server = Program::serve(directory.path(), &BUILT_IN);
    let (_, side) = server.ports();
    assert_eq!(health(side).with(0).out, "ready\n");
    // In a container, the side port listens on every address.
    let everywhere = format!("0.0.0.0:{}", side.port());
    run_with(&["health"], &[("SCOREGATE_ADMIN_LISTEN", &everywhere)]).with(0);
    server.stop().with(0);
    let stopped = health(side).with(1);
    assert!(
        stopped.err.contains(&side.to_string()) && stopped.out.is_empty(),
        "{stopped:?}"
    );
}

#[test]
fn health_finds_the_server_by_data_directory_or_configuration() {
    let directory = TempDir::new().unwrap();
    let server = Program::serve(directory.path(), &BUILT_IN);
    let (_, side) = server.ports();
    let data_dir = directory.path().to_str().unwrap();
    assert_eq!(
        run(&["health", "--data-dir", data_dir]).with(0).out,
        "ready\n"
    );
    let file = directory.path().join("scoregate.toml");
    // Other errors in a file that is being edited are ignored.
    std::fs::write(&file, format!("listen = 7\n[admin]\nlisten = \"{side}\"\n")).unwrap();
    let config = ["health", "--config", file.to_str().unwrap()];
    assert_eq!(run(&config).with(0).out, "ready\n");
    server.stop().with(0);
    let stopped = run(&["health", "--data-dir", data_dir]).with(1);
    assert!(
        stopped.err.contains("scoregate.sock") && stopped.err.contains("no response"),
        "{stopped:?}"
    );
    assert!(run(&config).with(1).err.contains(&side.to_string()));
    assert!(
        run(&["health", "--config", "nothing.toml"])
            .with(1)
            .err
            .contains("nothing.toml")
    );
}

#[test]
fn a_server_that_is_not_ready_or_not_responding_is_not_healthy() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let side = listener.local_addr().unwrap();
    let starting = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let head = BufReader::new(&stream)
            .lines()
            .map_while(Result::ok)
            .take_while(|line| !line.is_empty());
        let head_lines: Vec<String> = head.collect();
        stream
            .write_all(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 9\r\n\r\nstarting\n")
            .unwrap();
        (head_lines, listener)
    });
    let output = health(side).with(1);
    assert!(
        output.err.contains("starting") && output.out.is_empty(),
        "{output:?}"
    );
    let (head_lines, silent) = starting.join().unwrap();
    assert!(head_lines[0].starts_with("GET /readyz "), "{head_lines:?}");
    let output = health(silent.local_addr().unwrap()).with(1);
    assert!(output.err.contains("3s"), "{output:?}");
}
