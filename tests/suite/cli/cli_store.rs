//! `scoregate store` and a server with a damaged store: the printed commands can be pasted, and the keys work again.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use scoregate_base::clock::{Clock, Day};
use scoregate_store::{LocalFile, Mirror};
use tempfile::TempDir;

use crate::program::{CommandOutput, Program, ProgramClient, run, run_with, sql, within_one_day};

const BUILT_IN: [(&str, &str); 1] = [("SCOREGATE_UPSTREAM", "built-in")];

/// A data directory.
struct DataDir(TempDir);

impl DataDir {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self) -> PathBuf {
        self.path("scoregate.db")
    }

    fn run(&self, arguments: &[&str]) -> CommandOutput {
        run(&[arguments, &["--data-dir", self.0.path().to_str().unwrap()]].concat())
    }

    fn store(&self, arguments: &[&str]) -> CommandOutput {
        self.run(&[&["store"], arguments].concat())
    }

    fn create(&self, tier: &str) -> String {
        self.run(&["keys", "create", "--name", "n", "--tier", tier])
            .with(0)
            .out
            .trim()
            .to_owned()
    }

    fn serve(&self) -> Program {
        Program::serve(self.0.path(), &BUILT_IN)
    }

    /// A start that fails.
    fn failing_start(&self) -> CommandOutput {
        let data_dir = [
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--admin-listen",
            "127.0.0.1:0",
            "--data-dir",
        ];
        run_with(
            &[&data_dir[..], &[self.0.path().to_str().unwrap()]].concat(),
            &BUILT_IN,
        )
        .with(2)
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Runs a line in a shell that finds the program by name.
fn run_in_shell(line: &str) -> CommandOutput {
    let program = Path::new(env!("CARGO_BIN_EXE_scoregate")).parent().unwrap();
    let script = format!("PATH={}:$PATH; {line}", program.display());
    let output = Command::new("sh")
        .arg("-c")
        .arg(script)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let line = |bytes| String::from_utf8(bytes).unwrap();
    CommandOutput {
        code: output.status.code(),
        out: line(output.stdout),
        err: line(output.stderr),
    }
}

/// The commands in an output, in order.
fn commands(output: &str) -> Vec<String> {
    output
        .lines()
        .filter_map(|line| line.strip_prefix("  "))
        .filter(|line| !line.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

fn damage(file: &Path) {
    let mut bytes = fs::read(file).unwrap();
    bytes[4096..4196].fill(0xA5);
    fs::write(file, bytes).unwrap();
}

#[tokio::test]
async fn the_printed_recovery_steps_restore_a_backup() {
    let data_dir = DataDir::new();
    let key = data_dir.create("pro");
    let older = data_dir.path("older.db");
    data_dir.store(&["backup", text(&older)]).with(0);
    let backup = data_dir.path("it's mine.db");
    let running = data_dir.serve();
    let client = ProgramClient::to(running.public()).await;
    let held = data_dir.store(&["backup", text(&backup)]).with(0);
    assert!(held.out.contains("applications       1"), "{}", held.out);
    assert_eq!(client.identity(&key).await.unwrap().0, "pro");
    running.stop().with(0);

    damage(&data_dir.file());
    let before = fs::read(data_dir.file()).unwrap();
    let failing_start = data_dir.failing_start();
    assert!(
        failing_start.err.contains(text(&data_dir.file())) && failing_start.err.contains("damaged"),
        "{}",
        failing_start.err
    );
    assert_eq!(
        fs::read(data_dir.file()).unwrap(),
        before,
        "the file is unchanged"
    );
    let back = commands(&failing_start.err);
    assert!(
        back[0].contains("store check")
            && back[1].contains("mine.db")
            && back[2].contains("older.db"),
        "{back:?}"
    );
    let checked = run_in_shell(&back[0]);
    assert!(
        checked.code == Some(1) || checked.code == Some(2),
        "{checked:?}"
    );
    let refused = run_in_shell(&back[1]).with(1);
    assert!(
        refused.err.contains("--accept-lost-revocations"),
        "{}",
        refused.err
    );
    let accepted = format!("{} --accept-lost-revocations --reopen-day", back[1]);
    let restored = run_in_shell(&accepted).with(0);
    let aside = restored
        .err
        .lines()
        .find_map(|line| line.split("kept as ").nth(1))
        .unwrap();
    assert_eq!(fs::read(aside).unwrap(), before, "the damaged file is kept");

    let running = data_dir.serve();
    let client = ProgramClient::to(running.public()).await;
    assert_eq!(client.identity(&key).await.unwrap().0, "pro");
    running.stop().with(0);
    data_dir.store(&["check"]).with(0);
}

#[tokio::test]
async fn the_printed_recovery_steps_save_readable_records_without_a_backup() {
    needs!("sqlite3");
    let data_dir = DataDir::new();
    let keys: Vec<String> = (0..2).map(|_| data_dir.create("pro")).collect();
    // Only the audit trail is damaged: its pages are in no other table.
    let file = data_dir.file();
    let root = "SELECT rootpage FROM sqlite_schema WHERE name = 'audit'";
    let page: usize = sql(data_dir.0.path(), root).trim().parse().unwrap();
    let mut bytes = fs::read(&file).unwrap();
    bytes[(page - 1) * 4096..page * 4096].fill(0xA5);
    fs::write(&file, bytes).unwrap();

    let back = commands(&data_dir.failing_start().err);
    assert_eq!(back.len(), 3, "{back:?}");
    run_in_shell(&back[0]).with(1);
    run_in_shell(&back[1]).with(0);
    let restored = run_in_shell(&back[2]).with(0);
    assert!(
        restored.out.contains("applications       2"),
        "{}",
        restored.out
    );
    let running = data_dir.serve();
    let client = ProgramClient::to(running.public()).await;
    for key in &keys {
        assert_eq!(client.identity(key).await.unwrap().0, "pro");
    }
    running.stop().with(0);
}

#[tokio::test]
async fn an_older_backup_refills_no_daily_quota_and_a_closed_day_refuses_until_midnight() {
    let data_dir = DataDir::new();
    let key = data_dir.create("free");
    let backup = data_dir.path("backup.db");
    data_dir.store(&["backup", text(&backup)]).with(0);
    let spend = async |wanted: u16| {
        let running = data_dir.serve();
        let client = ProgramClient::to(running.public()).await;
        let response = client.get("/api/v1/models", &key).send().await;
        assert_eq!(response.status, wanted);
        running.stop().with(0);
        let shown = data_dir.run(&["keys", "list", "--json"]).with(0).json();
        shown["applications"][0]["granted_today"].as_u64().unwrap()
    };
    assert_eq!(spend(200).await, 1);
    let refused = data_dir.store(&["import", text(&backup)]).with(1);
    assert!(refused.err.contains("store restore"), "{}", refused.err);
    let restored = data_dir.store(&["restore", text(&backup)]).with(0);
    assert!(restored.err.contains("stay granted"), "{}", restored.err);
    assert_eq!(
        spend(200).await,
        2,
        "what was granted before the restore is still granted"
    );

    fs::write(data_dir.file(), "").unwrap();
    let refused = data_dir.store(&["restore", text(&backup)]).with(1);
    assert!(
        refused.err.contains("--accept-lost-revocations"),
        "{}",
        refused.err
    );
    let restored = data_dir
        .store(&["restore", text(&backup), "--accept-lost-revocations"])
        .with(0);
    assert!(restored.err.contains("refused until"), "{}", restored.err);
    spend(429).await;
}

#[test]
fn a_restore_fails_while_a_server_runs_and_names_the_remedy() {
    let data_dir = DataDir::new();
    data_dir.create("pro");
    let backup = data_dir.path("backup.db");
    data_dir.store(&["backup", text(&backup)]).with(0);
    let running = data_dir.serve();
    running.public();
    let failing_start = data_dir.store(&["restore", text(&backup)]).with(1);
    assert!(
        failing_start.err.contains("in use by another scoregate")
            && failing_start.err.contains("stop it")
    );
    running.stop().with(0);
    // The directory of the previous server may be this directory.
    let previous = data_dir.0.path().to_str().unwrap();
    data_dir
        .store(&["restore", text(&backup), "--previous", previous])
        .with(0);
    let trail = data_dir.run(&["keys", "audit", "--json"]).with(0).json();
    let newest = &trail["records"][0];
    assert_eq!(newest["action"], "import_store");
    assert!(
        newest["detail"].as_str().unwrap().contains("backup.db"),
        "{newest}"
    );
}

/// Runs a server for this many responses.
fn use_units(data_dir: &DataDir, key: &str, responses: u32) {
    let running = data_dir.serve();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let client = ProgramClient::to(running.public()).await;
        for _ in 0..responses {
            assert_eq!(client.get("/api/v1/models", key).send().await.status, 200);
        }
    });
    running.stop().with(0);
}

/// The command in a text that closes future days, for this day and directory.
fn closing_command(text: &str, today: Day, data_dir: &DataDir) -> String {
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("close-future-days --"))
        .collect();
    let [line] = lines.as_slice() else {
        panic!("not exactly one command: {lines:?}")
    };
    let command = &line[line.find("scoregate store").unwrap()..];
    command
        .replace("2026-11-22", &today.to_string())
        .replace(" DIR", &format!(" {}", data_dir.0.path().display()))
}

