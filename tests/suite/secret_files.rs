//! Secrets in files of their own, as containers and systemd provide them. Every kind of invalid file is tested in
//! `config/secrets.rs`.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use tempfile::TempDir;

use crate::program::{BUILT_IN, Program, run};

/// The status of a side port request with this token.
fn status(side: SocketAddr, token: &str) -> String {
    let mut stream = TcpStream::connect(side).unwrap();
    let head = "GET /v1/applications HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n";
    write!(stream, "{head}Authorization: Bearer {token}\r\n\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response.split(' ').nth(1).unwrap().to_owned()
}

#[test]
fn a_token_in_a_file_is_valid_and_a_new_one_applies_after_a_reload() {
    let directory = TempDir::new().unwrap();
    let (file, data_dir) = (directory.path().join("token"), directory.path().join("state"));
    std::fs::write(&file, "the first token of this side port\n").unwrap();
    let environment = [BUILT_IN[0], ("SCOREGATE_ADMIN_TOKEN_FILE", file.to_str().unwrap())];
    let server = Program::serve(&data_dir, &environment);
    let (_, side) = server.ports();
    let statuses = |server: SocketAddr| {
        ["the first token of this side port", "the second token of this side port"]
            .map(|token| status(server, token))
    };
    assert_eq!(statuses(side), ["200", "401"]);
    std::fs::write(&file, "the second token of this side port\n").unwrap();
    let output = run(&["reload", "--data-dir", data_dir.to_str().unwrap()]).with(0);
    assert!(
        output.out.contains("in effect now: admin.token") && !output.out.contains("second"),
        "{output:?}"
    );
    assert_eq!(statuses(side), ["401", "200"]);
    let ended = server.stop().with(0);
    assert!(!ended.err.contains("second") && !ended.err.contains("first token"), "{}", ended.err);
}
