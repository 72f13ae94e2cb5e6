//! `scoregate keys scan`: with the real program, without a server, a store and settings.

use scoregate_base::keys::KeyForm;
use tempfile::TempDir;

use crate::program::{run, run_with, run_with_input};

#[test]
fn keys_in_files_and_standard_input_are_shown_by_position_and_first_characters() {
    let directory = TempDir::new().unwrap();
    let key = KeyForm::new("sg_live", false).mint().unwrap();
    let key = key.expose();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let clean = path("clean.txt");
    let leaky = path("leaky.py");
    let missing = path("missing");
    std::fs::write(
        &clean,
        format!("{}\nghp_0123456789abcdef\n", &key[..key.len() - 1]),
    )
    .unwrap();
    std::fs::write(&leaky, format!("import os\nKEY = \"{key}\"\n")).unwrap();

    let none = run(&["keys", "scan", &clean]).with(0);
    assert_eq!((none.out.as_str(), none.err.as_str()), ("", ""));
    let found = run(&["keys", "scan", &clean, &leaky]).with(1);
    assert_eq!(found.out, format!("{leaky}:2:8: {}\n", &key[..12]));
    let piped = run_with_input(&["keys", "scan", "-"], format!("\n{key} {key}").as_bytes()).with(1);
    assert_eq!(piped.out, format!("-:2:1: {0}\n-:2:46: {0}\n", &key[..12]));

    let unread = run(&["keys", "scan", &missing, &leaky]).with(2);
    assert!(
        unread.out.contains(&leaky) && unread.err.contains("missing cannot be read"),
        "{}",
        unread.err
    );
    let is_directory = run(&["keys", "scan", directory.path().to_str().unwrap()]).with(2);
    assert!(
        is_directory.err.contains("not a regular file"),
        "{}",
        is_directory.err
    );

    let json = run(&["keys", "scan", &leaky, &leaky, "--json"])
        .with(1)
        .json();
    let expected = serde_json::json!({"file": leaky, "line": 2, "column": 8, "prefix": &key[..12]});
    assert_eq!(json, serde_json::json!({"keys": [expected, expected]}));
    let empty = run(&["keys", "scan", &clean, "--json"]).with(0).json();
    assert_eq!(empty, serde_json::json!({"keys": []}));
}

#[test]
fn keys_of_a_service_with_another_prefix_are_found_with_its_setting() {
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("file");
    let key = KeyForm::new("acme", false).mint().unwrap();
    std::fs::write(&file, key.expose()).unwrap();
    let arguments = ["keys", "scan", file.to_str().unwrap()];
    run(&arguments).with(0);
    run_with(&arguments, &[("SCOREGATE_KEYS_PREFIX", "acme")]).with(1);
    let invalid = run_with(&arguments, &[("SCOREGATE_KEYS_PREFIX", "no prefix")]).with(2);
    assert!(invalid.err.contains("keys.prefix"), "{}", invalid.err);
}
