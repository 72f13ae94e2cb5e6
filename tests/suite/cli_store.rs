//! `scoregate store` and a server with a damaged store: the printed commands can be pasted, and the keys work again.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use scoregate::clock::{Clock, Day};
use tempfile::TempDir;

use crate::program::{CommandOutput, Program, ProgramClient, run, run_with, sqlite3, within_one_day};

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
        self.run(&["keys", "create", "--name", "n", "--tier", tier]).with(0).out.trim().to_owned()
    }

    fn serve(&self) -> Program {
        Program::serve(self.0.path(), &BUILT_IN)
    }

    /// A start that fails.
    fn refused(&self) -> CommandOutput {
        let place = ["serve", "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--data-dir"];
        run_with(&[&place[..], &[self.0.path().to_str().unwrap()]].concat(), &BUILT_IN).with(2)
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Runs a line in a shell that finds the program by name.
fn paste(line: &str) -> CommandOutput {
    let program = Path::new(env!("CARGO_BIN_EXE_scoregate")).parent().unwrap();
    let script = format!("PATH={}:$PATH; {line}", program.display());
    let output = Command::new("sh").arg("-c").arg(script).stdin(Stdio::null()).output().unwrap();
    let said = |bytes| String::from_utf8(bytes).unwrap();
    CommandOutput { code: output.status.code(), out: said(output.stdout), err: said(output.stderr) }
}

/// The commands in an output, in order.
fn commands(said: &str) -> Vec<String> {
    said.lines()
        .filter_map(|line| line.strip_prefix("  scoregate "))
        .map(|line| format!("scoregate {line}"))
        .collect()
}

fn spoil(file: &Path) {
    let mut bytes = fs::read(file).unwrap();
    bytes[4096..4196].fill(0xA5);
    fs::write(file, bytes).unwrap();
}

#[tokio::test]
async fn the_printed_recovery_steps_restore_a_backup() {
    let place = DataDir::new();
    let key = place.create("pro");
    let older = place.path("older.db");
    place.store(&["backup", text(&older)]).with(0);
    let backup = place.path("it's mine.db");
    let running = place.serve();
    let visitor = ProgramClient::to(running.public()).await;
    let held = place.store(&["backup", text(&backup)]).with(0);
    assert!(held.out.contains("applications       1"), "{}", held.out);
    assert_eq!(visitor.identity(&key).await.unwrap().0, "pro");
    running.stop().with(0);

    spoil(&place.file());
    let before = fs::read(place.file()).unwrap();
    let refused = place.refused();
    assert!(refused.err.contains(text(&place.file())) && refused.err.contains("damaged"), "{}", refused.err);
    assert_eq!(fs::read(place.file()).unwrap(), before, "the file is left as it is");
    let back = commands(&refused.err);
    assert!(
        back[0].contains("store check") && back[1].contains("mine.db") && back[2].contains("older.db"),
        "{back:?}"
    );
    let checked = paste(&back[0]);
    assert!(checked.code == Some(1) || checked.code == Some(2), "{checked:?}");
    let imported = paste(&back[1]).with(0);
    let aside = imported.err.lines().find_map(|line| line.split("kept as ").nth(1)).unwrap();
    assert_eq!(fs::read(aside).unwrap(), before, "what was damaged is kept");

    let running = place.serve();
    let visitor = ProgramClient::to(running.public()).await;
    assert_eq!(visitor.identity(&key).await.unwrap().0, "pro");
    running.stop().with(0);
    place.store(&["check"]).with(0);
}

#[tokio::test]
async fn the_printed_recovery_steps_salvage_readable_records_without_a_backup() {
    let place = DataDir::new();
    let keys: Vec<String> = (0..2).map(|_| place.create("pro")).collect();
    // Only the audit trail is damaged: its pages are in no other table.
    let file = place.file();
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'audit'";
    let page = Command::new("sqlite3").arg(&file).arg(sql).output().unwrap().stdout;
    let page: usize = String::from_utf8(page).unwrap().trim().parse().unwrap();
    let mut bytes = fs::read(&file).unwrap();
    bytes[(page - 1) * 4096..page * 4096].fill(0xA5);
    fs::write(&file, bytes).unwrap();

    let back = commands(&place.refused().err);
    assert_eq!(back.len(), 3, "{back:?}");
    paste(&back[0]).with(1);
    let written = paste(&back[1]).with(1);
    assert!(written.err.contains("skipped: audit"), "{}", written.err);
    let imported = paste(&back[2]).with(0);
    assert!(imported.out.contains("applications       2"), "{}", imported.out);
    let running = place.serve();
    let visitor = ProgramClient::to(running.public()).await;
    for key in &keys {
        assert_eq!(visitor.identity(key).await.unwrap().0, "pro");
    }
    running.stop().with(0);
}

#[tokio::test]
async fn an_older_backup_refills_no_daily_quota_and_a_forfeited_day_refuses_until_midnight() {
    let place = DataDir::new();
    let key = place.create("free");
    let backup = place.path("backup.db");
    place.store(&["backup", text(&backup)]).with(0);
    let spend = async |wanted: u16| {
        let running = place.serve();
        let visitor = ProgramClient::to(running.public()).await;
        let response = visitor.get("/api/v1/models", &key).send().await;
        assert_eq!(response.status, wanted);
        running.stop().with(0);
        let shown = place.run(&["keys", "list", "--json"]).with(0).json();
        shown["applications"][0]["granted_today"].as_u64().unwrap()
    };
    assert_eq!(spend(200).await, 1);
    place.store(&["import", text(&backup)]).with(1);
    let imported = place.store(&["import", text(&backup), "--replace"]).with(0);
    assert!(imported.err.contains("stay granted"), "{}", imported.err);
    assert_eq!(spend(200).await, 2, "what was granted before the import is still granted");

    fs::write(place.file(), "").unwrap();
    let imported = place.store(&["import", text(&backup)]).with(0);
    assert!(imported.err.contains("WARNING") && imported.err.contains("--forfeit-today"), "{}", imported.err);
    let imported = place.store(&["import", text(&backup), "--replace", "--forfeit-today"]).with(0);
    assert!(imported.err.contains("refused until"), "{}", imported.err);
    spend(429).await;
}

#[test]
fn an_import_fails_while_a_server_runs_and_names_the_remedy() {
    let place = DataDir::new();
    place.create("pro");
    let backup = place.path("backup.db");
    place.store(&["backup", text(&backup)]).with(0);
    let running = place.serve();
    running.public();
    let refused = place.store(&["import", text(&backup), "--replace"]).with(1);
    assert!(refused.err.contains("in use by another scoregate") && refused.err.contains("stop it"));
    running.stop().with(0);
    place.store(&["import", text(&backup), "--replace"]).with(0);
    let trail = place.run(&["keys", "audit", "--json"]).with(0).json();
    let newest = &trail["records"][0];
    assert_eq!(newest["action"], "import_store");
    assert!(newest["detail"].as_str().unwrap().contains("backup.db"), "{newest}");
}

/// Runs a server for this many responses.
fn deliver(place: &DataDir, key: &str, responses: u32) {
    let running = place.serve();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let visitor = ProgramClient::to(running.public()).await;
        for _ in 0..responses {
            assert_eq!(visitor.get("/api/v1/models", key).send().await.status, 200);
        }
    });
    running.stop().with(0);
}

