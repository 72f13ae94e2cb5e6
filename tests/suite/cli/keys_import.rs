//! Keys that were created elsewhere are imported by their SHA-256 and exported again: with the real program, stopped
//! and running.

use std::path::Path;

use scoregate_base::keys::{Digest, KeyForm};
use tempfile::TempDir;

use crate::program::{BUILT_IN, CommandOutput, Keys, Program, ProgramClient};

const FOREIGN: &str = "tp_1234567890abcdef";
const OPEN: [(&str, &str); 2] = [
    ("SCOREGATE_UPSTREAM", "built-in"),
    ("SCOREGATE_KEYS_ACCEPT_IMPORTED", "true"),
];

fn import(keys: &Keys<'_>, format: &str, lines: &[u8]) -> CommandOutput {
    keys.run_with_input(&["import", "-", "--format", format], lines)
}

fn digest(text: &str) -> String {
    Digest::of(text).to_string()
}

fn counted(imported_count: usize, existing: usize, refused: usize) -> String {
    format!("{imported_count} imported, {existing} already present, {refused} rejected\n")
}

fn file(directory: &Path, name: &str, text: &str) -> String {
    let path = directory.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A small file of each format with every field; two keys share an application.
fn everything() -> (String, String) {
    let [one, two, three] = ["one", "two", "three"].map(digest);
    let csv = format!(
        "note,sha256,tier,name,application,prefix,own_limits,contact,created_at,expires_at,revoked_at\r\n\
         \"a, \"\"b\"\"\",{one},pro,Wetter 🌦,app_0123456789a,tp_1,\"{{\"\"minute\"\":7,\"\"day\"\":70}}\",ops@example.org,2025-01-02T03:04:05Z,2099-01-01T00:00:00Z,\r\n\
         ,{two},pro,Wetter 🌦,app_0123456789a,,,,2025-02-02T03:04:05.678Z,,2025-06-01T00:00:00Z\r\n\
         ,{three},free,Other,,,,,,,\r\n"
    );
    let jsonl = format!(
        "{{\"sha256\":\"{one}\",\"name\":\"Wetter 🌦\",\"tier\":\"pro\",\"application\":\"app_0123456789a\"}}\n\n\
         {{\"tier\":\"free\",\"name\":\"Fourth\",\"sha256\":\"{}\",\"own_limits\":{{\"day\":5}},\"note\":null,\"url\":\"https://fourth.example/?a=b\"}}\n",
        digest("four")
    );
    (csv, jsonl)
}

/// Imports both files twice, and exports them.
fn import_and_export(keys: &Keys<'_>) {
    let files = TempDir::new().unwrap();
    let (csv, jsonl) = everything();
    let csv = file(files.path(), "keys.csv", &csv);
    let jsonl = file(files.path(), "keys.jsonl", &jsonl);
    assert_eq!(keys.run(&["import", &csv]).with(0).out, counted(3, 0, 0));
    assert_eq!(keys.run(&["import", &jsonl]).with(0).out, counted(1, 1, 0));
    let exported = keys.run(&["export"]).with(0).out;
    assert!(
        exported.contains(",Fourth,free,") && exported.contains(",https://fourth.example/?a=b,"),
        "{exported}"
    );
    assert_eq!(keys.run(&["import", &csv]).with(0).out, counted(0, 3, 0));
    assert_eq!(
        keys.run(&["export"]).with(0).out,
        exported,
        "importing it again changed something"
    );
    let again = keys.json(&["import", &jsonl]);
    assert_eq!(
        (again["imported"].as_u64(), again["existing"].as_u64()),
        (Some(0), Some(2))
    );

    let shown = keys.json(&["show", "app_0123456789a"]);
    assert_eq!(
        (
            shown["own_limits"]["minute"].as_u64(),
            shown["note"].as_str()
        ),
        (Some(7), Some("a, \"b\""))
    );
    assert_eq!(shown["keys"][0]["prefix"], "tp_1");
    assert_eq!(
        shown["keys"][1]["prefix"],
        format!("sha256:{}", &digest("two")[..8])
    );
    assert_eq!(shown["keys"][1]["created_at"], "2025-02-02T03:04:05.678Z");
    assert_eq!(shown["keys"][1]["revoked_at"], "2025-06-01T00:00:00Z");

    for format in ["csv", "jsonl"] {
        let other = TempDir::new().unwrap();
        let wanted = keys.run(&["export", "--format", format]).with(0).out;
        let other = Keys(other.path());
        assert_eq!(
            import(&other, format, wanted.as_bytes()).with(0).out,
            counted(4, 0, 0)
        );
        assert_eq!(
            other.run(&["export", "--format", format]).with(0).out,
            wanted,
            "{format}"
        );
    }
}

#[test]
fn keys_are_imported_and_exported_on_a_stopped_server() {
    let directory = TempDir::new().unwrap();
    import_and_export(&Keys(directory.path()));
}

#[test]
fn keys_are_imported_and_exported_on_a_running_server() {
    let directory = TempDir::new().unwrap();
    let program = Program::serve(directory.path(), &BUILT_IN);
    program.public();
    import_and_export(&Keys(directory.path()));
    program.stop().with(0);
}

#[tokio::test]
async fn an_imported_key_works_at_once_on_a_running_server_that_accepts_it() {
    let directory = TempDir::new().unwrap();
    let program = Program::serve(directory.path(), &OPEN);
    let client = ProgramClient::to(program.public()).await;
    let keys = Keys(directory.path());
    let line = |text: &str| {
        format!(
            "{{\"sha256\":\"{}\",\"name\":\"n\",\"tier\":\"pro\"}}\n",
            digest(text)
        )
    };
    assert_eq!(
        client.identity(FOREIGN).await,
        Err("invalid_api_key".into())
    );
    let output = import(&keys, "jsonl", line(FOREIGN).as_bytes()).with(0);
    assert_eq!(output.err, "", "no warning if such keys are accepted");
    let (tier, id) = client.identity(FOREIGN).await.unwrap();
    assert_eq!(tier, "pro");
    keys.run(&["revoke", &id, "--key", &digest(FOREIGN)])
        .with(0);
    assert_eq!(
        client.identity(FOREIGN).await,
        Err("invalid_api_key".into())
    );
    let again = import(&keys, "jsonl", line(FOREIGN).as_bytes()).with(0);
    assert_eq!(again.out, counted(0, 1, 0));
    assert_eq!(
        client.identity(FOREIGN).await,
        Err("invalid_api_key".into()),
        "an import undid a revocation"
    );
    program.stop().with(0);
}

#[tokio::test]
async fn without_the_setting_only_generated_keys_work_and_one_warning_is_logged() {
    let directory = TempDir::new().unwrap();
    let program = Program::serve(directory.path(), &BUILT_IN);
    let client = ProgramClient::to(program.public()).await;
    let ours = KeyForm::new("sg_live", false).mint().unwrap();
    let lines = format!(
        "sha256,name,tier,prefix\n{},ours,pro,{}\n{},a,pro,tp_1\n{},b,pro,\n",
        digest(ours.expose()),
        &ours.expose()[..12],
        digest(FOREIGN),
        digest("another key of sixteen characters")
    );
    let output = import(&Keys(directory.path()), "csv", lines.as_bytes()).with(0);
    assert_eq!(output.out, counted(3, 0, 0));
    assert_eq!(
        output.err.matches("keys.accept_imported").count(),
        1,
        "{}",
        output.err
    );
    assert_eq!(client.identity(ours.expose()).await.unwrap().0, "pro");
    assert_eq!(
        client.identity(FOREIGN).await,
        Err("invalid_api_key".into())
    );
    program.stop().with(0);
}

/// Lines with mistakes that a single JSON line does not show (`admin/key_lines.rs`), each with its wrong field and
/// words of the message; without a field, the line is imported.
fn lines_with_mistakes(held: &str) -> Vec<(Vec<u8>, &'static str, &'static str)> {
    let new = |text: &str| digest(&format!("new {text}"));
    vec![
        (format!("{},n,pro,,,,", new("taken")).into(), "", ""),
        (
            format!("{},n,pro,,,,", new("taken")).into(),
            "sha256",
            "occurs twice in this file",
        ),
        (
            format!("{},n,sg_live_AstrayKey,,,,", new("a")).into(),
            "tier",
            "free, pro, developer",
        ),
        (
            format!("{},n,{},,,,", new("z"), "x".repeat(60_000)).into(),
            "tier",
            "200",
        ),
        (
            format!("{},n,pro,,,", new("b")).into(),
            "line",
            "6 fields; the header line has 7",
        ),
        (format!("{},\"n,pro,,,,", new("c")).into(), "line", "quote"),
        (
            format!("{},Weather site,pro,{held},,,", digest("one")).into(),
            "sha256",
            "another application",
        ),
        (
            format!("{},n,pro,app_0000000000b,,,", digest("two")).into(),
            "sha256",
            "another application",
        ),
        (
            format!("{},Other,pro,{held},,,", new("j")).into(),
            "name",
            "differs",
        ),
        (
            format!("{},Weather site,free,{held},,,", new("k")).into(),
            "tier",
            "differs",
        ),
        (
            format!(
                "{},Weather site,pro,{held},\"{{\"\"day\"\":5}}\",,",
                new("l")
            )
            .into(),
            "own_limits",
            "differs",
        ),
        (
            format!("{},Weather site,pro,{held},,,x", new("m")).into(),
            "note",
            "differs",
        ),
        (vec![0xff, 0xfe], "line", "UTF-8"),
        (vec![b'x'; 1 << 20], "line", "longer"),
        (
            format!("{},Weather site,pro,{held},,,", new("added")).into(),
            "",
            "",
        ),
    ]
}

#[test]
fn every_rejected_line_is_reported_by_number_and_field_and_the_others_are_imported() {
    let directory = TempDir::new().unwrap();
    let keys = Keys(directory.path());
    let (held, _) = keys.create("pro");
    let (lines, _) = everything();
    import(&keys, "csv", lines.as_bytes()).with(0);
    let rows = lines_with_mistakes(&held);
    let mut text = b"sha256,name,tier,application,own_limits,expires_at,note\n".to_vec();
    for (line, _, _) in &rows {
        text.extend_from_slice(line);
        text.push(b'\n');
    }
    let output = import(&keys, "csv", &text).with(1);
    let mut lines = output.err.lines();
    for (number, (_, field, words)) in (2..)
        .zip(&rows)
        .filter(|(_, (_, field, _))| !field.is_empty())
    {
        let line = lines.next().unwrap_or("");
        assert!(
            line.starts_with(&format!("standard input:{number}: {field}: ")),
            "{number} {field}: {line}"
        );
        assert!(line.contains(words), "{words}: {line}");
    }
    assert_eq!(output.out, counted(2, 0, rows.len() - 2));
    assert!(
        !output.err.contains("AstrayKey"),
        "a key in the wrong column is not repeated: {}",
        output.err
    );
    assert_eq!(
        keys.json(&["show", &held])["keys"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn an_invalid_file_imports_nothing_and_every_problem_is_reported() {
    let directory = TempDir::new().unwrap();
    let keys = Keys(directory.path());
    let header = import(&keys, "csv", b"name,key,sha256\nn,x,y\n").with(1);
    assert!(
        header.err.contains("standard input:1: key: ") && header.err.contains(":1: tier: "),
        "{}",
        header.err
    );
    assert_eq!(header.out, counted(0, 0, 2));
    for (arguments, words) in [
        (&["import", "keys.txt"][..], "--format"),
        (&["import", "-"], "--format"),
        (&["import", "nothing.csv"], "nothing.csv"),
        (&["export", "keys.txt"], "--format"),
        (&["export", "--force"], "FILE"),
    ] {
        let refused = keys.run(arguments).with(1);
        assert!(
            refused.err.contains(words) && refused.out.is_empty(),
            "{arguments:?}: {}",
            refused.err
        );
    }
    assert_eq!(import(&keys, "jsonl", b"").with(0).out, counted(0, 0, 0));
}

#[test]
fn many_keys_are_imported_in_batches_with_order_and_number_kept() {
    let directory = TempDir::new().unwrap();
    let keys = Keys(directory.path());
    let mut lines: Vec<String> = (0..1_200)
        .map(|number| {
            format!(
                "{{\"sha256\":\"{}\",\"name\":\"n\",\"tier\":\"pro\"}}",
                digest(&number.to_string())
            )
        })
        .collect();
    lines[700] = "no JSON".into();
    lines[1_100] = lines[3].clone();
    let output = import(&keys, "jsonl", lines.join("\n").as_bytes()).with(1);
    assert_eq!(output.out, counted(1_198, 0, 2));
    assert!(
        output.err.contains("standard input:701: line: ") && output.err.contains(":1101: sha256: "),
        "{}",
        output.err
    );
    assert_eq!(keys.run(&["export"]).with(0).out.lines().count(), 1_199);
}