#[test]
fn a_day_opened_by_a_wrong_clock_is_closed_by_the_printed_command() {
    within_one_day(|| {
        let today = Clock::system().now().wall.day();
        let tomorrow = Day::from_number(today.number() + 1);
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let page = |name: &str| fs::read_to_string(root.join(name)).unwrap();
        let texts = [
            None,
            Some(page("docs/operate.md")),
            Some(page("deploy/prometheus/RUNBOOK.md")),
        ];
        for text in texts {
            let data_dir = DataDir::new();
            let key = data_dir.create("pro");
            use_units(&data_dir, &key, 3);
            // The state after a server whose clock was a day ahead.
            let ahead = format!(
                "INSERT INTO ledger_days (day, application, granted) SELECT '{tomorrow}', id, 9000 FROM applications; \
                 UPDATE calendar SET day = '{tomorrow}'"
            );
            sql(data_dir.0.path(), &ahead);
            let running = data_dir.serve();
            let line = running.logs("UTC day in the future");
            let checked = data_dir.store(&["check"]).with(1);
            let printed = closing_command(&checked.err, today, &data_dir);
            assert!(
                line.contains(&printed) && line.contains(&tomorrow.to_string()),
                "{line}"
            );
            let command = text.map_or(printed, |text| closing_command(&text, today, &data_dir));
            assert!(
                run_in_shell(&command).with(1).err.contains("stop it"),
                "it ran while a server was running"
            );
            running.stop().with(0);

            let closed = run_in_shell(&command).with(0);
            assert!(
                closed
                    .err
                    .contains(&format!("Closed {tomorrow}. 9000 units")),
                "{}",
                closed.err
            );
            assert_eq!(data_dir.store(&["check"]).with(0).err, "");
            let shown = data_dir.run(&["keys", "list", "--json"]).with(0).json();
            assert_eq!(shown["applications"][0]["granted_today"], 9_003);
            let trail = data_dir.run(&["keys", "audit", "--json"]).with(0).json();
            assert_eq!(trail["records"][0]["action"], "close_future_days");
            use_units(&data_dir, &key, 1);
            let days = sql(data_dir.0.path(), "SELECT day, granted FROM ledger_days");
            assert_eq!(
                days,
                format!("{today}|9004\n"),
                "the gateway uses the current day again"
            );
            assert!(
                run_in_shell(&command)
                    .with(0)
                    .err
                    .contains("nothing was changed")
            );
        }
    });
}