/// The command in a text that closes days, for this day and directory.
fn closing(text: &str, today: Day, place: &DataDir) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("close-future-days --")).collect();
    let [line] = lines.as_slice() else { panic!("it is not there once: {lines:?}") };
    let command = &line[line.find("scoregate store").unwrap()..];
    command
        .replace("2026-11-22", &today.to_string())
        .replace(" DIR", &format!(" {}", place.0.path().display()))
}

#[test]
fn a_day_opened_by_a_wrong_clock_is_closed_by_the_printed_command() {
    within_one_day(|| {
        let today = Clock::system().now().wall.day();
        let tomorrow = Day::from_number(today.number() + 1);
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let page = |name: &str| fs::read_to_string(root.join(name)).unwrap();
        let texts = [None, Some(page("docs/operate.md")), Some(page("deploy/prometheus/RUNBOOK.md"))];
        for text in texts {
            let place = DataDir::new();
            let key = place.create("pro");
            deliver(&place, &key, 3);
            // As after a server whose clock was a day ahead.
            let ahead = format!(
                "INSERT INTO ledger (day, application, granted) SELECT '{tomorrow}', id, 9000 FROM applications"
            );
            sqlite3(place.0.path(), &ahead);
            let running = place.serve();
            let said = running.says("a UTC day in the future");
            let checked = place.store(&["check"]).with(1);
            let printed = closing(&checked.err, today, &place);
            assert!(said.contains(&printed) && said.contains(&tomorrow.to_string()), "{said}");
            let command = text.map_or(printed, |text| closing(&text, today, &place));
            assert!(paste(&command).with(1).err.contains("stop it"), "it was run beside a server");
            running.stop().with(0);

            let closed = paste(&command).with(0);
            assert!(closed.err.contains(&format!("Closed {tomorrow}. 9000 units")), "{}", closed.err);
            assert_eq!(place.store(&["check"]).with(0).err, "");
            let shown = place.run(&["keys", "list", "--json"]).with(0).json();
            assert_eq!(shown["applications"][0]["granted_today"], 9_003);
            let trail = place.run(&["keys", "audit", "--json"]).with(0).json();
            assert_eq!(trail["records"][0]["action"], "close_future_days");
            deliver(&place, &key, 1);
            let days = sqlite3(place.0.path(), "SELECT day, granted FROM ledger");
            assert_eq!(days, format!("{today}|9004\n"), "the gateway is back on today");
            assert!(paste(&command).with(0).err.contains("nothing was changed"));
        }
    });
}

