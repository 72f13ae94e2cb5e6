//! Commands in README.md and docs/ work on the data directory of a demo: blocks marked `sh run` while the demo is
//! running, and blocks marked `sh run stopped` after it has stopped.

use std::{fs, path::Path, process::Command};

use scoregate_base::clock::Clock;
use tempfile::TempDir;

use crate::program::{BUILT_IN, Keys, Program, ProgramClient};

/// A block of commands, with its page for messages.
struct CommandBlock {
    page: String,
    needs_server: bool,
    script: String,
}

fn blocks() -> Vec<CommandBlock> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = fs::read_dir(root.join("docs"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut pages: Vec<_> = docs
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
        .chain([root.join("README.md")])
        .collect();
    pages.sort();
    let mut blocks = Vec::new();
    for path in pages {
        let page = path.display().to_string();
        let text = fs::read_to_string(&path).unwrap();
        for fenced_block in text.split("\n```sh run").skip(1) {
            let (mark, rest) = fenced_block.split_once('\n').unwrap();
            let script = rest.split("\n```").next().unwrap().to_owned();
            let needs_server = match mark.trim() {
                "" => true,
                "stopped" => false,
                other => panic!("{page}: unknown mark {other}"),
            };
            blocks.push(CommandBlock {
                page: page.clone(),
                needs_server,
                script,
            });
        }
    }
    blocks
}

/// Runs a block in `work` as a user would, with the placeholders replaced.
fn run(block: &CommandBlock, work: &Path, data_dir: &Path, application: &str) {
    let program = Path::new(env!("CARGO_BIN_EXE_scoregate"));
    let path = format!(
        "{}:{}",
        program.parent().unwrap().display(),
        std::env::var("PATH").unwrap()
    );
    let today = Clock::system().now().wall.day().to_string();
    let script = block
        .script
        .replace("target/release/", "")
        .replace("app_0123456789a", application)
        .replace("2026-11-22", &today)
        .replace("DIR", data_dir.to_str().unwrap());
    let output = Command::new("sh")
        .args(["-e", "-c", &script])
        .current_dir(work)
        .env("PATH", path)
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{}:\n{script}\n{error}",
        block.page
    );
}

#[test]
fn documented_commands_work_as_written() {
    let blocks = blocks();
    let (running, stopped): (Vec<_>, Vec<_>) = blocks.iter().partition(|block| block.needs_server);
    assert!(
        running.len() >= 3 && stopped.len() >= 3,
        "{} and {} blocks",
        running.len(),
        stopped.len()
    );
    let data = TempDir::new().unwrap();
    let work = TempDir::new().unwrap();
    let arguments = [
        "--listen",
        "127.0.0.1:0",
        "--admin-listen",
        "127.0.0.1:0",
        "--data-dir",
    ];
    let program = Program::start(
        &[&["demo"], &arguments[..], &[data.path().to_str().unwrap()]].concat(),
        &[],
    );
    program.prints("state ");
    let keys = Keys(data.path());
    for block in running {
        let (application, _) = keys.create("pro");
        run(block, work.path(), data.path(), &application);
    }
    let (application, _) = keys.create("pro");
    program.stop().with(0);
    for block in stopped {
        run(block, work.path(), data.path(), &application);
    }
}

#[tokio::test]
async fn the_sample_of_benchmark_runs_in_the_documentation_gives_a_score() {
    let blocks = blocks();
    let sample = blocks
        .iter()
        .find(|block| block.script.contains("sample.jsonl"))
        .unwrap();
    let data = TempDir::new().unwrap();
    let work = TempDir::new().unwrap();
    let program = Program::serve(data.path(), &BUILT_IN);
    let client = ProgramClient::to(program.public()).await;
    let (application, key) = Keys(data.path()).create("pro");
    run(sample, work.path(), data.path(), &application);
    let models = client.get("/api/v1/models", &key).send().await.json();
    let model = &models["data"][0]["id"];
    let score = models["data"][0]["currentScore"].as_f64();
    assert!(
        *model == "atlas-4-large" && score.is_some_and(|score| (50.0..90.0).contains(&score)),
        "{models:#}"
    );
    program.stop().with(0);
}