#[test]
fn a_command_that_closes_days_is_rejected_for_any_date_but_today() {
    let data_dir = DataDir::new();
    data_dir.create("pro");
    let failing_start = data_dir
        .store(&["close-future-days", "--today", "2020-02-29"])
        .with(1);
    assert!(
        failing_start.err.contains("correct the clock"),
        "{}",
        failing_start.err
    );
    for wrong in ["2026-02-30", "today", "20261122"] {
        let failing_start = data_dir
            .store(&["close-future-days", "--today", wrong])
            .with(1);
        assert!(
            failing_start.err.contains("2026-11-22"),
            "{}",
            failing_start.err
        );
    }
    let check_no_leak = DataDir::new();
    let failing_start = check_no_leak
        .store(&["close-future-days", "--today", "2020-02-29"])
        .with(1);
    assert!(
        failing_start.err.contains("there is no store"),
        "{}",
        failing_start.err
    );
}

#[test]
fn a_check_prints_text_or_json_and_never_creates_a_store() {
    let data_dir = DataDir::new();
    data_dir.create("pro");
    let json = data_dir.store(&["check", "--json"]).with(0).json();
    assert_eq!(
        (json["sound"].as_bool(), json["keys_in_force"].as_u64()),
        (Some(true), Some(1))
    );
    fs::write(data_dir.file(), "").unwrap();
    assert!(
        data_dir
            .store(&["check"])
            .with(2)
            .err
            .contains("it is empty")
    );
    let check_no_leak = DataDir::new();
    assert!(
        check_no_leak
            .store(&["check"])
            .with(1)
            .err
            .contains("--data-dir")
    );
    assert_eq!(fs::read_dir(check_no_leak.0.path()).unwrap().count(), 0);
}