#[test]
fn a_command_that_closes_days_is_rejected_for_any_date_but_today() {
    let place = DataDir::new();
    place.create("pro");
    let refused = place.store(&["close-future-days", "--today", "2020-02-29"]).with(1);
    assert!(refused.err.contains("correct the clock"), "{}", refused.err);
    for wrong in ["2026-02-30", "today", "20261122"] {
        let refused = place.store(&["close-future-days", "--today", wrong]).with(1);
        assert!(refused.err.contains("2026-11-22"), "{}", refused.err);
    }
    let check_no_leak = DataDir::new();
    let refused = check_no_leak.store(&["close-future-days", "--today", "2020-02-29"]).with(1);
    assert!(refused.err.contains("there is no store"), "{}", refused.err);
}

#[test]
fn a_check_prints_text_or_json_and_never_creates_a_store() {
    let place = DataDir::new();
    place.create("pro");
    let json = place.store(&["check", "--json"]).with(0).json();
    assert_eq!((json["sound"].as_bool(), json["keys_in_force"].as_u64()), (Some(true), Some(1)));
    fs::write(place.file(), "").unwrap();
    assert!(place.store(&["check"]).with(2).err.contains("it is empty"));
    let check_no_leak = DataDir::new();
    assert!(check_no_leak.store(&["check"]).with(1).err.contains("--data-dir"));
    assert_eq!(fs::read_dir(check_no_leak.0.path()).unwrap().count(), 0);
}

#[test]
fn an_export_is_complete_on_another_machine_and_contains_no_key() {
    let (place, other) = (DataDir::new(), DataDir::new());
    let key = place.create("pro");
    let lines = place.store(&["export", "-"]).with(0);
    assert!(!lines.out.contains(&key) && lines.out.lines().count() == 5, "{}", lines.out);
    let file = place.path("keys.jsonl");
    place.store(&["export", text(&file)]).with(0);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    place.store(&["export", text(&file)]).with(1);
    other.store(&["import", text(&file)]).with(0);
    assert_eq!(other.run(&["keys", "list"]).with(0).out, place.run(&["keys", "list"]).with(0).out);
    fs::write(&file, &lines.out[..lines.out.len() / 2]).unwrap();
    let cut = DataDir::new().store(&["import", text(&file)]).with(1);
    assert!(cut.err.contains("it is truncated"), "{}", cut.err);
}

#[test]
fn an_export_is_readable_by_its_owner_only_and_overwrites_no_file() {
    let place = DataDir::new();
    place.create("pro");
    let (precious, open) = (place.path("precious"), place.path("open.jsonl.half"));
    for lure in [&precious, &open] {
        fs::write(lure, "mine").unwrap();
        fs::set_permissions(lure, fs::Permissions::from_mode(0o666)).unwrap();
    }
    std::os::unix::fs::symlink(&precious, place.path("led.jsonl.half")).unwrap();
    for name in ["open.jsonl", "led.jsonl"] {
        let file = place.path(name);
        place.store(&["export", text(&file)]).with(0);
        let made = fs::symlink_metadata(&file).unwrap();
        assert!(made.is_file() && made.permissions().mode() & 0o777 == 0o600, "{name}: {made:?}");
    }
    assert_eq!(fs::read_to_string(&precious).unwrap(), "mine");
}

#[test]
fn output_that_cannot_be_written_is_reported() {
    let ended = paste("scoregate check --sample > /dev/full").with(2);
    assert!(ended.err.contains("standard output cannot be written"), "{}", ended.err);
}

#[tokio::test]
async fn store_commands_ignore_the_disk_mirror() {
    let place = DataDir::new();
    let documents = place.path("documents");
    fs::create_dir(&documents).unwrap();
    // An empty directory is no trace of a lost store: an operator may have created it.
    let key = place.create("pro");
    let backup = place.path("backup.db");
    place.store(&["backup", text(&backup)]).with(0);
    // Files that resemble the store's own in that directory are not.
    let lures = ["scoregate.db", "scoregate.db-wal", "scoregate.db.v1.bak", "scoregate.db.next-x", "a.slip"];
    for lure in lures {
        fs::copy(&backup, documents.join(lure)).unwrap();
    }
    let before = place.store(&["check"]).with(0).out;
    place.store(&["export", text(&place.path("keys.jsonl"))]).with(0);
    spoil(&place.file());
    let refused = place.refused();
    assert!(!refused.err.contains("documents"), "{}", refused.err);
    place.store(&["import", text(&backup)]).with(0);
    assert_eq!(place.store(&["check"]).with(0).out.lines().nth(2), before.lines().nth(2));
    let running = place.serve();
    let visitor = ProgramClient::to(running.public()).await;
    assert_eq!(visitor.identity(&key).await.unwrap().0, "pro");
    running.stop().with(0);
    for lure in lures {
        assert!(fs::read(documents.join(lure)).unwrap() == fs::read(&backup).unwrap(), "{lure}");
    }
    assert_eq!(fs::read_dir(&documents).unwrap().count(), lures.len());
}
