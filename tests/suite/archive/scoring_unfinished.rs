//! Imports that a server finds unfinished: one that was killed counts at the next start and after the next check, one
//! that is running does not count before its end.

use std::io::{PipeWriter, Write as _};
use std::path::Path;

use scoregate_base::clock::Clock;
use scoregate_scoring::simulated_records;
use tempfile::TempDir;

use crate::archive::scoring_import::archive;
use crate::client::Connection;
use crate::program::{BUILT_IN, Keys, Program, ProgramClient, command, sql_on};

/// Runs that an import stores in one transaction.
const BATCH: usize = 4_096;

/// Lines of simulated runs before the current time, which the real program compares them with.
fn lines(models: usize, hours: u64) -> Vec<String> {
    let now = Clock::system().now().wall;
    simulated_records(7, models, now, hours)
        .map(|record| record.write() + "\n")
        .collect()
}

fn stored(directory: &Path) -> usize {
    let archive = archive(directory);
    // The tables may not exist yet.
    let rows = sql_on(Path::new(&archive), "SELECT count(*) FROM run").unwrap_or_default();
    rows.trim().parse().unwrap_or(0)
}

/// An import that has stored a batch and waits for more lines, with the pipe that it reads.
fn half_done(directory: &Path, lines: &[String]) -> (Program, PipeWriter) {
    let (reader, mut writer) = std::io::pipe().unwrap();
    let before = stored(directory);
    let mut importing = command(
        &["scoring", "import", "-", "--archive", &archive(directory)],
        &[],
    );
    importing.stdin(reader);
    let program = Program::spawn(importing);
    writer
        .write_all(lines[..BATCH].concat().as_bytes())
        .unwrap();
    let clock = Clock::system();
    let start = Clock::system().mono();
    while stored(directory) < before + BATCH {
        assert!(
            clock.mono().since(start).as_secs() < 60,
            "the batch is not stored"
        );
    }
    (program, writer)
}

fn kill((program, writer): (Program, PipeWriter)) {
    program.signal("KILL");
    assert_eq!(program.end().0.code, None);
    drop(writer);
}

#[tokio::test]
async fn scoring_unfinished_import_that_was_killed_counts_at_the_next_start_and_the_next_check() {
    let directory = TempDir::new().unwrap();
    let lines = lines(8, 400);
    kill(half_done(directory.path(), &lines));
    let arguments = [
        "scoring",
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--archive",
        &archive(directory.path()),
    ];
    let server = Program::start(&arguments, &[]);
    server.logs("an import ended without updating the scores; its stored runs count now");
    let line = server.logs("serving on http://");
    let address = line
        .split("http://")
        .nth(1)
        .unwrap()
        .split('/')
        .next()
        .unwrap()
        .parse()
        .unwrap();
    let runs = async || {
        let mut connection = Connection::open(address).await;
        let request = "GET /api/v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        connection.write(request.as_bytes()).await;
        connection.read(false).await.unwrap().json()
    };
    let first = runs().await;
    assert!(first["count"].as_u64().unwrap() > 0, "{first}");
    // Another one is killed while the server runs.
    kill(half_done(directory.path(), &lines[BATCH..]));
    server.logs("an import ended without updating the scores; its stored runs count now");
    server.logs("new snapshot");
    assert_ne!(runs().await["data"], first["data"]);
    server.stop().with(0);
}

#[tokio::test]
async fn scoring_unfinished_import_that_is_running_is_not_published_in_part() {
    let directory = TempDir::new().unwrap();
    let lines = lines(8, 400);
    let (_, key) = Keys(directory.path()).create("pro");
    kill(half_done(directory.path(), &lines));
    let (running, mut writer) = half_done(directory.path(), &lines[BATCH..]);
    let server = Program::serve(directory.path(), &BUILT_IN);
    let client = ProgramClient::to(server.public()).await;
    let models = async || {
        client.get("/api/v1/models", &key).send().await.json()["count"]
            .as_u64()
            .unwrap()
    };
    assert_eq!(models().await, 0, "at the start");
    // A further import ends meanwhile.
    let one = directory.path().join("one.jsonl");
    std::fs::write(&one, lines.last().unwrap()).unwrap();
    let archive = archive(directory.path());
    let import = crate::program::run(&[
        "scoring",
        "import",
        one.to_str().unwrap(),
        "--archive",
        &archive,
    ]);
    let import = import.with(0);
    assert_eq!(
        import.err,
        "another import is running; the scores are updated when it ends\n"
    );
    assert_eq!(import.out, "1 imported, 0 already present, 0 rejected\n");
    assert_eq!(models().await, 0, "after another import");

    writer
        .write_all(lines[2 * BATCH..].concat().as_bytes())
        .unwrap();
    drop(writer);
    let ended = running.end().0.with(0);
    assert!(
        ended
            .err
            .contains("the running server publishes the new scores"),
        "{}",
        ended.err
    );
    assert_eq!(models().await, 8, "after its end");
    server.stop().with(0);
}
