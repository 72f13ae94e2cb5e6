//! Incidents of a real server: recorded in the archive, listed, exported, imported and retracted by the real program.

use std::path::Path;
use std::time::Duration;

use scoregate_base::clock::Clock;
use tempfile::TempDir;

use crate::archive::scoring_import::archive;
use crate::program::{BUILT_IN, CommandOutput, Keys, Program, ProgramClient, run, run_with_input};

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

/// Hourly runs of a model for five days: it fell by 12 points half a day ago, and for half a day before.
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
    let hours = (1..=120).rev();
    hours
        .flat_map(|ago| ["coding", "reasoning", "tooling"].map(|suite| run(suite, ago)))
        .collect()
}

#[tokio::test]
async fn scoring_incidents_of_a_server_are_listed_exported_and_retracted_at_once() {
    let directory = TempDir::new().unwrap();
    let path = directory.path();
    import(path, &fallen()).with(0);
    assert_eq!(
        scoring(path, &["incidents", "list"])
            .with(0)
            .out
            .lines()
            .count(),
        1
    );
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

    let listed = scoring(path, &["incidents", "list"]).with(0).out;
    assert!(
        listed.starts_with("INCIDENT") && listed.contains(&format!("{id}  critical")),
        "{listed}"
    );
    let records = scoring(path, &["incidents", "list", "--json"])
        .with(0)
        .json();
    let record = &records["records"][1];
    assert_eq!(
        (&record["id"], &record["revision"]),
        (&id.as_str().into(), &1.into()),
        "{records}"
    );
    assert_eq!(record["lastRun"], "tooling-1", "{records}");

    let exported = scoring(path, &["export"]).with(0).out;
    let last: Vec<&str> = exported.lines().rev().take(2).collect();
    assert!(
        last[1].starts_with(r#"{"incident":{"id":"degradation-m-"#),
        "{last:?}"
    );
    assert!(
        last[0].starts_with(r#"{"incidentScan":{"model":"m","roundAt":"#),
        "{last:?}"
    );
    let elsewhere = TempDir::new().unwrap();
    let copied = import(elsewhere.path(), &exported).with(0);
    assert_eq!(copied.out, "363 imported, 0 already present, 0 rejected\n");
    let again = import(elsewhere.path(), &exported).with(0);
    assert_eq!(again.out, "0 imported, 363 already present, 0 rejected\n");
    assert_eq!(scoring(elsewhere.path(), &["export"]).with(0).out, exported);
    let other = last[1].replace("\"severity\":\"critical\"", "\"severity\":\"warning\"");
    let rejected = import(elsewhere.path(), &other).with(1);
    assert!(
        rejected
            .err
            .contains("incident.revision: exists with other content, which stays"),
        "{}",
        rejected.err
    );

    let retracted = scoring(
        path,
        &["incidents", "retract", &id, "--reason", "wrong key"],
    )
    .with(0);
    assert_eq!(retracted.out, format!("retracted {id}\n"));
    assert!(
        retracted
            .err
            .contains("the running server publishes the new scores"),
        "{}",
        retracted.err
    );
    let left = published().await;
    assert_eq!(
        (&left["count"], &left["data"][0]),
        (&1.into(), &incidents["data"][1])
    );
    let listed = scoring(path, &["incidents", "list"]).with(0).out;
    assert!(listed.contains("  cli:"), "{listed}");
    let taken = import(elsewhere.path(), &scoring(path, &["export"]).with(0).out).with(0);
    assert_eq!(taken.out, "1 imported, 363 already present, 0 rejected\n");
    server.stop().with(0);
}

#[test]
fn scoring_incidents_that_cannot_be_retracted_are_named() {
    let directory = TempDir::new().unwrap();
    let path = directory.path();
    let missing = scoring(path, &["incidents", "list"]).with(1);
    assert!(missing.err.contains("there is no archive") && !Path::new(&archive(path)).exists());
    let lines = r#"{"incident":{"id":"outage-m-1789995600","revision":1,"model":"m","kind":"outage","openedAt":"2026-09-21T13:00:00Z","severity":"critical","recordedAt":"2026-09-21T19:00:00Z","lastRun":"r-17","lastRunAt":"2026-09-21T18:10:00Z"}}
{"incident":{"id":"outage-m-1789995600","revision":1}}
"#;
    let imported = import(path, lines).with(1);
    assert!(
        imported
            .err
            .contains("standard input:2: incident: the field `model` is missing"),
        "{}",
        imported.err
    );
    let retract = |id: &str| scoring(path, &["incidents", "retract", id, "--reason", "x"]);
    let unknown = retract("outage-m-1").with(1);
    assert!(
        unknown
            .err
            .contains("the incident outage-m-1 does not exist"),
        "{}",
        unknown.err
    );
    retract("outage-m-1789995600").with(0);
    let twice = retract("outage-m-1789995600").with(1);
    assert!(
        twice.err.contains("is retracted, which is final"),
        "{}",
        twice.err
    );
    scoring(
        path,
        &[
            "incidents",
            "retract",
            "outage-m-1789995600",
            "--reason",
            " ",
        ],
    )
    .with(1);
}
