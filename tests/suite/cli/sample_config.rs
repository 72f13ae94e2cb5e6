//! The sample configuration for production, `deploy/scoregate.toml`: its settings and its commented suggestions are
//! valid.
//!
//! The sample that the program prints is in `cli_messages`.

use std::path::PathBuf;

use scoregate::config::{read_text, resolve};
use tempfile::TempDir;

use crate::program::{BUILT_IN, Keys, Program, ProgramClient, run};

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("deploy/scoregate.toml")
}

/// A commented line that contains a setting or a table.
fn suggested(line: &str) -> Option<&str> {
    let setting = line.strip_prefix("# ")?;
    let name = setting.split_once(" = ").map_or(setting, |(name, _)| name);
    let is_table = name.starts_with('[') && name.ends_with(']');
    let is_setting = name != setting && name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
    (is_table || is_setting).then_some(setting)
}

#[test]
fn the_production_sample_is_valid() {
    let ended = run(&["check", "--config", file().to_str().unwrap()]).with(0);
    assert_eq!(
        (ended.out, ended.err),
        (String::new(), format!("{}: ok\n", file().display()))
    );
}

#[test]
fn the_commented_settings_of_the_sample_are_valid() {
    let sample = std::fs::read_to_string(file()).unwrap();
    assert!(
        sample.lines().filter_map(suggested).count() > 10,
        "the sample has no commented settings"
    );
    let all: Vec<&str> = sample
        .lines()
        .map(|line| suggested(line).unwrap_or(line))
        .collect();
    let problems =
        |text: &str| resolve(&read_text(text).unwrap()).map_err(|problems| problems.to_string());
    problems(&all.join("\n")).unwrap();
    // An unknown setting is detected.
    let mistaken = all.join("\n").replace("trusted = ", "trust = ");
    assert!(problems(&mistaken).unwrap_err().contains("proxies.trusted"));
}

#[tokio::test]
async fn a_server_with_the_sample_s_settings_serves_requests() {
    let directory = TempDir::new().unwrap();
    let file = file();
    let data_dir = directory.path().to_str().unwrap().to_owned();
    let test_settings = [
        "--listen",
        "127.0.0.1:0",
        "--admin-listen",
        "127.0.0.1:0",
        "--data-dir",
        &data_dir,
    ];
    let arguments = [
        &["serve", "--config", file.to_str().unwrap()],
        &test_settings[..],
    ]
    .concat();
    // The upstream of the sample does not exist here, and its log format is JSON.
    let server = Program::start(&arguments, &[BUILT_IN[0], ("SCOREGATE_LOG_FORMAT", "text")]);
    let public = server.public();
    let (application, key) = Keys(directory.path()).create("pro");
    let client = ProgramClient::to(public).await;
    assert_eq!(client.identity(&key).await, Ok(("pro".into(), application)));
    let models = client.get("/api/v1/models", &key).send().await;
    assert_eq!(models.status, 200);
    server.stop().with(0);
}
