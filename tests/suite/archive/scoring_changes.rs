//! Withdrawal and correction of runs by the real program: the audit trail, the export, and a running server.

use std::path::Path;

use scoregate_base::clock::Clock;
use scoregate_scoring::simulated_records;
use tempfile::TempDir;

use crate::archive::scoring_import::archive;
use crate::program::{BUILT_IN, CommandOutput, Keys, Program, ProgramClient, run, run_with_input};

/// A command on the archive of a directory.
fn scoring(directory: &Path, arguments: &[&str]) -> CommandOutput {
    run(&[&["scoring"], arguments, &["--archive", &archive(directory)]].concat())
}

fn import(directory: &Path, lines: &[String]) -> CommandOutput {
    let arguments = ["scoring", "import", "-", "--archive", &archive(directory)];
    run_with_input(&arguments, lines.concat().as_bytes())
}

/// Lines of simulated runs before the current time, which the real program compares them with.
fn lines(models: usize, hours: u64) -> Vec<String> {
    let now = Clock::system().now().wall;
    simulated_records(7, models, now, hours)
        .map(|record| record.write() + "\n")
        .collect()
}

fn id(line: &str) -> &str {
    line.split('"').nth(3).unwrap()
}

fn file(directory: &TempDir, lines: &[String]) -> String {
    let path = directory.path().join("corrected.jsonl");
    std::fs::write(&path, lines.concat()).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn scoring_changes_are_recorded_and_carried_by_an_export() {
    let directory = TempDir::new().unwrap();
    let lines = lines(2, 24);
    let path = directory.path();
    import(path, &lines).with(0);
    let first = id(&lines[0]);
    let second = id(&lines[1]);
    let third = id(&lines[2]);
    let withdrawn = scoring(path, &["withdraw", first, second, "--reason", "wrong key"]).with(0);
    assert_eq!(
        (withdrawn.out.as_str(), withdrawn.err.as_str()),
        ("2 withdrawn\n", "")
    );
    let again = import(path, &lines).with(0);
    assert_eq!(
        again.out,
        format!(
            "0 imported, {} already present, 0 rejected, 2 withdrawn\n",
            lines.len() - 2
        )
    );
    let correction = lines[2].replace("\"name\":\"", "\"name\":\"Corrected ");
    let corrected = file(&directory, &[correction.clone(), lines[3].clone()]);
    let changed = scoring(path, &["correct", &corrected, "--reason", "name", "--json"]).with(0);
    assert_eq!(
        changed.json(),
        serde_json::json!({"corrected": 1, "unchanged": 1})
    );
    let table = scoring(path, &["export"])
        .with(0)
        .out
        .lines()
        .next()
        .unwrap()
        .to_owned()
        + "\n";
    let exported = file(&directory, &[table, correction.clone()]);
    let unchanged = scoring(path, &["correct", &exported, "--reason", "name", "--json"]).with(0);
    assert_eq!(
        unchanged.json(),
        serde_json::json!({"corrected": 0, "unchanged": 1})
    );

    let audit = scoring(path, &["audit", "--json"]).with(0).json();
    let shown: Vec<(&str, &str, &str)> = audit["records"]
        .as_array()
        .unwrap()
        .iter()
        .map(|record| {
            ["action", "run", "reason"]
                .map(|field| record[field].as_str().unwrap())
                .into()
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("correct", third, "name"),
            ("withdraw", second, "wrong key"),
            ("withdraw", first, "wrong key")
        ]
    );
    let before: serde_json::Value = serde_json::from_str(&lines[2]).unwrap();
    assert_eq!(audit["records"][0]["before"], before);
    assert!(
        audit["records"][0]["actor"]
            .as_str()
            .unwrap()
            .starts_with("cli:"),
        "{audit}"
    );
    let text = scoring(path, &["audit", first]).with(0).out;
    assert!(
        text.starts_with("NUMBER  TIME") && text.lines().count() == 2 && text.contains(first),
        "{text}"
    );
    let newest = scoring(path, &["audit", "--limit", "1"]).with(0);
    assert_eq!(
        (newest.out.lines().count(), newest.err.as_str()),
        (2, "older changes follow: --before 3\n")
    );

    let exported = scoring(path, &["export"]).with(0).out;
    assert!(
        exported.contains(&correction) && !exported.contains(&lines[0]),
        "{exported}"
    );
    let elsewhere = TempDir::new().unwrap();
    let copied = import(elsewhere.path(), std::slice::from_ref(&exported)).with(0);
    assert_eq!(
        copied.out,
        format!("{} imported, 0 already present, 0 rejected\n", lines.len())
    );
    assert_eq!(scoring(elsewhere.path(), &["export"]).with(0).out, exported);
}

#[test]
fn scoring_changes_that_are_refused_name_the_run_and_change_nothing() {
    let directory = TempDir::new().unwrap();
    let lines = lines(1, 6);
    let path = directory.path();
    let missing = scoring(path, &["withdraw", "r-1", "--reason", "x"]).with(1);
    assert!(missing.err.contains("there is no archive") && !Path::new(&archive(path)).exists());
    import(path, &lines).with(0);
    let before = scoring(path, &["export"]).with(0).out;
    let unknown = scoring(path, &["withdraw", id(&lines[0]), "none", "--reason", "x"]).with(1);
    assert_eq!(
        unknown.err,
        "the run none: does not exist; check the id\nerror: nothing was changed\n"
    );
    let bad = [
        lines[0].replace("\"name\":\"", "\"name\":\"New "),
        "{}\n".into(),
    ];
    let bad = file(&directory, &bad);
    let invalid = scoring(path, &["correct", &bad, "--reason", "x"]).with(1);
    assert!(
        invalid
            .err
            .contains(&format!("{bad}:2: line: the field `id` is missing")),
        "{}",
        invalid.err
    );
    let unknown = lines[1].replacen("\"id\":\"", "\"id\":\"other-", 1);
    let other = file(
        &directory,
        &[lines[0].replace("\"name\":\"", "\"name\":\"New "), unknown],
    );
    let refused = scoring(path, &["correct", &other, "--reason", "x"]).with(1);
    assert!(
        refused.err.contains(&format!("{other}:2: id: other-")),
        "{}",
        refused.err
    );
    assert!(
        refused.err.ends_with("error: nothing was changed\n"),
        "{}",
        refused.err
    );
    for reason in ["", " ", "two\nlines"] {
        scoring(path, &["withdraw", id(&lines[0]), "--reason", reason]).with(1);
    }
    assert_eq!(scoring(path, &["export"]).with(0).out, before);
    assert_eq!(scoring(path, &["audit"]).with(0).out.lines().count(), 1);
}

#[tokio::test]
async fn scoring_changes_are_visible_on_a_running_server_at_once() {
    let directory = TempDir::new().unwrap();
    let lines = lines(2, 24);
    import(directory.path(), &lines).with(0);
    let (_, key) = Keys(directory.path()).create("pro");
    let server = Program::serve(directory.path(), &BUILT_IN);
    let client = ProgramClient::to(server.public()).await;
    let models = async || client.get("/api/v1/models", &key).send().await.json();
    assert_eq!(models().await["count"], 2);
    let of_first = |line: &&String| line.contains("\"id\":\"atlas-4-large\"");
    let ids: Vec<&str> = lines.iter().filter(of_first).map(|line| id(line)).collect();
    let withdrawn = scoring(
        directory.path(),
        &[&["withdraw", "--reason", "wrong key"], &ids[..]].concat(),
    )
    .with(0);
    assert_eq!(withdrawn.out, format!("{} withdrawn\n", ids.len()));
    assert!(
        withdrawn
            .err
            .contains("the running server publishes the new scores"),
        "{}",
        withdrawn.err
    );
    assert_eq!(models().await["count"], 1);
    let renamed: Vec<String> = lines
        .iter()
        .filter(|line| !of_first(line))
        .map(|line| line.replace("\"name\":\"", "\"name\":\"New "))
        .collect();
    scoring(
        directory.path(),
        &["correct", &file(&directory, &renamed), "--reason", "name"],
    )
    .with(0);
    assert!(
        models().await["data"][0]["name"]
            .as_str()
            .unwrap()
            .starts_with("New ")
    );
    server.stop().with(0);
}
