//! Incidents of a real server: recorded in the archive, listed and deleted by the real program.

use std::{path::Path, time::Duration};

use scoregate_base::clock::Clock;
use tempfile::TempDir;

use crate::{
    archive::scoring_import::archive,
    program::{BUILT_IN, CommandOutput, Keys, Program, ProgramClient, run, run_with_input},
};

/// A command on the archive of a directory.
fn scoring(directory: &Path, arguments: &[&str]) -> CommandOutput {
    run(&[&["scoring"], arguments, &["--archive", &archive(directory)]].concat())
}

fn import(directory: &Path, lines: &str) -> CommandOutput {
    run_with_input(
        &["scoring", "import", "-", "--archive", &archive(directory)],
        lines.as_bytes(),
    )
}

/// Hourly runs of a model for ten days. The level was stable before. It is 12 points lower in the last 12 hours, and
/// was in 12 earlier hours.
fn fallen() -> String {
    let now = Clock::system().now().wall;
    let run = |suite: &str, ago: u32| {
        let score = if ago <= 12 || (60..72).contains(&ago) {
            0.58
        } else {
            0.7
        };
        let axes = [
            "correctness",
            "spec",
            "codeQuality",
            "efficiency",
            "stability",
            "refusal",
            "recovery",
        ];
        let scores = axes.map(|axis| format!("\"{axis}\":{score}")).join(",");
        let time = now.minus(Duration::from_hours(1) * ago).rfc3339();
        let model = r#"{"id":"m","name":"M","provider":"p"}"#;
        format!(
            r#"{{"id":"{suite}-{ago}","model":{model},"suite":"{suite}","time":"{time}","trials":[{{"scores":{{{scores}}}}}]}}"#
        ) + "\n"
    };
    let hours = (1..=240).rev();
    hours
        .flat_map(|ago| ["coding", "reasoning", "tooling"].map(|suite| run(suite, ago)))
        .collect()
}

#[tokio::test]
async fn scoring_incidents_of_a_server_are_listed_and_deleted_at_once() {
    let directory = TempDir::new().unwrap();
    let path = directory.path();
    import(path, &fallen()).with(0);
    assert_eq!(scoring(path, &["incidents"]).with(0).out.lines().count(), 1);
    let (_, key) = Keys(path).create("pro");
    let server = Program::serve(path, &BUILT_IN);
    let client = ProgramClient::to(server.public()).await;
    let published = async || {
        client
            .get("/api/v1/incidents?period=7d", &key)
            .send()
            .await
            .json()
    };
    let incidents = published().await;
    let id = incidents["data"][0]["id"]
        .as_str()
        .expect("an incident")
        .to_owned();
    assert_eq!(incidents["count"], 2);

    let listed = scoring(path, &["incidents"]).with(0).out;
    assert!(
        listed.starts_with("INCIDENT") && listed.contains(&format!("{id}  critical")),
        "{listed}"
    );
    let records = scoring(path, &["incidents", "--json"]).with(0).json();
    let record = &records["records"][1];
    assert_eq!(
        (&record["id"], &record["revision"]),
        (&id.as_str().into(), &1.into()),
        "{records}"
    );
    assert_eq!(record["lastRun"], "tooling-1", "{records}");

    let deleted = scoring(path, &["delete", &id, "--reason", "wrong key"]).with(0);
    assert_eq!(deleted.out, "1 deleted\n");
    assert!(
        deleted
            .err
            .contains("the running server publishes the new scores"),
        "{}",
        deleted.err
    );
    let left = published().await;
    assert_eq!(
        (&left["count"], &left["data"][0]),
        (&1.into(), &incidents["data"][1])
    );
    let listed = scoring(path, &["incidents"]).with(0).out;
    assert!(listed.contains("  cli:"), "{listed}");
    let twice = scoring(path, &["delete", &id, "--reason", "wrong key"]).with(1);
    assert!(
        twice
            .err
            .contains(&format!("there is no run or incident {id}")),
        "{}",
        twice.err
    );
    server.stop().with(0);
}
