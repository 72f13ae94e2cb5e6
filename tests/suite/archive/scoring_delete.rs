//! Deletion of runs by the real program: the reason, and a running server.

use std::path::Path;

use scoregate_base::clock::Clock;
use scoregate_scoring::simulated_records;
use tempfile::TempDir;

use crate::{
    archive::scoring_import::archive,
    program::{BUILT_IN, CommandOutput, Keys, Program, ProgramClient, run, run_with_input, sql_on},
};

/// A command on the archive of a directory.
fn scoring(directory: &Path, arguments: &[&str]) -> CommandOutput {
    run(&[&["scoring"], arguments, &["--archive", &archive(directory)]].concat())
}

fn import(directory: &Path, lines: &[String]) -> CommandOutput {
    let arguments = ["scoring", "import", "-", "--archive", &archive(directory)];
    run_with_input(&arguments, lines.concat().as_bytes())
}

/// Lines of simulated runs before the current time. The real program compares the times of the runs with it.
fn lines(models: usize, hours: u64) -> Vec<String> {
    let now = Clock::system().now().wall;
    simulated_records(7, models, now, hours)
        .map(|record| record.write() + "\n")
        .collect()
}

fn id(line: &str) -> &str {
    line.split('"').nth(3).unwrap()
}

#[test]
fn scoring_delete_keeps_the_reason_and_a_run_can_be_imported_with_other_content() {
    let directory = TempDir::new().unwrap();
    let lines = lines(2, 24);
    let path = directory.path();
    import(path, &lines).with(0);
    let first = id(&lines[0]);
    let second = id(&lines[1]);
    let deleted = scoring(path, &["delete", first, second, "--reason", "wrong key"]).with(0);
    assert_eq!(
        (deleted.out.as_str(), deleted.err.as_str()),
        ("2 deleted\n", "")
    );
    let sql = "SELECT id, actor LIKE 'cli:%', reason, run FROM deleted ORDER BY rowid";
    let kept = sql_on(Path::new(&archive(path)), sql).unwrap();
    let mut expected =
        [&lines[0], &lines[1]].map(|line| format!("{}|1|wrong key|{line}", id(line)));
    expected.sort();
    assert_eq!(kept, expected.concat());
    let corrected = lines[0].replace("\"name\":\"", "\"name\":\"Corrected ");
    let counts = import(path, &[corrected.clone(), lines[1].clone()]).with(0);
    assert_eq!(counts.out, "2 imported, 0 already present, 0 rejected\n");
    let exported = scoring(path, &["export"]).with(0).out;
    assert!(
        exported.contains(&corrected) && !exported.contains(&lines[0]),
        "{exported}"
    );
    let elsewhere = TempDir::new().unwrap();
    import(elsewhere.path(), std::slice::from_ref(&exported)).with(0);
    assert_eq!(scoring(elsewhere.path(), &["export"]).with(0).out, exported);
}

#[test]
fn scoring_delete_that_is_refused_names_the_id_and_deletes_nothing() {
    let directory = TempDir::new().unwrap();
    let lines = lines(1, 6);
    let path = directory.path();
    let missing = scoring(path, &["delete", "r-1", "--reason", "x"]).with(1);
    assert!(missing.err.contains("there is no archive") && !Path::new(&archive(path)).exists());
    import(path, &lines).with(0);
    let before = scoring(path, &["export"]).with(0).out;
    let unknown = scoring(path, &["delete", id(&lines[0]), "none", "--reason", "x"]).with(1);
    assert_eq!(
        unknown.err,
        "there is no run or incident none\nerror: nothing was deleted\n"
    );
    for reason in ["", " ", "two\nlines"] {
        scoring(path, &["delete", id(&lines[0]), "--reason", reason]).with(1);
    }
    scoring(path, &["delete", id(&lines[0])]).with(1);
    assert_eq!(scoring(path, &["export"]).with(0).out, before);
}

#[tokio::test]
async fn scoring_delete_is_visible_on_a_running_server_at_once() {
    let directory = TempDir::new().unwrap();
    let lines = lines(2, 24);
    import(directory.path(), &lines).with(0);
    let (_, key) = Keys(directory.path()).create("pro");
    let server = Program::serve(directory.path(), &BUILT_IN);
    let client = ProgramClient::to(server.public()).await;
    let models = async || client.get("/api/v1/models", &key).send().await.json()["count"].clone();
    assert_eq!(models().await, 2);
    let of_first = |line: &&String| line.contains("\"id\":\"atlas-4-large\"");
    let ids: Vec<&str> = lines.iter().filter(of_first).map(|line| id(line)).collect();
    let deleted = scoring(
        directory.path(),
        &[&["delete", "--reason", "wrong key"], &ids[..]].concat(),
    )
    .with(0);
    assert_eq!(deleted.out, format!("{} deleted\n", ids.len()));
    assert!(
        deleted
            .err
            .contains("the running server publishes the new scores"),
        "{}",
        deleted.err
    );
    assert_eq!(models().await, 1);
    server.stop().with(0);
}
