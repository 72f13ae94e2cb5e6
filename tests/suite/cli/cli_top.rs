//! `scoregate top` with a real server, on a terminal and without one.

use std::{
    io::{Read, Write as _},
    process::{Command, Stdio},
};

use tempfile::TempDir;

use crate::program::{BUILT_IN, Keys, Program, ProgramClient, run};

/// A server with one served and one refused request.
async fn busy(directory: &TempDir) -> (Program, String) {
    let program = Program::serve(directory.path(), &BUILT_IN);
    let client = ProgramClient::to(program.public()).await;
    let (application, key) = Keys(directory.path()).create("teams");
    for _ in 0..3 {
        assert_eq!(client.get("/api/v1/models", &key).send().await.status, 200);
    }
    assert_eq!(
        client
            .get("/api/v1/models", "sg_live_madeup")
            .send()
            .await
            .status,
        401
    );
    (program, application)
}

fn directory(data: &TempDir) -> &str {
    data.path().to_str().unwrap()
}

#[tokio::test]
async fn without_a_terminal_top_prints_the_difference_of_two_samples_and_exits() {
    let data = TempDir::new().unwrap();
    let (program, application) = busy(&data).await;
    let output = run(&["top", "--interval", "1", "--data-dir", directory(&data)]).with(0);
    let line = |name: &str| {
        output
            .out
            .lines()
            .find(|line| line.starts_with(name))
            .unwrap_or_else(|| panic!("{}", output.out))
    };
    for (name, words) in [
        (
            "scoregate",
            concat!(" ", env!("CARGO_PKG_VERSION"), "   up "),
        ),
        // No requests between the two samples.
        (
            "requests",
            "0/s   2xx -   3xx -   4xx -   5xx -   waiting 0",
        ),
        ("latency", "p50 -"),
        ("documents", "refresh "),
        ("backend", "circuit breaker closed   requests 0/s"),
        (
            "refused by",
            "minute 0/s   day 0/s   guard 0/s   units leased 0/s   lost 0",
        ),
        ("process", "keys 1"),
    ] {
        assert!(line(name).contains(words), "{words}: {}", output.out);
    }
    let columns: Vec<&str> = line(&application).split_whitespace().collect();
    // The last full minute may include the requests.
    let [_, "teams", _, _, "0", "0", "0", "3", left, ..] = columns.as_slice() else {
        panic!("{}", output.out)
    };
    assert!(left.ends_with(|digit: char| digit.is_ascii_digit()));
    assert!(
        line("127.0.0.1").trim_end().ends_with(" 1"),
        "{}",
        output.out
    );
    assert!(
        !output.out.contains('\u{1b}') && !output.out.contains("! "),
        "{}",
        output.out
    );
    program.stop().with(0);
    let stopped = run(&["top", "--once", "--data-dir", directory(&data)]).with(1);
    assert!(
        stopped.err.contains("needs a running server"),
        "{}",
        stopped.err
    );
}

#[tokio::test]
async fn on_a_terminal_top_draws_pages_until_ctrl_c() {
    let data = TempDir::new().unwrap();
    let (program, application) = busy(&data).await;
    // The shell outlives Ctrl-C and prints the status of `top`: the status of `script` may be its own.
    let top = format!(
        "trap : INT; stty cols 120 rows 40; {} top --data-dir {}; echo status $?",
        env!("CARGO_BIN_EXE_scoregate"),
        directory(&data)
    );
    let mut terminal = Command::new("script")
        .args(["--quiet", "--flush", "--command", &top, "/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut keys = terminal.stdin.take().unwrap();
    let mut shown = terminal.stdout.take().unwrap();
    let mut page = String::new();
    let mut byte = [0];
    // Read until the first page is complete.
    while !page.ends_with("\u{1b}[J") {
        assert_eq!(shown.read(&mut byte).unwrap(), 1, "{page}");
        page.push(char::from(byte[0]));
    }
    assert!(page.contains(&application), "{page}");
    keys.write_all(b"\x03").unwrap();
    let mut rest = String::new();
    shown.read_to_string(&mut rest).unwrap();
    terminal.wait().unwrap();
    assert!(rest.contains("status 0"), "{rest}");
    program.stop().with(0);
}
