//! Import of benchmark runs by the real program: valid and invalid files, and a running server.
//!
//! Kills during an import are in `scoring_kills`; every kind of invalid line is in the unit tests of the reader.

use std::{io::Write as _, path::Path, time::Duration};

use flate2::{Compression, write::GzEncoder};
use scoregate_base::clock::Wall;
use scoregate_scoring::{SuiteTable, simulated_records};
use tempfile::TempDir;

use crate::{
    program::{CommandOutput, run, run_with_input},
    world::{NOON, World, good},
};

/// The lines of this many simulated models in the hours before noon.
pub fn lines(models: usize, hours: u64) -> String {
    let noon = Wall::parse_rfc3339(NOON).unwrap();
    simulated_records(7, models, noon, hours)
        .map(|record| record.write() + "\n")
        .collect()
}

/// The archive of a directory, as an argument.
pub fn archive(directory: &Path) -> String {
    directory.join("runs.db").to_str().unwrap().to_owned()
}

fn file(directory: &TempDir, name: &str, content: impl AsRef<[u8]>) -> String {
    let path = directory.path().join(name);
    std::fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

fn packed(text: &str) -> Vec<u8> {
    let mut packing = GzEncoder::new(Vec::new(), Compression::fast());
    packing.write_all(text.as_bytes()).unwrap();
    packing.finish().unwrap()
}

fn import(directory: &TempDir, files: &[&str]) -> CommandOutput {
    run(&[
        &["scoring", "import", "--archive", &archive(directory.path())],
        files,
    ]
    .concat())
}

fn export(directory: &TempDir) -> Vec<String> {
    let exported = run(&["scoring", "export", "--archive", &archive(directory.path())])
        .with(0)
        .out;
    // The suite table is first.
    let mut lines: Vec<String> = exported.lines().skip(1).map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

fn counted(imported_count: usize, existing: usize, refused: usize) -> String {
    format!("{imported_count} imported, {existing} already present, {refused} rejected\n")
}

#[test]
fn scoring_import_reads_plain_and_compressed_files_once_and_export_writes_the_same_lines() {
    let directory = TempDir::new().unwrap();
    let text = lines(5, 30);
    let (first, second) = text.split_at(text[..text.len() / 2].rfind('\n').unwrap() + 1);
    let plain = file(&directory, "first.jsonl", first);
    // Compressed in two gzip members, as after an append. The file name does not show the compression.
    let (one, two) = second.split_at(second[..second.len() / 2].rfind('\n').unwrap() + 1);
    let gzip = file(&directory, "second", [packed(one), packed(two)].concat());
    let of_first = first.lines().count();
    let of_both = text.lines().count();
    assert_eq!(
        import(&directory, &[&plain]).with(0).out,
        counted(of_first, 0, 0)
    );
    assert_eq!(
        import(&directory, &[&plain, &gzip]).with(0).out,
        counted(of_both - of_first, of_first, 0)
    );
    let archive = archive(directory.path());
    let run_with_input = run_with_input(
        &["scoring", "import", "-", "--archive", &archive, "--json"],
        text.as_bytes(),
    )
    .with(0);
    assert_eq!(
        run_with_input.json(),
        serde_json::json!({"imported": 0, "existing": of_both, "rejected": 0})
    );
    assert_eq!(run_with_input.err, "", "no progress bar without a terminal");

    let mut expected: Vec<&str> = text.lines().collect();
    expected.sort_unstable();
    assert_eq!(export(&directory), expected);
}

#[test]
fn scoring_import_rejects_bad_lines_one_by_one_with_file_line_field_and_remedy() {
    let directory = TempDir::new().unwrap();
    let text = lines(2, 2);
    let good: Vec<&str> = text.lines().collect();
    let bad = |from: &str, to: &str| {
        let line = good.iter().find(|line| line.contains(from)).unwrap();
        line.replacen(from, to, 1)
            .replacen("\"id\":\"", "\"id\":\"bad-", 1)
    };
    let score = good[0]
        .split("\"correctness\":")
        .nth(1)
        .unwrap()
        .split(',')
        .next()
        .unwrap();
    let score = format!("\"correctness\":{score}");
    let rows = [
        (
            bad(&score, "\"correctness\":NaN"),
            "trials[0].scores.correctness",
            "not valid JSON at byte",
        ),
        (
            bad(&score, "\"correctness\":1.2"),
            "trials[0].scores.correctness",
            "a number from 0 to 1",
        ),
        (
            bad("\"time\":\"20", "\"time\":\"21"),
            "time",
            "in the future",
        ),
        (
            bad("\"coding\"", "\"chess\""),
            "suite",
            "write one of coding, reasoning, tooling",
        ),
        (
            good[0].replacen("atlas-4-large\",\"name", "other\",\"name", 1),
            "id",
            "exists with other content",
        ),
        (
            bad("\"name\":\"", "\"name\":\"\u{200b}"),
            "model.name",
            "U+200B, which is invisible; remove it",
        ),
        (
            bad("\"provider\":\"", "\"provider\":\"\u{202e}"),
            "model.provider",
            "U+202E, which is invisible",
        ),
        ("\u{feff}null".into(), "line", "not valid JSON at byte"),
        ("null".into(), "line", "write a JSON object"),
        (
            "\u{0}".repeat(2_000_000),
            "line",
            "is longer than 1048576 bytes",
        ),
    ];
    let mut text = format!("{}\n\n", good.join("\n"));
    let first = text.lines().count() + 1;
    for (line, ..) in &rows {
        text.push_str(&format!("{line}\n"));
    }
    let name = file(&directory, "mixed.jsonl", text.trim_end());
    let ended = import(&directory, &[&name]).with(1);
    assert_eq!(ended.out, counted(good.len(), 0, rows.len()));
    let output: Vec<&str> = ended.err.lines().collect();
    assert_eq!(output.len(), rows.len(), "{}", ended.err);
    for (directory, (output, (_, field, words))) in output.iter().zip(&rows).enumerate() {
        let begins = format!("{name}:{}: {field}: ", first + directory);
        assert!(
            output.starts_with(&begins) && output.contains(words),
            "{begins}{words}\n{output}"
        );
    }
    let mut expected = good;
    expected.sort_unstable();
    assert_eq!(
        export(&directory),
        expected,
        "a rejected line changed the archive"
    );
}

#[test]
fn scoring_import_that_cannot_read_or_write_reports_it_and_imports_nothing() {
    let directory = TempDir::new().unwrap();
    let text = lines(1, 2);
    let good = file(&directory, "good.jsonl", &text);
    let missing = import(&directory, &[&good, "no-such-file"]).with(1);
    assert!(
        missing.err.contains("no-such-file cannot be read") && missing.out.is_empty(),
        "{}",
        missing.err
    );
    let whole = packed(&text);
    let cut = file(&directory, "cut.gz", &whole[..whole.len() - 20]);
    let broken = import(&directory, &[&good, &cut]).with(1);
    assert!(
        broken.err.contains("cut.gz cannot be read")
            && broken.err.ends_with("; nothing was imported\n"),
        "{}",
        broken.err
    );
    assert_eq!((broken.out.as_str(), export(&directory).len()), ("", 0));

    let theirs = file(&directory, "theirs.db", "not an archive of anything at all");
    let refused = run(&["scoring", "import", &good, "--archive", &theirs]).with(2);
    assert!(
        refused
            .err
            .contains("not an archive of runs; use another file"),
        "{}",
        refused.err
    );
    assert_eq!(
        std::fs::read_to_string(&theirs).unwrap(),
        "not an archive of anything at all"
    );
    let nothing = run(&["scoring", "export", "--archive", "/no/such/archive"]).with(1);
    assert!(
        nothing.err.contains("there is no archive"),
        "{}",
        nothing.err
    );
}

#[test]
fn scoring_import_of_an_export_applies_its_suite_table_or_changes_nothing() {
    let from = TempDir::new().unwrap();
    let to = TempDir::new().unwrap();
    let other = SuiteTable::default()
        .write()
        .replace("tooling\"\nweight", "mmlu\"\nweight");
    let table = file(&from, "suites.toml", &other);
    let path = archive(from.path());
    run(&["scoring", "suites", "set", &table, "--archive", &path]).with(0);
    let runs = one_run_per_suite("m", "2026-11-21T11:10:00Z").replace("tooling", "mmlu");
    import(&from, &[&file(&from, "runs.jsonl", runs)]).with(0);
    let exported = run(&["scoring", "export", "--archive", &path]).with(0).out;
    let whole = file(&from, "export.jsonl", &exported);
    assert_eq!(import(&to, &[&whole]).with(0).out, counted(3, 0, 0));
    assert_eq!(import(&to, &[&whole]).with(0).out, counted(0, 3, 0));
    assert_eq!(
        run(&["scoring", "export", "--archive", &archive(to.path())])
            .with(0)
            .out,
        exported
    );
    let used = TempDir::new().unwrap();
    import(
        &used,
        &[&file(
            &used,
            "runs.jsonl",
            one_run_per_suite("n", "2026-11-21T11:10:00Z"),
        )],
    )
    .with(0);
    let refused = import(&used, &[&whole]).with(1);
    assert!(
        refused
            .err
            .contains("has a different suite table than the archive"),
        "{}",
        refused.err
    );
    assert_eq!((refused.out.as_str(), export(&used).len()), ("", 3));
    let fresh = TempDir::new().unwrap();
    let damaged = file(
        &fresh,
        "damaged.jsonl",
        exported.replacen("\"weight\"", "\"wait\"", 1),
    );
    let ended = import(&fresh, &[&damaged]).with(1);
    assert!(
        ended.err.contains("cannot be read: line 1: "),
        "{}",
        ended.err
    );
    assert_eq!(
        ended.out, "",
        "the table does not contain the suites of the runs after it"
    );
}

#[test]
fn scoring_import_counts_equal_messages_and_names_the_format_of_a_whole_file() {
    let directory = TempDir::new().unwrap();
    let wrong = one_run_per_suite("m", "2026-11-21T11:10:00Z")
        .replace("\"coding\"", "\"chess\"")
        .repeat(5);
    let name = file(&directory, "wrong.jsonl", wrong);
    let rejected = import(&directory, &[&name]).with(1);
    let lines: Vec<&str> = rejected.err.lines().collect();
    assert!(
        lines[0].starts_with(&format!("{name}:1: suite: \"chess\"")),
        "{}",
        rejected.err
    );
    assert!(
        lines.len() == 2 && lines[1].starts_with("4 more: suite: \"chess\""),
        "{}",
        rejected.err
    );
    let good = one_run_per_suite("n", "2026-11-21T11:10:00Z");
    let array = format!("[{}]", good.lines().collect::<Vec<_>>().join(","));
    for text in [
        array,
        format!("\u{feff}[\n{good}]"),
        good.replace("{\"id\":\"n-", "{\n\"id\":\"n-"),
    ] {
        let refused = import(&directory, &[&file(&directory, "whole.json", text)]).with(1);
        assert!(
            refused.err.contains("write one run per line, as `jq -c"),
            "{}",
            refused.err
        );
        assert_eq!(refused.err.lines().count(), 1, "{}", refused.err);
    }
}

/// A gateway with the built-in backend on the archive of a directory.
async fn world_on_archive(directory: &TempDir) -> World {
    let settings = format!(
        "upstream = \"built-in\"\nbuilt_in.archive = \"{}\"\n",
        archive(directory.path())
    );
    World::with(&settings, good).await
}

/// An import by the real program while the server runs.
async fn imported(directory: &TempDir, name: &str, text: &str, more: &[&str]) -> CommandOutput {
    let file = file(directory, name, text);
    let archive = archive(directory.path());
    let arguments: Vec<String> = ["scoring", "import", "--archive", &archive, &file]
        .iter()
        .chain(more)
        .map(|argument| (*argument).to_owned())
        .collect();
    let import = move || run(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    tokio::task::spawn_blocking(import).await.unwrap().with(0)
}

/// One run of each suite for a model.
fn one_run_per_suite(model: &str, time: &str) -> String {
    let scores = r#"{"correctness":0.9,"spec":0.8,"codeQuality":0.7,"efficiency":0.6,"stability":0.5,"refusal":1,"recovery":0.4}"#;
    let run = |suite: &&str| {
        format!(
            r#"{{"id":"{model}-{suite}-{time}","model":{{"id":"{model}","name":"{model}","provider":"meridian"}},"suite":"{suite}","time":"{time}","trials":[{{"scores":{scores},"latencyMs":4200,"cost":0.031}}]}}"#
        ) + "\n"
    };
    ["coding", "reasoning", "tooling"].iter().map(run).collect()
}

#[tokio::test]
async fn scoring_suites_are_shown_replaced_and_visible_on_a_running_server_at_once() {
    let directory = TempDir::new().unwrap();
    let archive = archive(directory.path());
    let suites =
        |command: &[&str]| run(&[&["scoring", "suites", "--archive", &archive], command].concat());
    let default = suites(&["show"]).with(0).out;
    assert_eq!(default, SuiteTable::default().write());
    let world = world_on_archive(&directory).await;
    let pro = world.customer("pro").await;
    imported(
        &directory,
        "runs.jsonl",
        &one_run_per_suite("m", "2026-11-21T11:10:00Z"),
        &[],
    )
    .await;
    let bad = suites(&[
        "set",
        &file(&directory, "bad.toml", default.replacen("0.4", "-0.4", 1)),
    ])
    .with(1);
    assert!(
        bad.err.contains("suite[0].weight: write a number above 0"),
        "{}",
        bad.err
    );
    assert_eq!(suites(&["show"]).with(0).out, default);

    let other = file(
        &directory,
        "suites.toml",
        default.replace("tooling\"\nweight", "mmlu\"\nweight"),
    );
    let data_dir = world.directory.path().to_str().unwrap().to_owned();
    let arguments = [
        "scoring",
        "suites",
        "set",
        &other,
        "--archive",
        &archive,
        "--data-dir",
        &data_dir,
    ];
    let arguments = arguments.map(str::to_owned);
    let set = move || run(&arguments.each_ref().map(String::as_str));
    let output = tokio::task::spawn_blocking(set).await.unwrap().with(0);
    assert!(
        output
            .err
            .contains("the running server publishes the new scores"),
        "{}",
        output.err
    );
    let transparency = world
        .get_as(&pro, "/api/v1/analytics/transparency")
        .await
        .json();
    assert_eq!(transparency["data"][0]["suites"][2]["name"], "mmlu");
    let table = SuiteTable::parse(&suites(&["show"]).with(0).out).unwrap();
    assert_eq!(
        transparency["data"][0]["methodVersion"],
        table.method_version()
    );
    // Lines are validated against the archive's table of suites. Stored runs of a removed suite are still exported.
    let late = file(
        &directory,
        "late.jsonl",
        one_run_per_suite("n", "2026-11-21T11:10:00Z"),
    );
    let refused = import(&directory, &[&late]).with(1);
    assert!(
        refused.err.contains("write one of coding, reasoning, mmlu"),
        "{}",
        refused.err
    );
    assert!(
        export(&directory)
            .iter()
            .any(|line| line.contains("\"suite\":\"tooling\""))
    );
}

#[tokio::test]
async fn scoring_import_is_visible_on_a_running_server_at_once() {
    let directory = TempDir::new().unwrap();
    let world = world_on_archive(&directory).await;
    let pro = world.customer("pro").await;
    let models = async || world.get_as(&pro, "/api/v1/models").await;
    assert_eq!(models().await.json()["count"], 0);
    let missing = world.get_as(&pro, "/api/v1/models/newcomer").await;
    assert_eq!(
        (missing.status, missing.code().as_str()),
        (404, "model_not_found")
    );
    world.pass(Duration::from_mins(20));
    let data_dir = world.directory.path().to_str().unwrap().to_owned();
    let output = imported(
        &directory,
        "runs.jsonl",
        &lines(3, 30),
        &["--data-dir", &data_dir],
    )
    .await;
    assert!(output.err.contains("the running server"), "{}", output.err);
    let after = models().await;
    let body = after.json();
    assert_eq!(
        (&body["count"], &body["generated_at"]),
        (&3.into(), &"2026-11-21T12:20:00Z".into())
    );
    assert!(
        !after.header("cache-status").contains("stale"),
        "{}",
        after.header("cache-status")
    );
    // The next refresh is still expected at the top of the hour.
    let max_age = after
        .header("cache-control")
        .trim_end_matches(", stale-if-error=86400")
        .strip_prefix("private, max-age=")
        .unwrap()
        .parse::<u32>();
    assert!(
        (2_400..=2_520).contains(&max_age.unwrap()),
        "{}",
        after.header("cache-control")
    );
    let me = world.get_as(&pro, "/api/v1/me").await.json();
    assert_eq!(me["data"][0]["next_refresh_at"], "2026-11-21T13:00:00Z");
    let transparency = world
        .get_as(&pro, "/api/v1/analytics/transparency")
        .await
        .json();
    assert_eq!(transparency["data"][0]["synthetic"], false);
    assert!(!body["license"].as_str().unwrap().contains("ynthetic"));

    // The import includes runs of the current hour, and a model that was requested before it existed.
    world.pass(Duration::from_mins(5));
    let newcomer = one_run_per_suite("newcomer", "2026-11-21T12:10:00Z");
    imported(
        &directory,
        "newcomer.jsonl",
        &newcomer,
        &["--data-dir", &data_dir],
    )
    .await;
    let body = models().await.json();
    assert_eq!(
        (&body["count"], &body["generated_at"]),
        (&4.into(), &"2026-11-21T12:25:00Z".into())
    );
    assert_eq!(
        world.get_as(&pro, "/api/v1/models/newcomer").await.status,
        200
    );
    // Importing the same file again adds and changes nothing.
    let etag = models().await.header("etag").to_owned();
    world.pass(Duration::from_mins(1));
    imported(
        &directory,
        "newcomer.jsonl",
        &newcomer,
        &["--data-dir", &data_dir],
    )
    .await;
    assert_eq!(models().await.header("etag"), etag);
}

#[tokio::test]
async fn scoring_import_is_visible_within_a_minute_on_a_server_that_cannot_be_notified() {
    let directory = TempDir::new().unwrap();
    let world = world_on_archive(&directory).await;
    // Each request has its own key: the clock stops after a minute, and a used-up limit would not be refilled.
    let count = async || {
        let key = world.customer("pro").await.key;
        world.get_by(&key, "/api/v1/models").await.json()["count"].clone()
    };
    assert_eq!(count().await, 0);
    world.pass(Duration::from_secs(1));
    let ended = imported(&directory, "runs.jsonl", &lines(3, 30), &[]).await;
    assert_eq!(ended.err, "", "there is no server in that directory");
    assert_eq!(count().await, 0);
    let end = Wall::parse_rfc3339("2026-11-21T12:01:00Z").unwrap();
    for _ in 0..20_000 {
        // One minute in total, in steps that the server can notice one by one.
        if world.clock.now().wall < end {
            world.pass(Duration::from_millis(500));
        }
        if count().await == 3 {
            return;
        }
    }
    panic!("the import is not detected");
}