#[test]
fn an_export_is_complete_on_another_machine_and_contains_no_key() {
    let data_dir = DataDir::new();
    let other = DataDir::new();
    let key = data_dir.create("pro");
    let lines = data_dir.store(&["export", "-"]).with(0);
    assert!(
        !lines.out.contains(&key) && lines.out.lines().count() == 5,
        "{}",
        lines.out
    );
    let file = data_dir.path("keys.jsonl");
    data_dir.store(&["export", text(&file)]).with(0);
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    data_dir.store(&["export", text(&file)]).with(1);
    other.store(&["import", text(&file)]).with(0);
    assert_eq!(
        other.run(&["keys", "list"]).with(0).out,
        data_dir.run(&["keys", "list"]).with(0).out
    );
    fs::write(&file, &lines.out[..lines.out.len() / 2]).unwrap();
    let cut = DataDir::new().store(&["import", text(&file)]).with(1);
    assert!(cut.err.contains("it is truncated"), "{}", cut.err);
}

#[test]
fn an_export_is_readable_by_its_owner_only_and_overwrites_no_file() {
    let data_dir = DataDir::new();
    data_dir.create("pro");
    let protected_files = data_dir.path("precious");
    let open = data_dir.path("open.jsonl.half");
    for similar_file in [&protected_files, &open] {
        fs::write(similar_file, "mine").unwrap();
        fs::set_permissions(similar_file, fs::Permissions::from_mode(0o666)).unwrap();
    }
    std::os::unix::fs::symlink(&protected_files, data_dir.path("led.jsonl.half")).unwrap();
    for name in ["open.jsonl", "led.jsonl"] {
        let file = data_dir.path(name);
        data_dir.store(&["export", text(&file)]).with(0);
        let made = fs::symlink_metadata(&file).unwrap();
        assert!(
            made.is_file() && made.permissions().mode() & 0o777 == 0o600,
            "{name}: {made:?}"
        );
    }
    assert_eq!(fs::read_to_string(&protected_files).unwrap(), "mine");
}

#[test]
fn output_that_cannot_be_written_is_reported() {
    let ended = run_in_shell("scoregate check --sample > /dev/full").with(2);
    assert!(
        ended.err.contains("standard output cannot be written"),
        "{}",
        ended.err
    );
}

#[tokio::test]
async fn store_commands_ignore_the_other_files_of_a_gateway() {
    let data_dir = DataDir::new();
    let key = data_dir.create("pro");
    let running = data_dir.serve();
    running.public();
    running.stop().with(0);
    let others = [LocalFile::NAME, Mirror::NAME].map(|name| data_dir.path(name));
    let contents = || others.each_ref().map(|other| fs::read(other).unwrap());
    let kept = contents();
    let backup = data_dir.path("backup.db");
    data_dir.store(&["backup", text(&backup)]).with(0);
    let before = data_dir.store(&["check"]).with(0).out;
    data_dir
        .store(&["export", text(&data_dir.path("keys.jsonl"))])
        .with(0);
    damage(&data_dir.file());
    let advice = data_dir.failing_start().err;
    for name in [LocalFile::NAME, Mirror::NAME] {
        assert!(!advice.contains(name), "{advice}");
    }
    data_dir
        .store(&[
            "restore",
            text(&backup),
            "--accept-lost-revocations",
            "--reopen-day",
        ])
        .with(0);
    assert_eq!(
        data_dir.store(&["check"]).with(0).out.lines().nth(2),
        before.lines().nth(2)
    );
    assert!(contents() == kept);
    let running = data_dir.serve();
    let client = ProgramClient::to(running.public()).await;
    assert_eq!(client.identity(&key).await.unwrap().0, "pro");
    running.stop().with(0);
}
