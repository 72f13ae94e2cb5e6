//! The website of an application on the command line, on a running and on a stopped server.

use serde_json::Value;
use tempfile::TempDir;

use crate::program::{BUILT_IN, Keys, Program};

/// The website of an application is set, shown and removed.
fn websites(keys: &Keys<'_>) {
    let url = "https://example.org/?a=b";
    let created = keys.json(&["create", "--name", "Site", "--tier", "pro", "--url", url]);
    assert_eq!(created["application"]["url"], url);
    let id = created["application"]["id"].as_str().unwrap();
    let changed = keys.json(&["update", id, "--contact", "a@example.org"]);
    assert_eq!(
        (&changed["url"], &changed["contact"]),
        (&url.into(), &"a@example.org".into())
    );
    let text = keys.run(&["show", id]).with(0).out;
    assert!(
        text.contains(&format!("url                {url}\n")),
        "{text}"
    );
    let refused = keys
        .run(&["update", id, "--url", "javascript:alert(1)"])
        .with(1);
    assert!(
        refused
            .err
            .contains("the url must begin with https:// or http://"),
        "{}",
        refused.err
    );
    keys.run(&[
        "create",
        "--name",
        "Site",
        "--tier",
        "pro",
        "--url",
        "example.org",
    ])
    .with(1);
    let other = "http://localhost:3000/";
    assert_eq!(keys.json(&["update", id, "--url", other])["url"], other);
    let without = keys.json(&["update", id, "--url", ""]);
    assert_eq!(
        (&without["url"], &without["contact"]),
        (&Value::Null, &"a@example.org".into())
    );
}

#[test]
fn a_website_is_set_shown_and_removed_on_a_stopped_server() {
    websites(&Keys(TempDir::new().unwrap().path()));
}

#[test]
fn a_website_is_set_shown_and_removed_on_a_running_server() {
    let directory = TempDir::new().unwrap();
    let program = Program::serve(directory.path(), &BUILT_IN);
    program.public();
    websites(&Keys(directory.path()));
    program.stop().with(0);
}
